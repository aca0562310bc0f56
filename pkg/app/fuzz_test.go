package app_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/pkg/app"
	"weir/pkg/lualib"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// load loads an app of these files.
func load(t testing.TB, dir string, files map[string]string) (*app.App, error) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return app.Load(dir, app.Options{Name: "app", Library: lualib.Open(quiet)})
}

// hostile are files main.lua that are wrong, or that would not end, with a part of what must be said. All that can be
// named by a line is named by its line.
var hostile = []struct{ lua, want string }{
	{"\nx = = 1", "main.lua:2: "}, {"\n\nlocal s = 'abc", "main.lua:3: "}, {"\xff\xfe\x00", "main.lua:1: "}, {"\x1bLua\x51\x00", "main.lua:1: "},
	{"\nwhile true do end", "budget exceeded"}, {"\npcall(function() while true do end end) while true do end", "budget exceeded"},
	{"\nlocal t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end", "exceeded"},
	{"\nerror('on purpose')", "main.lua:2: on purpose"}, {"\nerror({})", "main.lua"}, {"\nerror(setmetatable({}, { __tostring = function() while true do end end }))", "main.lua"}, {"\nerror()", "main.lua"},
	{"\nlocal function f() return 1 + f() end f()", "main.lua:2: "}, {"\ncoroutine.yield(1)", "main.lua:2: "}, {"\ncoroutine.wrap(function() object 'A' { m = 1 } end)()", "main.lua:2: "},
	{"\nobject 'A' (setmetatable({}, { __index = function() while true do end end, __pairs = error }))", ""},
	{"\nobject 'A' { publishes = setmetatable({}, { __index = function() error('x') end }) }", ""},
	{"\nobject(nil) {}", "main.lua:2: "}, {"\nobject 'A' 'B'", "main.lua:2: "}, {"\nobject {}", "main.lua:2: "}, {"\nobject 'A' { [{}] = print }", "main.lua:2: "}, {"\nobject 'A' { [1] = print }", "main.lua:2: "},
	{"\nobject 'A' { publishes = { 'a', 'a' } }", "main.lua:2: "}, {"\nobject 'A' { publishes = { a = 'everyone' } }", "main.lua:2: "}, {"\nobject 'A' { receives = { x = print } }", "main.lua:2: "},
	{"\nobject 'A' { hooks = { ['in\\0it'] = print } }", "main.lua:2: "}, {"\nobject '" + strings.Repeat("A", 65) + "' {}", "main.lua:2: "},
	{"\nlocal t = {} t.t = t object 'A' { hooks = t }", "main.lua:2: "}, {"\nobject 'A' { migrations = '/etc' }", "main.lua:2: "}, {"\nobject 'A' { migrations = '../../..' }", "main.lua:2: "},
	{"\nobject 'A' { migrations = 'migrations/none' }", "main.lua:2: "}, {"\nobject 'A' { migrations = 'main.lua' }", "main.lua:2: "}, {"\nobject 'A' { migrations = 'migrations\\0' }", "main.lua:2: "},
	{"\nrequire '../../../etc/passwd'", "main.lua:2: "}, {"\nrequire 'main'", "main"}, {"\nrequire '\\0'", "main.lua:2: "}, {"\nsecret 'none'", "main.lua:2: "}, {"\nsecret '../x'", "main.lua:2: "}, {"\nkv ''", "main.lua:2: "},
	{"\nobject 'A' { m = function() end } object 'A' { m = function() end }", "main.lua:2: "}, {"\non 'fetch' (print) on 'fetch' (print)", "main.lua:2: "},
	{strings.Repeat("local a = 1\n", 300), "main.lua:201: "}, {"return " + strings.Repeat("(", 10_000) + "1", "main.lua:1: "}, {"x = " + strings.Repeat("{", 10_000), "main.lua:1: "},
	{"\nfor i = 1, 1e3 do object('A' .. i) { m = 1 } end", "main.lua:2: "},
}

// An app that is wrong is refused with the file, and the line where there is one.
// spec: OBJ-2, OBJ-11
func TestHostileApps(t *testing.T) {
	for _, c := range hostile {
		_, err := load(t, t.TempDir(), map[string]string{"main.lua": c.lua, "migrations/A/1.sql": "SELECT 1"})
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && (strings.Contains(err.Error(), "internal: ")) {
			t.Errorf("%.80q: %.300v, want %q", c.lua, err, c.want)
		}
	}
}

// Whatever main.lua and a migration's file are, loading ends with an app or with mistakes in files of the app.
// spec: OBJ-2, SQL-6
func FuzzLoad(f *testing.F) {
	for _, c := range hostile {
		if len(c.lua) < 1000 && !strings.Contains(c.lua, "while true") { // the rest takes its time
			f.Add(c.lua, "1.sql", "CREATE TABLE t (x)")
		}
	}
	const class = "object 'A' { migrations = 'migrations/A', m = function() end }"
	for name, sql := range map[string]string{"1.sql": "ATTACH 'x' AS x", "é.sql": "\xff\x00", " .sql": "", ".sql": ";", "1.SQL": "SELECT", "1.sql.sql": "CREATE TABLE _weir_x (y)", "a b.sql": "COMMIT"} {
		f.Add(class, name, sql)
	}
	f.Fuzz(func(t *testing.T, lua, name, sql string) {
		if name == "" || len(name) > 200 || name != filepath.Base(name) || strings.ContainsRune(name, 0) || name == "." || name == ".." {
			return
		}
		a, err := load(t, t.TempDir(), map[string]string{"main.lua": lua, "migrations/A/" + name: sql})
		if err != nil {
			var ms app.Mistakes
			if !errors.As(err, &ms) {
				t.Fatalf("not what is wrong with the app: %v", err)
			}
			for _, m := range ms {
				if m.File == "" || m.Line < 0 || m.Text == "" || m.Line > strings.Count(lua, "\n")+strings.Count(lua, "\r")+1 && strings.HasSuffix(m.File, ".lua") {
					t.Fatalf("a mistake without its place: %+v", m)
				}
			}
			return
		}
		in, err := a.Instance(func(string) {})
		if err != nil {
			t.Fatalf("loaded once, but not twice: %v", err)
		}
		defer in.Close()
		for name, c := range a.Classes {
			for m := range c.Methods {
				if in.Function(name, "", m) == nil {
					t.Fatalf("%s has no method %s in its VM", name, m)
				}
			}
			if c.MigrationsDir == "" && len(c.Migrations) > 0 {
				t.Fatalf("%s has migrations of no folder: %v", name, c.Migrations)
			}
		}
	})
}
