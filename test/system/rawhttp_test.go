package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/services/gateway/gatewayd"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const rawApp = `
-- main.lua --
local User = object "User" {}
local Ws = connection "Ws" { open = function(conn) conn:send("open") end }
on "fetch" (function(r)
    if r.path == "/ws" then
        if not r.upgrade then return { status = 426, body = "no handshake" } end
        return r:upgrade(Ws, nil, User("u"))
    end
    if r.path == "/remote" then return { body = r.remote } end
    return { headers = { Connection = r.query.connection }, body = r.method .. " " .. r.path .. " " .. #r.body .. " " .. (r.headers["x-a"] or "-") }
end)
`

// exchange sends bytes to a gateway and gives the status and body of each answer, until the connection ends or nothing
// more comes.
func exchange(t *testing.T, l *testkit.Pipe, methods []string, bytes ...string) (out []string) {
	t.Helper()
	conn, err := l.Dial(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(40 * time.Second))
	go func() {
		for _, b := range bytes {
			if _, err := io.WriteString(conn, b); err != nil {
				return
			}
		}
	}()
	in := bufio.NewReader(conn)
	for _, method := range methods {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return out
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return append(out, "101")
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %.100s", resp.StatusCode, body)))
	}
	return out
}

// A head or a body that is too large is refused with a status of its own, whether its length is told or not, and the
// handler is not asked.
// spec: HTTP-3
func TestTooLarge(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		post := "POST /one HTTP/1.1\r\nHost: app.test\r\n"
		chunk := "100000\r\n" + strings.Repeat("x", 1<<20) + "\r\n"
		chunks := func(n int, more string) []string {
			out := []string{post + "Transfer-Encoding: chunked\r\n\r\n"}
			for range n {
				out = append(out, chunk)
			}
			return append(out, more+"0\r\n\r\n")
		}
		for name, c := range map[string]struct {
			bytes []string
			want  string
		}{
			"a head":                 {[]string{"GET /one HTTP/1.1\r\nHost: app.test\r\nX-A: ", strings.Repeat("x", 4<<20), "\r\n\r\n"}, "431"},
			"a target":               {[]string{"GET /", strings.Repeat("x", 4<<20), " HTTP/1.1\r\nHost: app.test\r\n\r\n"}, "4"},
			"many headers":           {[]string{"GET /one HTTP/1.1\r\nHost: app.test\r\n", strings.Repeat("X-A: x\r\n", 500_000), "\r\n"}, "431"},
			"chunks, 10 MiB":         {chunks(10, ""), "200 POST /one 10485760 -"},
			"chunks, one more":       {chunks(10, "1\r\nx\r\n"), "413"},
			"chunks without an end":  {chunks(14, ""), "413"},
			"a length, not the body": {[]string{post + "Content-Length: 10485761\r\n\r\n"}, "413"},
			"asked before":           {[]string{post + "Expect: 100-continue\r\nContent-Length: 10485761\r\n\r\n"}, "413"},
		} {
			got := exchange(t, s.Listener(), []string{"POST"}, c.bytes...)
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("%s: %q, want %s", name, got, c.want)
			}
		}
	})
}

// A body that does not come holds a request no longer than a request may take.
// spec: HTTP-3
func TestSlowBody(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for name, c := range map[string]string{
			"a part":   "Content-Length: 10\r\n\r\nabc",
			"no chunk": "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		} {
			start := time.Now()
			got := exchange(t, s.Listener(), []string{"POST"}, "POST /one HTTP/1.1\r\nHost: app.test\r\n"+c)
			if d := time.Since(start); d > 35*time.Second || len(got) > 0 && !strings.HasPrefix(got[0], "504") && !strings.HasPrefix(got[0], "408") { // of virtual time
				t.Errorf("%s: %q after %v", name, got, d)
			}
		}
	})
}

// What is no HTTP, or a request in a strange form, is refused or answered, and the next one is served.
// spec: HTTP-1
func TestStrangeRequests(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const host = "Host: app.test\r\n\r\n"
		for name, c := range map[string]struct{ bytes, want string }{
			"no host":            {"GET /one HTTP/1.1\r\n\r\n", "400"},
			"TLS":                {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
			"HTTP/2":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
			"no version":         {"GET /one\r\n" + host, "400"},
			"another version":    {"GET /one HTTP/3.7\r\n" + host, "505"},
			"no slash":           {"GET one HTTP/1.1\r\n" + host, "400"},
			"a bad escape":       {"GET /one%zz HTTP/1.1\r\n" + host, "400"},
			"a space":            {"GET /one two HTTP/1.1\r\n" + host, "400"},
			"a method of signs":  {"G@T /one HTTP/1.1\r\n" + host, "400"},
			"an absolute target": {"GET http://app.test/one HTTP/1.1\r\n" + host, "200 GET /one 0 -"},
			"a star":             {"OPTIONS * HTTP/1.1\r\n" + host, ""},
			"CONNECT":            {"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", ""},
			"an empty line":      {"\r\n\r\n", "400"},
		} {
			got := exchange(t, s.Listener(), []string{"GET"}, c.bytes)
			if c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) || len(got) > 0 && strings.HasPrefix(got[0], "500") {
				t.Errorf("%s: %q, want %s", name, got, c.want)
			}
			if got := exchange(t, s.Listener(), []string{"GET"}, "GET /next HTTP/1.1\r\n"+host); len(got) != 1 || got[0] != "200 GET /next 0 -" {
				t.Fatalf("after %s: %q", name, got)
			}
		}
	})
}

// A websocket handshake is one as RFC 6455 says; whatever is not is a request like any other, without upgrade.
// spec: HTTP-1, CONN-2
func TestHandshake(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
		const v13, up, conn = "Sec-WebSocket-Version: 13\r\n", "Upgrade: websocket\r\n", "Connection: Upgrade\r\n"
		for name, c := range map[string]struct{ line, head, want string }{
			"plain":                   {"GET /ws HTTP/1.1", up + conn + key + v13, "101"},
			"names and words in case": {"GET /ws HTTP/1.1", "upgrade: WebSocket\r\nconnection: keep-alive, UPGRADE\r\n" + key + v13, "101"},
			"two connection lines":    {"GET /ws HTTP/1.1", "Connection: keep-alive\r\n" + up + conn + key + v13, "101"},
			"an extension":            {"GET /ws HTTP/1.1", up + conn + key + v13 + "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n", "101"},
			"a protocol":              {"GET /ws HTTP/1.1", up + conn + key + v13 + "Sec-WebSocket-Protocol: chat\r\n", "101"},
			"POST":                    {"POST /ws HTTP/1.1", up + conn + key + v13 + "Content-Length: 0\r\n", "4"},
			"HEAD":                    {"HEAD /ws HTTP/1.1", up + conn + key + v13, "4"},
			"HTTP/1.0":                {"GET /ws HTTP/1.0", up + conn + key + v13, "4"},
			"no key":                  {"GET /ws HTTP/1.1", up + conn + v13, "4"},
			"an empty key":            {"GET /ws HTTP/1.1", up + conn + "Sec-WebSocket-Key: \r\n" + v13, "4"},
			"a short key":             {"GET /ws HTTP/1.1", up + conn + "Sec-WebSocket-Key: c2hvcnQ=\r\n" + v13, "4"},
			"another version":         {"GET /ws HTTP/1.1", up + conn + key + "Sec-WebSocket-Version: 8\r\n", "4"},
			"no version":              {"GET /ws HTTP/1.1", up + conn + key, "4"},
			"another protocol":        {"GET /ws HTTP/1.1", "Upgrade: h2c\r\n" + conn + key + v13, "4"},
			"no connection header":    {"GET /ws HTTP/1.1", up + key + v13, "4"},
			"a word that contains it": {"GET /ws HTTP/1.1", up + "Connection: notupgrade\r\n" + key + v13, "4"},
		} {
			method, _, _ := strings.Cut(c.line, " ")
			got := exchange(t, s.Listener(), []string{method}, c.line+"\r\nHost: app.test\r\n"+c.head+"\r\n")
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("%s: %q, want %s", name, got, c.want)
			}
		}
	})
}

// A file's tag is the same until the file changes; then who has the old one gets the new file.
// spec: HTTP-4
func TestFileTags(t *testing.T) {
	const files = "-- main.lua --\non \"fetch\" (function() return { body = \"handler\" } end)\n-- web/a.txt --\none\n-- web/b.txt --\none\n-- outside.txt --\noutside\n"
	dir := t.TempDir()
	archive := txtar.Parse([]byte(files))
	testkit.WriteApp(t, dir, archive)
	for link, target := range map[string]string{"web/link.txt": "../outside.txt", "web/folder": "..", "web/inside.txt": "a.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Bubble(t, archive, hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var err error
		if s.App, err = app.Load(dir, app.Options{Name: "app", Library: lualib.Open(s.Log)}); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		get := func(path, header, value string) (int, http.Header, string) {
			t.Helper()
			status, h, body, err := s.Request("GET", path, "", http.Header{header: {value}})
			if err != nil {
				t.Fatal(err)
			}
			return status, h, body
		}
		_, h, _ := get("/a.txt", "X", "")
		tag := h.Get("ETag")
		for _, c := range []struct {
			header, value string
			want          int
		}{{"If-None-Match", tag, 304}, {"If-None-Match", `"x", ` + tag, 304}, {"If-None-Match", "W/" + tag, 304}, {"If-None-Match", `"x"`, 200}, {"If-Match", tag, 200}, {"If-Match", `"x"`, 412}} {
			if status, h, body := get("/a.txt", c.header, c.value); status != c.want || status == 304 && (body != "" || h.Get("ETag") != tag) {
				t.Errorf("%s: %s: %d %s %v", c.header, c.value, status, body, h)
			}
		}
		status, h, body, err := s.Request("GET", "/a.txt", "", http.Header{"If-Range": {tag}, "Range": {"bytes=0-1"}})
		if err != nil || status != 206 || body != "on" {
			t.Errorf("If-Range: %d %s %v %v", status, body, h, err)
		}
		status, h, body, err = s.Request("HEAD", "/a.txt", "", http.Header{"If-None-Match": {tag}})
		if err != nil || status != 304 || body != "" {
			t.Errorf("HEAD: %d %s %v %v", status, body, h, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "web/a.txt"), []byte("two\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, h, body := get("/a.txt", "If-None-Match", tag); status != 200 || body != "two\n" || h.Get("ETag") == tag {
			t.Errorf("a file that changed: %d %s %v", status, body, h)
		}
		// A link does not lead out of the folder.
		for _, path := range []string{"/link.txt", "/folder/outside.txt", "/folder/main.lua"} {
			if status, _, body := get(path, "X", ""); body != "handler" && status < 400 {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
	})
}

// The client's address: a proxy's word counts only from a trusted one, over all the lines of the header, and the last
// that no trusted proxy has is the client.
// spec: HTTP-1
func TestRemoteLines(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		trusted := []string{"127.0.0.1", "10.0.0.0/8", "2001:db8::/32", "::1"}
		for _, c := range []struct {
			from  string
			lines []string
			want  string
		}{
			{"127.0.0.1:1", []string{"6.6.6.6", "9.9.9.9"}, "9.9.9.9"},
			{"127.0.0.1:1", []string{"6.6.6.6", "9.9.9.9, 10.1.1.1", "10.2.2.2"}, "9.9.9.9"},
			{"127.0.0.1:1", []string{"10.1.1.1"}, "10.1.1.1"},
			{"127.0.0.1:1", []string{" 9.9.9.9 "}, "9.9.9.9"},
			{"127.0.0.1:1", []string{"6.6.6.6, nonsense"}, "127.0.0.1"},
			{"127.0.0.1:1", []string{"2001:db9::7"}, "2001:db9::7"},
			{"[2001:db8::1]:1", []string{"9.9.9.9"}, "9.9.9.9"},
			{"[::ffff:127.0.0.1]:1", []string{"9.9.9.9"}, "9.9.9.9"},
			{"[2001:db9::1]:1", []string{"9.9.9.9"}, "2001:db9::1"},
			{"11.0.0.1:1", []string{"9.9.9.9"}, "11.0.0.1"},
		} {
			nc, err := s.Standalone.Connect("gateway 2")
			if err != nil {
				t.Fatal(err)
			}
			g, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, NATS: nc, Log: s.Log, Proxies: trusted})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequest(http.MethodGet, "http://app.test/remote", nil)
			r.RemoteAddr, r.Body = c.from, http.NoBody
			r.Header["X-Forwarded-For"] = c.lines
			w := &recorder{header: http.Header{}}
			g.ServeHTTP(w, r)
			if got := w.String(); got != c.want {
				t.Errorf("%s %q: %s, want %s", c.from, c.lines, got, c.want)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			nc.Close()
		}
	})
}
