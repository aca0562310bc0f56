package lualib

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
)

// hidden is the text of the secret "session-key": it must never be seen.
const hidden = "hush-hush-0123456789abcdef-hush"

// world is an app in a VM, with what it logged and printed.
type world struct {
	*app.Instance
	log, printed bytes.Buffer
}

// open loads an app of these files beside its main.lua, which declares `key` and then runs main.
func open(t testing.TB, main string, files map[string]string) *world {
	t.Helper()
	w, err := load(t, main, files)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func load(t testing.TB, main string, files map[string]string) (*world, error) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main.lua", "key = secret \"session-key\"\n"+main)
	for name, text := range files {
		write(name, text)
	}
	w := &world{}
	log := slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	secrets := func(name string) (string, bool) { return hidden, name == "session-key" }
	a, err := app.Load(dir, app.Options{Name: "test", Library: Open(log), Secrets: secrets})
	if err != nil {
		return nil, err
	}
	w.log.Reset()
	if w.Instance, err = a.Instance(func(s string) { w.printed.WriteString(s + "\n") }); err != nil {
		return nil, err
	}
	t.Cleanup(w.Close)
	return w, nil
}

// run gives what a snippet returns, joined with |, or "error: " and what it raised.
func (w *world) run(t testing.TB, src string) string {
	t.Helper()
	return w.runWith(t, luavm.NewMeter(context.Background(), 10_000_000), src)
}

func (w *world) runWith(t testing.TB, m *luavm.Meter, src string) string {
	t.Helper()
	if !strings.Contains(src, "return") {
		src = "return " + src
	}
	c, err := luavm.Compile("test.lua", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.VM.Run(m, c)
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, v := range got {
		out = append(out, w.VM.L.ToStringMeta(v).String())
	}
	return strings.Join(out, "|")
}

// set gives the snippets a global string.
func (w *world) set(name, text string) { w.VM.SetGlobal(name, lua.LString(text)) }

// luaCase is a snippet and what it must give. An error or reason may be given by its end, after "…".
type luaCase struct{ src, want string }

func (w *world) check(t *testing.T, cases []luaCase) {
	t.Helper()
	for _, c := range cases {
		got := w.run(t, c.src)
		start, end, open := strings.Cut(c.want, "…")
		if open && strings.HasPrefix(got, start) && strings.HasSuffix(got, end) || got == c.want {
			if strings.Contains(got, hidden) {
				t.Errorf("%s\nshows the secret: %q", c.src, got)
			}
			continue
		}
		t.Errorf("%s\n got %q\nwant %q", c.src, got, c.want)
	}
}

// spec: STO-3
func TestJSON(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		{`json.stringify({ b = { 1, 2.5, "x" }, a = true, n = 9007199254740992 })`, `{"a":true,"b":[1,2.5,"x"],"n":9007199254740992}`},
		{`json.stringify(json.array())`, `[]`},
		{`json.stringify({})`, `{}`},
		{`json.stringify(nil)`, `null`},
		{`json.stringify({ json.null, 1 })`, `[null,1]`},
		{`json.stringify(json.parse('{"a":[],"b":{},"c":null,"d":[null]}'))`, `{"a":[],"b":{},"d":[null]}`},
		{`json.parse("[1,2,3]")[2]`, `2`},
		{`json.parse('"\\u00fc"')`, `ü`},
		{`json.parse("{")`, `error: bad value: …`},
		{`json.parse("9007199254740993")`, `error: bad value: …`},
		{`json.parse(5)`, `error: test.lua:1: json.parse takes a string, not a number`},
		{`json.parse(key)`, `error: test.lua:1: json.parse takes a string, not a secret`},
		{`json.parse(("x"):rep(11 * 1024 * 1024))`, `error: test.lua:1: json.parse: 11534336 bytes are more than the 10 MiB it takes: parse it in parts`},
		{`json.stringify(print)`, `error: bad value: value: a function cannot be stored`},
		{`json.stringify({ k = { key } })`, `error: bad value: value.k[1]: a secret cannot be stored`},
		{`pcall(function() json.parse = nil end)`, `false|test.lua:1: library table is read-only`},
	})
}

