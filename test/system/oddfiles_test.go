package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const oddApp = `
-- main.lua --
object "A" {
    get = function(state, path) return getfile(path) end,
    found = function(state) return found end,
}
on "fetch" (function(request) return { body = "handler" } end)
found = { require("lib") }
for _, name in ipairs(require("names")) do
    if pcall(require, name) then found[#found + 1] = name end
end
-- names.lua --
return {}
-- lib.lua --
return "lib"
-- web/index.html --
home
-- web/a.txt --
a file
-- web/docs/index.html --
docs
-- outside.txt --
outside
-- web/.hidden --
hidden
`

// oddFolder is an app's folder with all that a folder can have beside files; what is outside of it says so.
func oddFolder(t *testing.T) (dir string) {
	t.Helper()
	root := t.TempDir()
	dir = filepath.Join(root, "app")
	testkit.WriteApp(t, dir, txtar.Parse([]byte(oddApp)))
	for name, text := range map[string]string{"secret.txt": "outside", "secret.lua": "return 'outside'", "application/secret.txt": "outside"} {
		testkit.WriteApp(t, root, &txtar.Archive{Files: []txtar.File{{Name: name, Data: []byte(text)}}})
	}
	links := map[string]string{
		"web/absolute.txt": filepath.Join(root, "secret.txt"), "web/up.txt": "../../secret.txt", "web/twice.txt": "up.txt", "web/root": "/", "web/self": "self", "web/here": ".", "web/beside": "../../application",
		"absolute.lua": filepath.Join(root, "secret.lua"), "up.lua": "../secret.lua", "self.lua": "self.lua", "here": ".", "etc": "/etc", "docs": "web/docs",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"web/folder/index.html", "folder.lua"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.lua"), 0o600); err != nil { // who opens it waits for a writer
		t.Fatal(err)
	}
	return dir
}

// Whatever a path spells, what is served is a file of web/ or what the handler says: nothing from outside, no folder, no
// pipe, and no error of the server's.
// spec: HTTP-4, BOX-1
func TestOddPaths(t *testing.T) {
	dir := oddFolder(t)
	testkit.Bubble(t, txtar.Parse([]byte(oddApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var err error
		if s.App, err = app.Load(dir, app.Options{Name: "app", Library: lualib.Open(s.Log)}); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		for _, target := range []string{
			"/%c0%ae%c0%ae/outside.txt", "/%e0%80%ae%e0%80%ae/outside.txt", "/%u002e%u002e/outside.txt", "/..;/outside.txt", "/.%2e/outside.txt", "/%2e./outside.txt", "/....//outside.txt", "/./.././outside.txt", "/docs/..%5c..%5coutside.txt",
			"/docs\\..\\..\\outside.txt", "/%5c..%5coutside.txt", "/docs/..%2f..%2f..%2fsecret.txt", "/docs/%2e%2e%2f%2e%2e%2foutside.txt", "/..%00/outside.txt", "/%00", "/a.txt%00", "/a.txt%0a", "/a.txt%20", "/a.txt.", "/a.txt/.", "/a.txt/..", "/a.txt::$DATA", "/%2e", "/%2e%2e", "/..", "/.", "//", "///a.txt",
			"/%2f%2fetc/passwd", "/C:/a.txt", "/file:///etc/passwd", "/etc/passwd", "/proc/self/environ", "http://app.test/../outside.txt", "http://app.test//outside.txt", "http://evil.test/%2e%2e/outside.txt", "*", "/~root", "/\x7f", "/\xff", "/%ff", "/?../outside.txt", "/a.txt;x", "/%61.txt%2f..%2f..%2foutside.txt",
			"/absolute.txt", "/up.txt", "/twice.txt", "/root/etc/passwd", "/root/", "/self", "/self/x", "/beside/secret.txt", "/folder", "/folder/", "/folder/index.html", "/here/here/../../outside.txt", "/main.lua", "/lib.lua", "/web/a.txt", "/" + strings.Repeat("a", 300), "/" + strings.Repeat("a/", 3000), "/" + strings.Repeat("../", 3000) + "etc/passwd", "/" + strings.Repeat("here/", 100) + "a.txt",
		} {
			got := exchange(t, s.Listener(), []string{"GET"}, "GET "+target+" HTTP/1.1\r\nHost: app.test\r\n\r\n")
			answer := strings.Join(got, " ")
			if len(got) != 1 || strings.HasPrefix(answer, "5") || strings.Contains(answer, "outside") && !strings.HasPrefix(answer, "30") || strings.Contains(answer, "root:") || strings.Contains(answer, "object \"A\"") || strings.Contains(answer, "<pre>") {
				t.Errorf("GET %.80q: %q", target, got)
			}
			if strings.HasPrefix(answer, "200") && answer != "200 handler" && answer != "200 a file" && answer != "200 home" && answer != "200 docs" {
				t.Errorf("GET %.80q: %q", target, got)
			}
		}
		for target, want := range map[string]string{"/a.txt": "200 a file", "/%61.txt": "200 a file", "/": "200 home", "/docs/": "200 docs", "/x": "200 handler"} {
			if got := exchange(t, s.Listener(), []string{"GET"}, "GET "+target+" HTTP/1.1\r\nHost: app.test\r\n\r\n"); len(got) != 1 || got[0] != want {
				t.Errorf("GET %s: %q, want %s", target, got, want)
			}
		}
	})
}

// oddNames are names of nothing that an app may read.
var oddNames = []string{
	"", ".", "..", "/", "//", "\x00", "lib.lua\x00", "lib.lua\x00.txt", "../secret.txt", "../app/../secret.txt", "web/../../secret.txt", "./../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "..\\secret.txt", "web\\..\\..\\secret.txt", "/etc/passwd", "//etc/passwd", "etc/passwd", "here/../../secret.txt",
	"../application/secret.txt", "absolute.lua", "up.lua", "self.lua", "folder.lua", "web/absolute.txt", "web/up.txt", "web/twice.txt", "web/root/etc/passwd", "web/beside/secret.txt", "pipe.lua", "/proc/self/environ", ".weir/run.json", "/.weir/run.json", "./.weir/run.json", "here/.weir/run.json", ".weir/objects/a/00/x.db",
	"file:///etc/passwd", "~/x", "C:\\x", strings.Repeat("a", 5000), strings.Repeat("../", 2000) + "etc/passwd", "secret", "../secret", "..secret", "...secret", "/secret", "absolute", "up", "self", "pipe", "folder", "etc.passwd", ".weir.run",
}

// luaList gives texts as a Lua table.
func luaList(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteByte('"')
		for i := range len(s) {
			fmt.Fprintf(&b, "\\%03d", s[i])
		}
		b.WriteString("\",\n")
	}
	return "{" + b.String() + "}"
}

