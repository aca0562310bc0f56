package system

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/test/testkit"
)

// What the declaration of a connection, a handler or a bucket may not be refuses the app at load, by file and line.
// spec: CONN-1, CONN-11, HTTP-1, STO-2
func TestDeclarationsRefused(t *testing.T) {
	const head = "local User = object \"User\" {}\n"
	const fetch = "on \"fetch\" (function() end)\n"
	for name, c := range map[string]struct{ lua, want string }{
		"all of it":               {`connection "A" { open = function() end, frame = function() end, event = "forward", timer = { every = "1s", run = function() end }, close = function() end }`, ``},
		"nothing":                 {`connection "A" {}`, ``},
		"every in words":          {`connection "A" { timer = { every = "1m", run = function() end } }`, ``},
		"another key":             {`connection "A" { opne = function() end }`, `main\.lua:2: .*opne`},
		"a method":                {`connection "A" { shout = function() end }`, `main\.lua:2: .*shout`},
		"a key that is no text":   {`connection "A" { function() end }`, `main\.lua:2: `},
		"open a text":             {`connection "A" { open = "x" }`, `main\.lua:2: .*open`},
		"frame a table":           {`connection "A" { frame = {} }`, `main\.lua:2: .*frame`},
		"close a number":          {`connection "A" { close = 1 }`, `main\.lua:2: .*close`},
		"event another text":      {`connection "A" { event = "drop" }`, `main\.lua:2: .*event`},
		"event true":              {`connection "A" { event = true }`, `main\.lua:2: .*event`},
		"frame forward":           {`connection "A" { frame = "forward" }`, `main\.lua:2: .*frame`},
		"timer a function":        {`connection "A" { timer = function() end }`, `main\.lua:2: .*timer`},
		"timer without run":       {`connection "A" { timer = { every = "30s" } }`, `main\.lua:2: .*(timer|run)`},
		"timer without every":     {`connection "A" { timer = { run = function() end } }`, `main\.lua:2: .*(timer|every)`},
		"timer with another key":  {`connection "A" { timer = { every = "30s", run = function() end, each = 1 } }`, `main\.lua:2: .*each`},
		"every too short":         {`connection "A" { timer = { every = "999ms", run = function() end } }`, `main\.lua:2: .*(every|second)`},
		"every zero":              {`connection "A" { timer = { every = "0s", run = function() end } }`, `main\.lua:2: .*(every|second)`},
		"every negative":          {`connection "A" { timer = { every = "-5s", run = function() end } }`, `main\.lua:2: .*every`},
		"every a word":            {`connection "A" { timer = { every = "often", run = function() end } }`, `main\.lua:2: .*every`},
		"run a text":              {`connection "A" { timer = { every = "30s", run = "x" } }`, `main\.lua:2: .*run`},
		"a name that is none":     {`connection "a b" {}`, `main\.lua:2: .*a b`},
		"no name":                 {`connection "" {}`, `main\.lua:2: `},
		"declared twice":          {`connection "A" {} connection "A" {}`, `main\.lua:2: .*A`},
		"the body a function":     {`connection "A" (function() end)`, `main\.lua:2: `},
		"a class nobody declares": {`local N = objects "Nobody"`, `main\.lua:2: .*Nobody`},
		"another event":           {`on "fecth" (function() end)`, `main\.lua:2: .*fecth`},
		"fetch a table":           {`on "fetch" {}`, `main\.lua:2: .*fetch`},
		"fetch twice":             {`on "fetch" (function() end)`, `main\.lua:3: .*fetch`},
		"a bucket without a name": {`kv ""`, `main\.lua:2: .*kv`},
		"a bucket of a number":    {`kv {}`, `main\.lua:2: .*kv`},
		"a bucket's longest name": {`kv "` + strings.Repeat("b", 64) + `"`, ``},
		"a bucket's too long":     {`kv "` + strings.Repeat("b", 65) + `"`, `main\.lua:2: .*64 bytes`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.lua"), []byte(head+c.lua+"\n"+fetch), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := app.Load(dir, app.Options{Name: "app", Library: lualib.Open(testkit.Logger(t))})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want a match of %s", name, err, c.want)
		}
	}
}

// An app may be mounted from a ConfigMap, where every file is a link into a hidden folder. A link out of the app's folder
// is not followed.
func TestAppOfLinks(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.lua")
	if err := os.WriteFile(outside, []byte("error('read')"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "..2026"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..2026", "main.lua"), []byte("object \"A\" { go = function() end }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"..data": "..2026", "main.lua": filepath.Join("..data", "main.lua"), "secret.lua": outside, "gone.lua": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.Load(dir, app.Options{Name: "app", Library: lualib.Open(testkit.Logger(t))})
	if err != nil || a.Classes["A"] == nil {
		t.Fatalf("%+v %v", a, err)
	}
	if _, ok := a.File("secret.lua"); ok {
		t.Error("a file from outside the app was read")
	}
}