// spec: STO-3
func TestUUID(t *testing.T) {
	w := open(t, "", nil)
	const form = `"^%x%x%x%x%x%x%x%x%-%x%x%x%x%-VER%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"`
	w.check(t, []luaCase{
		{`uuid.v4():match(` + strings.Replace(form, "VER", "4", 1) + `) ~= nil`, "true"},
		{`uuid.v7():match(` + strings.Replace(form, "VER", "7", 1) + `) ~= nil`, "true"},
		{`uuid.v4() == uuid.v4()`, "false"},
		{`local last = "" for i = 1, 1000 do local id = uuid.v7() if id <= last then return "not sorted" end last = id end return "sorted"`, "sorted"},
	})
}

func TestBlob(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		{`type(sql.blob("\0\1"))`, "userdata"},
		{`sql.blob(1)`, "error: test.lua:1: sql.blob takes a string, not a number"},
		{`json.stringify({ sql.blob("") })`, "error: bad value: value[1]: a blob cannot be stored"},
	})
}

// spec: STO-3
func TestLog(t *testing.T) {
	w := open(t, "", nil)
	for _, c := range []luaCase{
		{`log.debug("small")`, `{"level":"DEBUG","msg":"small","from":"app"}`},
		{`log.info("hello", { n = 3 })`, `{"level":"INFO","msg":"hello","from":"app","n":3}`},
		{`log.warn("x", { f = 1.5 })`, `{"level":"WARN","msg":"x","from":"app","f":1.5}`},
		{`log.error("x", { ok = false })`, `{"level":"ERROR","msg":"x","from":"app","ok":false}`},
		{`log.info(12)`, `{"level":"INFO","msg":"12","from":"app"}`},
		{`log.info("x", { t = { 1, 2 } })`, `{"level":"INFO","msg":"x","from":"app","t":"[1,2]"}`},
		{`log.info("x", { n = 0/0 })`, `{"level":"INFO","msg":"x","from":"app","n":"nan"}`},
		{`log.info("x", { null = json.null })`, `{"level":"INFO","msg":"x","from":"app","null":"null"}`},
		{`log.info("x", { object = objects "Missing" ("a") })`, `{"level":"INFO","msg":"x","from":"app","object":"Missing/a"}`},
	} {
		w.log.Reset()
		w.run(t, c.src)
		if got := strings.ToLower(strings.TrimSpace(w.log.String())); got != strings.ToLower(c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.src, got, c.want)
		}
	}
	w.log.Reset()
	w.run(t, `local t = {} for i = 1, 100 do t["k" .. i] = ("x"):rep(1024 * 1024) end log.info(("y"):rep(1024 * 1024), t) return`)
	if n := w.log.Len(); n == 0 || n > (maxLogFields+2)*(maxLogText+100) {
		t.Errorf("a line of %d bytes", n)
	}
	if !strings.Contains(w.log.String(), `"fields_left_off":68`) {
		t.Error("the line does not say that fields are left off")
	}
}

// spec: STO-3
func TestGetfile(t *testing.T) {
	w := open(t, "", map[string]string{"mails/welcome.txt": "Hello"})
	w.check(t, []luaCase{
		{`getfile("mails/welcome.txt")`, "Hello"},
		{`getfile("/mails/welcome.txt")`, "Hello"},
		{`getfile("mails/none.txt") == nil`, "true"},
		{`getfile("../../etc/passwd") == nil`, "true"},
		{`getfile("/etc/passwd") == nil`, "true"},
	})
}

// spec: STO-3
func TestRequire(t *testing.T) {
	count := `count = (count or 0) + 1 `
	w := open(t, `a, b = require "lib.text", require "lib.text" c = require "lib.plain"`, map[string]string{
		"lib/text.lua":  count + `return { up = function(s) return s:upper() .. require("lib.inner") end }` + "\n" + ``,
		"lib/inner.lua": `return "!"`,
		"lib/plain.lua": count + `require "lib.inner"`,
	})
	w.check(t, []luaCase{
		{`a.up("x")`, "X!"},
		{`a == b`, "true"},
		{`count`, "2"},
		{`c`, "true"},
		{`require "lib.text" == a`, "true"},
		{`require "lib.none"`, "error: test.lua:1: module 'lib.none' not found: the app has no file lib/none.lua"},
		{`require "../outside"`, "error: test.lua:1: module '../outside' not found…"},
	})
	for _, c := range []struct {
		main  string
		files map[string]string
		want  string
	}{
		{`require "none"`, nil, "main.lua:2: module 'none' not found: the app has no file none.lua"},
		{`require "a"`, map[string]string{"a.lua": `require "b"`, "b.lua": "\nrequire \"a\""}, "b.lua:2: module 'a' requires itself: a.lua -> b.lua -> a.lua"},
		{`require "a"`, map[string]string{"a.lua": `require "a"`}, "a.lua:1: module 'a' requires itself: a.lua -> a.lua"},
		{`require "a"`, map[string]string{"a.lua": "\n\nx = = 1"}, "a.lua:3: "},
	} {
		if _, err := load(t, c.main, c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v\n got %v\nwant %s", c.main, c.files, err, c.want)
		}
	}
}