// getfile and require give files of the app's folder and nothing else, however they are spelled; links do not lead out.
// spec: STO-3, BOX-1
func TestOddNames(t *testing.T) {
	dir := oddFolder(t)
	testkit.WriteApp(t, dir, &txtar.Archive{Files: []txtar.File{{Name: "names.lua", Data: []byte("return " + luaList(oddNames))}}})
	testkit.WriteApp(t, dir, txtar.Parse([]byte("-- .weir/run.json --\n{\"token\":\"outside\"}\n-- .weir/objects/a/00/x.db --\noutside\n")))
	testkit.Bubble(t, txtar.Parse([]byte(oddApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var err error
		if s.App, err = app.Load(dir, app.Options{Name: "app", Library: lualib.Open(s.Log)}); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		for _, name := range oddNames {
			arg := string(mustEncode(t, name))
			if out, err := s.Call("A/a", "get", arg); err == nil && strings.Join(out, "") != "null" && strings.Join(out, "") != "" {
				t.Errorf("getfile %.80q: %.100s", name, out)
			} else if err != nil && strings.HasPrefix(err.Error(), "internal: ") {
				t.Errorf("getfile %.80q: %v", name, err)
			}
		}
		// Spelled strangely, but inside.
		for name, want := range map[string]string{"outside.txt": `"outside\n"`, "./outside.txt": `"outside\n"`, "web/../outside.txt": `"outside\n"`} {
			if out, err := s.Call("A/a", "get", string(mustEncode(t, name))); err != nil || out[0] != want && (name == "outside.txt" || out[0] != "null") {
				t.Errorf("getfile %q: %s %v", name, out, err)
			}
		}
		if got := s.MustCall("A/a", "found"); got != `["lib"]` {
			t.Errorf("require found %s", got)
		}
	})
}

// A pipe in web/ is no file: who opens it waits for a writer, and a request for it would never end. (A writer can open
// one only while there is a reader.)
// spec: HTTP-4, HTTP-3
func TestPipeIsNoFile(t *testing.T) {
	dir := oddFolder(t)
	pipe := filepath.Join(dir, "web", "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Bubble(t, txtar.Parse([]byte(oddApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var err error
		if s.App, err = app.Load(dir, app.Options{Name: "app", Library: lualib.Open(s.Log)}); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		done := make(chan []string, 1)
		go func() {
			done <- exchange(t, s.Listener(), []string{"GET"}, "GET /pipe HTTP/1.1\r\nHost: app.test\r\n\r\n")
		}()
		for {
			select {
			case got := <-done:
				if strings.Join(got, " ") != "200 handler" {
					t.Errorf("%q", got)
				}
				return
			default:
			}
			if fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
				_ = unix.Close(fd)
				t.Errorf("the pipe was opened; %q", <-done)
				return
			}
		}
	})
}
