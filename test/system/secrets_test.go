package system

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const secretsApp = `
-- main.lua --
local key = secret "session-key"
local Box = kv "box"
local P = object "P" {
    publishes = { e = "public" },
    tell = function(state, text) error("told " .. text) end,
    raise = function(state) error(key) end,
    give = function(state) return key end,
    announce = function(state) state:publish("e", { key = key }) end,
    keep = function(state) state.store:set("k", key) end,
    bind = function(state) state.sql:query("SELECT ?", { key }) end,
}
local Ws = connection "Ws" {
    frame = function(conn, how)
        if how == "send" then conn:send({ key = key }) end
        if how == "state" then conn.state.key = key end
        if how == "close" then conn:close(3000, key) end
        error(key)
    end,
}
local function caught(f)
    local ok, err = pcall(f)
    return { ok = ok, err = tostring(err) }
end
local paths = {
    ["/tostring"] = function() return tostring(key) .. " " .. tostring({ key }) .. " " .. type(key) end,
    ["/format"] = function() return caught(function() return ("%s"):format(key) end) end,
    ["/concat"] = function() return caught(function() return "x" .. key end) end,
    ["/join"] = function() return caught(function() return table.concat({ key }) end) end,
    ["/index"] = function() return caught(function() return key[1] or key.value or key.text or "none" end) end,
    ["/pairs"] = function()
        return caught(function()
            local out = ""
            for k, v in pairs(key) do out = out .. tostring(k) .. tostring(v) end
            return out
        end)
    end,
    ["/meta"] = function() return caught(function() return getmetatable(key).__index.text or "none" end) end,
    ["/json"] = function() return caught(function() return json.stringify({ key }) end) end,
    ["/kv"] = function() return caught(function() Box:set("k", key) end) end,
    ["/encode"] = function() return caught(function() return base64.encode(key) end) end,
    ["/arg"] = function() return caught(function() P("p"):tell(key) end) end,
    ["/length"] = function() return caught(function() return #key end) end,
    ["/body"] = function() return nil, { body = key } end,
    ["/table"] = function() return nil, { body = { key } } end,
    ["/header"] = function() return nil, { headers = { ["X-Key"] = key }, body = "x" } end,
    ["/raise"] = function() error(key) end,
    ["/raisetable"] = function() error({ key = key }) end,
    ["/log"] = function() log.info("a secret", { key = key }) log.error(key) print(key, { key }) return "logged" end,
    ["/badsign"] = function() return jwt.sign({ a = 1 }, key, { alg = "RS256" }) end,
    ["/badverify"] = function() return tostring(jwt.verify("x.y.z", key, { alg = "ES256" })) end,
    ["/call"] = function() P("p"):raise() end,
    ["/sign"] = function() return jwt.verify(jwt.sign({ sub = "ada" }, key, { alg = "HS256" }), key, { alg = "HS256" }) end,
    ["/hmac"] = function() return tostring(crypto.hmac(key, "x") == crypto.hmac(key:reveal(), "x")) end,
    ["/equal"] = function() return tostring(crypto.equal(key, key:reveal())) end,
    ["/reveal"] = function() return key:reveal() end,
}
on "fetch" (function(r)
    if r.upgrade then return r:upgrade(Ws, nil, P("p")) end
    local out, response = paths[r.path]()
    return response or { body = out }
end)
`

// records is a log that a test reads.
type records struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(p)
}

func (r *records) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.String()
}

// logged runs an app whose log, at the finest level, the test reads.
func logged(t *testing.T, files string, secrets map[string]string, test func(t *testing.T, s *testkit.System, log *records)) {
	t.Helper()
	archive, dir := txtar.Parse([]byte(files)), t.TempDir()
	testkit.WriteApp(t, dir, archive)
	testkit.Bubble(t, archive, hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		log := &records{}
		s.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))
		a, err := app.Load(dir, app.Options{Name: "app", Library: lualib.Open(s.Log), Secrets: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok }})
		if err != nil {
			t.Fatal(err)
		}
		s.App = a
		s.Restart()
		test(t, s, log)
	})
}