// spec: HTTP-6
func TestSecretIsOpaque(t *testing.T) {
	w := open(t, "", nil)
	w.check(t, []luaCase{
		{`tostring(key)`, "secret session-key"},
		{`"a" .. tostring(key)`, "asecret session-key"},
		{`#key:reveal()`, "31"},
		{`return pcall(function() return key .. "" end)`, "false|…"},
		{`pcall(function() key.text = 1 end)`, "false|…"},
		{`getmetatable(key)`, "nil"},
		{`string.format("%s", tostring(key))`, "secret session-key"},
		{`error(key)`, "error: (error object is a userdata value)"},
		{`error("bad " .. tostring(key))`, "error: test.lua:1: bad secret session-key"},
		{`json.stringify(key)`, "error: bad value: value: a secret cannot be stored"},
		{`base64.encode(key)`, "error: test.lua:1: base64.encode takes a string, not a secret"},
		{`hex.encode(key)`, "error: test.lua:1: hex.encode takes a string, not a secret"},
		{`url.encode(key)`, "error: test.lua:1: url.encode takes a string, not a secret"},
		{`url.query({ k = key })`, `error: test.lua:1: url.query: "k" must be a string, a number, a boolean or an array of them, not a secret`},
		{`secret "session-key"`, "error: test.lua:1: secret is for the top level of the app only"},
	})
	w.run(t, `print(key) log.info(key, { k = key, t = { key } }) log.info(tostring(key)) print(pcall(error, key)) return`)
	if got := w.printed.String(); got != "secret session-key\nfalse\tsecret session-key\n" {
		t.Errorf("printed %q", got)
	}
	want := `{"level":"INFO","msg":"secret session-key","from":"app",`
	if got := w.log.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, `"k":"secret session-key"`) || strings.Contains(got, hidden) {
		t.Errorf("logged %s", got)
	}
}

// spec: HTTP-6
func TestMissingSecretRefusesTheApp(t *testing.T) {
	_, err := load(t, "\nlocal other = secret \"other.key\"", nil)
	if err == nil || !strings.Contains(err.Error(), "main.lua:3:") || !strings.Contains(err.Error(), "WEIR_SECRET_OTHER_KEY") {
		t.Errorf("got %v", err)
	}
}

func TestWorkIsCharged(t *testing.T) {
	w := open(t, "", nil)
	w.set("big", strings.Repeat("a", 8<<20))
	w.set("doc", "["+strings.Repeat("1,", 1<<20)+"1]")
	for _, src := range []string{
		`crypto.sha256(big)`, `crypto.hmac(key, big)`, `crypto.equal(big, big)`, `base64.encode(big)`, `base64.url_encode(big)`,
		`base64.decode(big)`, `hex.encode(big:sub(1, 8000000))`, `hex.decode(big)`, `url.encode(big:sub(1, 5000000))`, `url.decode(big)`,
		`url.parse_query(big)`, `url.query({ a = big:sub(1, 5000000) })`, `json.parse(doc)`, `json.stringify(big)`, `crypto.password_hash("x")`,
	} {
		m := luavm.NewMeter(context.Background(), 100_000)
		if got := w.runWith(t, m, src+" return 'ran on'"); !strings.Contains(got, luavm.ErrBudget.Error()) {
			t.Errorf("%s was not cut: %.100s", src, got)
		}
	}
	for _, src := range []string{`hex.encode(big .. "a")`, `base64.encode(big .. big)`, `url.encode(big)`, `url.query({ a = big })`} {
		if got := w.run(t, src); !strings.Contains(got, "more than the 16 MiB of one string: do it in parts") {
			t.Errorf("%s: %.100s", src, got)
		}
	}
}