// A secret is opaque: only reveal gives its text; nothing else that an app does with it shows it to a client, in an
// error, or in the log.
// spec: HTTP-6
func TestSecretsStayHidden(t *testing.T) {
	const text = "hush-hush-hush-hush-hush-hush-32"
	logged(t, secretsApp, map[string]string{"session-key": text}, func(t *testing.T, s *testkit.System, log *records) {
		for _, path := range []string{"tostring", "format", "concat", "join", "index", "pairs", "meta", "json", "kv", "encode", "arg", "length", "body", "table", "header", "raise", "raisetable",
			"log", "badsign", "badverify", "call"} {
			_, header, body, err := s.HTTP("GET", "/"+path, "")
			if err != nil || strings.Contains(body, text) || strings.Contains(header.Get("X-Key"), text) || strings.Contains(body, "aHVzaC") {
				t.Errorf("%s: %v %s %v", path, header, body, err)
			}
		}
		for _, method := range []string{"raise", "give", "announce", "keep", "bind"} {
			if out, err := s.Call("P/p", method); err == nil || strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v %v", method, out, err)
			}
		}
		for _, how := range []string{"send", "state", "close", "raise"} {
			c, err := s.Connect("/ws")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Send(`"` + how + `"`); err != nil {
				t.Fatal(err)
			}
			if frame, err := c.Next(); err == nil || strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "1011") {
				t.Errorf("%s: %s %v", how, frame, err)
			}
		}
		time.Sleep(time.Second)
		if i := strings.Index(log.text(), text); i >= 0 {
			t.Errorf("the secret is in the log: …%s", log.text()[max(0, i-200):i+len(text)])
		}
		for path, want := range map[string]string{"sign": `"sub":"ada"`, "hmac": "true", "equal": "true", "reveal": text} {
			if _, _, body, err := s.HTTP("GET", "/"+path, ""); err != nil || !strings.Contains(body, want) {
				t.Errorf("%s: %s %v", path, body, err)
			}
		}
	})
}

// A missing secret refuses the app at load, by name and place; a secret inside a function is refused too.
// spec: HTTP-6
func TestSecretsAtLoad(t *testing.T) {
	for name, c := range map[string]struct{ lua, want string }{
		"missing":    {"local a = 1\nlocal k = secret \"no-such\"\non \"fetch\" (function() end)", `main\.lua:2.*no-such`},
		"no name":    {"local k = secret \"\"\non \"fetch\" (function() end)", `main\.lua:1`},
		"a path":     {"local k = secret \"../x\"\non \"fetch\" (function() end)", `main\.lua:1`},
		"not a text": {"local k = secret {}\non \"fetch\" (function() end)", `main\.lua:1`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.lua"), []byte(c.lua), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := app.Load(dir, app.Options{Name: "app", Library: lualib.Open(testkit.Logger(t)), Secrets: func(name string) (string, bool) { return "x", name == "session-key" }})
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	logged(t, "-- main.lua --\non \"fetch\" (function() return { body = secret(\"session-key\"):reveal() } end)\n", map[string]string{"session-key": "hush-hush"},
		func(t *testing.T, s *testkit.System, _ *records) {
			if status, _, body, err := s.HTTP("GET", "/", ""); err != nil || status != 500 || strings.Contains(body, "hush") {
				t.Errorf("in a handler: %d %s %v", status, body, err)
			}
		})
}

// An error of the handler is a 500 whose id, another one every time, finds what happened in the log, and only there.
// spec: HTTP-2
func TestCorrelation(t *testing.T) {
	logged(t, "-- main.lua --\nlocal P = object \"P\" { fail = function() error(\"detail in P\") end }\non \"fetch\" (function(r)\n    if r.path == \"/call\" then P(\"x\"):fail() end\n    error(\"detail of \" .. r.path)\nend)\n", nil,
		func(t *testing.T, s *testkit.System, log *records) {
			seen := map[string]bool{}
			for path, detail := range map[string]string{"/a": "detail of /a", "/b": "detail of /b", "/call": "detail in P"} {
				status, _, body, err := s.HTTP("GET", path, "")
				id := regexp.MustCompile(`[0-9a-f]{8}[0-9a-f-]*`).FindString(body)
				if err != nil || status != 500 || id == "" || seen[id] || strings.Contains(body, "detail") {
					t.Errorf("%s: %d %s %v", path, status, body, err)
				}
				seen[id] = true
				found := false
				for line := range strings.Lines(log.text()) {
					found = found || strings.Contains(line, id) && strings.Contains(line, detail)
				}
				if !found {
					t.Errorf("%s: no line of the log has %s and %q:\n%s", path, id, detail, log.text())
				}
			}
		})
}
