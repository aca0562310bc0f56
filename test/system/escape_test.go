package system

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

// escape is a body of a method, which may use `other`, a handle, and what must come of it: a match of the results as
// JSON, or of "error: " and what was raised. Those that use state are run in an object only; so are those that end by
// their budget, which is small there.
type escape struct{ lua, want string }

const (
	cut     = `^error: (budget exceeded|memory limit): `
	raised  = `^error: `
	none    = `^$`
	noTable = `^error: .*(table|handle|object|index|field|call|arithmetic|concatenate|compare|length|read-only|protected|own)`
)

// What might lead out of the sandbox, or might take the VM down: known ways of Lua 5.1 and of its implementation in Go.
var escapes = []escape{
	// Strings and their metatable.
	{`return getmetatable("")`, `^null$`}, {`local s = "x" s.y = 1`, raised}, {`return ("x").y == nil, ("x").rep == string.rep`, `^true true$`},
	{`return pcall(rawset, "", "x", 1)`, `^false `}, {`return pcall(setmetatable, "x", { __index = {} })`, `^false `},
	// The names of what is not here.
	{`return _G, _ENV, _LOADED, _REQUIREDNAME, arg, jit, ffi, bit32, utf8`, `^(null ?)*$`}, {`return string.dump, string.pack, table.unpack, math.randomseed and 1, os.execute, coroutine.close`, `^null null null 1 null$|^null null null 1( null)*$`},
	{`return pcall(require, "io")`, `^false `}, {`return pcall(require, "main\0")`, `^false `}, {`return pcall(require, "../app/main")`, `^false `}, {`return pcall(require, "/etc/passwd")`, `^false `},
	{`return pcall(require, "web/../../data/id")`, `^false `}, {`return pcall(require, {})`, `^false `}, {`return pcall(require, ("x"):rep(1e6)) == false`, `^true$`},
	{`return pcall(require, setmetatable({}, { __tostring = function() return "main" end }))`, `^false `},
	{`return getfile("../main.lua"), getfile("web/../../data/id"), getfile("/proc/self/environ"), getfile("\0"), getfile("")`, `^(null ?)*$`},
	// Handles and classes.
	{`return type(getmetatable(other)), type(getmetatable(Other))`, `^"(nil|boolean|string)" "(nil|boolean|string)"$`},
	{`setmetatable(other, {})`, raised}, {`setmetatable(Other, {})`, raised}, {`other.ping = print`, raised}, {`Other.get = print`, raised}, {`rawset(other, "x", 1)`, raised}, {`rawget(other, "ping")`, raised},
	{`for k in pairs(other) do return k end`, raised}, {`return next(other)`, raised}, {`return #other`, raised}, {`return other .. "x"`, raised}, {`return other + 1`, raised}, {`return other < other`, raised}, {`return other()`, raised},
	{`return rawequal(other, Other("o")), other == Other("o"), other == Other("p")`, ` true false$`},
	{`return setmetatable({}, { __index = other }):ping()`, raised}, {`return other.ping({})`, raised}, {`return other.ping()`, raised}, {`return other.ping("Other/o")`, raised},
	{`return Other({ name = "o" }):ping()`, raised}, {`return Other(other):ping()`, raised}, {`return Other(nil):ping()`, raised}, {`return Other(0/0):ping()`, raised}, {`return Other(setmetatable({}, { __tostring = function() return "o" end })):ping()`, raised},
	{`return Other("a\0b"):ping()`, raised + "bad name: "}, {`return Other(("x"):rep(129)):ping()`, raised + "bad name: "}, {`return Other("../../x"):ping()`, `^"pong"$`},
	{`return json.stringify(other)`, raised}, {`return json.stringify({ a = { Other } })`, raised + `.*a\[1\]`}, {`return json.stringify({ print })`, raised}, {`return json.stringify({ [other] = 1 })`, raised}, {`return { coroutine.create(print) }`, raised},
	{`return other:echo(other)`, raised}, {`return other["_" .. "hidden"](other)`, raised}, {`return other:init()`, raised}, {`return other["weir:edges"](other)`, raised}, {`return other[""](other)`, raised}, {`return other[1](other)`, raised}, {`return other[{}](other)`, raised},
	// state.
	{`setmetatable(state, {})`, raised}, {`rawset(state, "sql", 1)`, raised}, {`state.sql = 1`, raised}, {`state.sql.exec = print`, raised}, {`state.store.get = print`, raised}, {`rawset(state.sql, "exec", print)`, raised}, {`setmetatable(state.store, nil)`, raised},
	{`return type(getmetatable(state)), type(getmetatable(state.sql)), type(getmetatable(state.store))`, `^("(nil|boolean|string)" ?){3}$`},
	{`return state.sql.exec({}, "SELECT 1")`, `.`}, {`return pcall(state.publish, {}, "x")`, `^false `}, {`return pcall(state.sql.query, nil, "SELECT 1 AS a")`, `.`}, {`state.name = "Other"`, raised}, {`state.id = "Other/o"`, raised}, {`return state .. ""`, raised}, {`return state()`, raised}, {`return state`, raised},
	{`state:follow({ name = "o", class = "Other", id = "Other/o" }, "said")`, raised}, {`state:follow(setmetatable({}, { __index = other }), "said")`, raised}, {`state:follow("Other/o", "said")`, raised}, {`state:follow(Other, "said")`, raised}, {`state:follow(state, "said")`, raised},
	{`state:follow(other, "said", setmetatable({}, { __index = function() while true do end end }))`, none}, {`state:drop_followers({ name = "o" })`, `.*`}, {`state:set_alarm(setmetatable({}, { __tostring = function() return "1s" end }))`, raised},
	{`state[nil] = 1`, raised}, {`state[0/0] = 1`, `.*`}, {`state[{}] = {} return 1`, `.`}, {`state.x = state return state.x == state`, `^true$`}, {`state.co = coroutine.create(function() coroutine.yield() state.store:set("x", 1) end) coroutine.resume(state.co)`, none},
	// Libraries and globals.
	{`jwt.verify = function() return { sub = "eve" } end`, raised}, {`rawset(jwt, "verify", print)`, raised}, {`setmetatable(crypto, {})`, raised}, {`crypto.equal = function() return true end`, raised}, {`json.null.x = 1`, raised}, {`setmetatable(json.null, {})`, raised},
	{`table.insert(json, 1)`, raised}, {`table.sort(jwt, function() return true end) jwt[1] = 1`, raised}, {`object = print`, raised}, {`pcall = nil`, raised}, {`object "X" {}`, raised}, {`on "fetch" (print)`, raised}, {`secret "x"`, raised}, {`kv "x"`, `.*`}, {`connection "X" {}`, raised},
	{`return getmetatable(json.array()), getmetatable(json.null), getmetatable(sql.blob("x"))`, `^((null|false) ?)*$`}, {`return sql.blob("x").y`, `.*`}, {`local b = sql.blob("x") b.y = 1`, raised}, {`return sql.blob("x")()`, raised},
	{`local t = setmetatable({}, { __metatable = "mine" }) setmetatable(t, nil)`, raised}, {`local t = setmetatable({}, { __metatable = false }) setmetatable(t, {})`, raised},
	// string.format and its widths.
	{`return ("%99999d"):format(1)`, raised}, {`return ("%.99999f"):format(1)`, raised}, {`return ("%1000000000s"):format("x")`, raised}, {`return ("%*d"):format(5, 1)`, raised}, {`return ("%n"):format(1)`, raised}, {`return ("%"):format(1)`, raised}, {`return ("%d"):format()`, raised}, {`return ("%d"):format("x")`, raised}, {`return ("%y"):format(1)`, raised},
	{`return ("%c%c"):format(0, 255) == "\0\255"`, `^true$`}, {`return #("%99s"):format("x"), #("%.99f"):format(1)`, `^99 101$`}, {`return ("%d"):format(0/0)`, `.`}, {`return ("%d"):format(1e300)`, `.`}, {`return ("%x"):format(-1)`, `.`}, {`return #("%s"):rep(5000):format(1)`, raised},
	{`return ("%s"):format(setmetatable({}, { __tostring = function() return {} end }))`, raised}, {`return ("%s"):format(setmetatable({}, { __tostring = function() error("mine", 0) end }))`, raised + `mine$`}, {`return ("%q"):format("\0\r\n\"\\") ~= nil`, `^true$`}, {`return ("%s"):format(other)`, `^"Other/o"$`},
	// Text that grows.
	{`return hex.encode(("x"):rep(9e6))`, raised + `.*16 MiB`}, {`return base64.encode(("x"):rep(13e6))`, cut}, {`return url.encode(("\1"):rep(6e6))`, raised + `.*16 MiB`}, {`return crypto.random(1e9)`, raised}, {`return crypto.random(-1)`, raised}, {`return crypto.random(0/0)`, raised},
	{`local s = ("x"):rep(16e6) return json.stringify({ s, s })`, raised}, {`return json.stringify(("\1"):rep(4e6))`, raised}, {`local s = "x" while true do s = s:upper() .. s:lower() end`, cut}, {`local s = "" while true do s = s .. "x" end`, cut}, {`return table.concat({}, "x", 1, 1e9)`, raised}, {`return table.concat({ {} })`, raised},
	{`return string.char(256)`, raised}, {`return string.char(-1)`, raised}, {`return ("x"):rep(-1), ("x"):rep(0), ("x"):rep(0/0) == nil`, `^"" "" `}, {`return ("x"):rep(1/0)`, raised}, {`return (""):rep(1e15)`, `^""$|` + cut}, {`return ("x"):byte(1, 1e9)`, `^120$`}, {`return (("x"):rep(1e5):byte(1, -1))`, raised},
	{`return (("x"):gsub("", ("y"):rep(1e6), 1e9)) == nil`, `.`}, {`local n = 0 for _ in ("x"):rep(1e6):gmatch("") do n = n + 1 end return n`, cut},
	// A value that is small, and large when it is written out.
	{`local t = {} for _ = 1, 40 do t = { t, t } end return json.stringify(t)`, raised}, {`local t = {} for _ = 1, 40 do t = { t, t } end return t`, raised}, {`local t = {} for _ = 1, 40 do t = { t, t } end return other:echo(t)`, raised}, {`local t = {} for _ = 1, 40 do t = { t, t } end error(t)`, raised},
	{`local t = {} for _ = 1, 40 do t = { t, t } end state.store:set("x", t)`, raised}, {`local t = {} for _ = 1, 40 do t = { t, t } end state:publish("said", t)`, raised}, {`local t = {} for _ = 1, 40 do t = { t, t } end log.info("x", { t = t })`, `.*`}, {`local t = {} for _ = 1, 40 do t = { t, t } end return jwt.sign(t, ("k"):rep(32), { alg = "HS256" })`, raised},
	{`local t = {} t.t = t return t`, raised}, {`local t = {} for _ = 1, 1e4 do t = { t } end return t`, raised}, {`return json.parse(("["):rep(1e6))`, raised}, {`return json.parse('{"a":' .. ("9"):rep(1e5) .. "}")`, raised}, {`return json.parse("1e999999999")`, raised},
	// Patterns.
	{`return ("x"):find(("("):rep(1e4))`, raised}, {`return ("x"):find("%")`, raised}, {`return ("x"):find("[")`, raised}, {`return ("x"):find("[%")`, raised}, {`return ("x"):find("%f")`, raised}, {`return ("x"):find("%b")`, raised}, {`return ("x"):find("(()")`, raised}, {`return ("x"):find("%1")`, raised}, {`return ("a"):rep(40):match(("(a)"):rep(40))`, raised},
	{`return ("a"):rep(1e5):find(("a?"):rep(1e4) .. "b")`, raised}, {`return ("a"):rep(1e5):find(".-.-.-.-b")`, cut}, {`return ("("):rep(1e5):find("%b()")`, `.*`}, {`return (("x"):gsub("x", "%9"))`, raised}, {`return (("x"):gsub("x", { x = {} }))`, raised}, {`return ("x"):find("x", 1e300), ("x"):find("x", -1e300), ("x"):sub(-1e300, 1e300)`, `"x"$`},
	// Coroutines.
	{`coroutine.yield(1)`, raised}, {`return pcall(coroutine.wrap(function() coroutine.yield(1) end))`, `^true 1$`}, {`local f f = coroutine.wrap(function() f() end) f()`, raised}, {`local co co = coroutine.create(function() return coroutine.resume(co) end) return coroutine.resume(co)`, `^true false `},
	{`local f = coroutine.wrap(function() return other:ping() end) return f()`, `^"pong"$`}, {`local f = coroutine.wrap(function() return state:_yields() end) return f()`, `.*`}, {`local function f() return coroutine.wrap(f)() end f()`, raised}, {`local t = {} for i = 1, 1e6 do t[i] = coroutine.create(print) end`, cut}, {`while true do coroutine.wrap(function() coroutine.yield() end)() end`, cut},
	{`local f = coroutine.wrap(function() while true do pcall(coroutine.yield) end end) while true do f() end`, cut}, {`coroutine.resume(coroutine.create(coroutine.yield))`, none}, {`return coroutine.resume(coroutine.create(coroutine.resume), coroutine.running())`, `^(true )?false `}, {`coroutine.wrap(coroutine.wrap)()`, raised}, {`return coroutine.create(1)`, raised}, {`return coroutine.status({})`, raised},
	{`local t = setmetatable({}, { __index = coroutine.wrap(function() while true do coroutine.yield(1) end end) }) return t.a + t.b`, `^2$`}, {`local ok = pcall(coroutine.wrap(function() error(coroutine.running()) end)) return ok`, `^false$`},
	// Errors that are no text, and errors in errors.
	{`error(setmetatable({}, { __tostring = function() error("again") end }))`, raised}, {`error(setmetatable({}, { __index = function() while true do end end }))`, raised}, {`error(other)`, raised}, {`error(state)`, raised}, {`error(coroutine.create(print))`, raised}, {`error(nil)`, raised}, {`error(print, 1e9)`, raised}, {`error("x", -1e9)`, raised}, {`error(json.null)`, raised},
	{`return xpcall(error, error, "x")`, `^false`}, {`local function h() error("x") end return xpcall(error, h)`, `^false`}, {`local function h(e) return xpcall(error, h, e) end return (xpcall(error, h))`, `^false`}, {`while true do xpcall(error, error) end`, cut}, {`for _ in function() return (pcall(error)) == false end do end`, cut}, {`return xpcall(error, coroutine.wrap(function() while true do end end))`, cut},
	{`return pcall(pcall, pcall, pcall, error)`, `^true true true false`}, {`local function f() return pcall(f) end return f()`, `.`}, {`local function f() return xpcall(f, f) end return (f())`, `.`}, {`return select("#", pcall(unpack, {}, 1, 1e8))`, `^2$`}, {`return pcall(error, ("x"):rep(1e6)) == false`, `^true$`}, {`error(("x"):rep(2e6))`, raised},
	// Comparators, iterators, keys.
	{`local t = {} for i = 1, 300 do t[i] = i % 7 end table.sort(t, function() return true end) return #t`, `^300$|^error: .*order`}, {`local t = {} for i = 1, 300 do t[i] = i % 7 end table.sort(t, function() t[#t] = nil return false end)`, `.*`}, {`local t = { 3, 1, 2 } table.sort(t, function(a, b) t[#t + 1] = 1 return a < b end)`, `.*`}, {`table.sort({ 1, "x", {} })`, raised}, {`table.sort({ 3, nil, 1, nil, 2 })`, `.*`}, {`table.sort({ 2, 1 }, 5)`, raised}, {`table.sort({ 2, 1 }, error)`, raised},
	{`return next({}, "x")`, `.*`}, {`local t = { 1 } for k in pairs(t) do t[k .. "x"] = 1 end`, `.*`}, {`local t = { a = 1, b = 2 } for k in pairs(t) do t[k] = nil end return next(t)`, `^null$`}, {`for i = 1, 1/0 do end`, cut}, {`for i = 1, 2, 0 do end`, `.*`}, {`for i = 0/0, 1 do return i end`, `.*`}, {`for i = "1", 2 do return i end`, `.*`}, {`local t = {} t[1e308] = 1 t[-1e308] = 2 t[2^53] = 3 return t[2^53]`, `^3$`},
	{`return ipairs(nil)`, raised}, {`for _ in ipairs(setmetatable({}, { __index = function() return 1 end })) do end return 1`, `^1$|` + cut}, {`table.remove({}, 1e300)`, `.*`}, {`table.insert({}, 1e300, 1)`, `.*`}, {`table.insert({ 1 }, -1e15, 1)`, `.*`}, {`return table.maxn({ [1e300] = 1 })`, `.`}, {`return unpack({}, -1e9, 1e9)`, raised}, {`return select(1e300, 1)`, `.*`}, {`return select(-5, 1)`, raised},
	// Metamethods without end.
	{`local t = {} t.__index = t setmetatable(t, t) return t.x`, raised + `|` + none}, {`local t = {} t.__newindex = t setmetatable(t, t) t.x = 1`, `.*`}, {`local t = {} for _ = 1, 1e4 do t = setmetatable({}, { __index = t }) end return t.x`, `.*`}, {`local f = print for _ = 1, 1e4 do f = setmetatable({}, { __call = f }) end f()`, `.*`}, {`local t = {} setmetatable(t, { __call = t }) t()`, raised},
	{`local mt = {} mt.__lt = function(a, b) return a < b end local a, b = setmetatable({}, mt), setmetatable({}, mt) return a < b`, raised}, {`local mt = {} mt.__eq = function(a, b) return a == b end return setmetatable({}, mt) == setmetatable({}, mt)`, raised}, {`local mt = {} mt.__concat = function(a, b) return a .. b end return setmetatable({}, mt) .. "x"`, raised}, {`local mt = {} mt.__unm = function(a) return -a end return -setmetatable({}, mt)`, raised}, {`local mt = {} mt.__len = function(a) return #a end return #setmetatable({}, mt)`, `.`},
	{`local mt = {} mt.__add = coroutine.yield return setmetatable({}, mt) + 1`, raised}, {`local t = setmetatable({}, { __tostring = tostring }) return tostring(t)`, raised}, {`return tostring(setmetatable({}, { __tostring = 5 }))`, `.`}, {`print(setmetatable({}, { __tostring = function() while true do end end }))`, cut}, {`print(setmetatable({}, { __tostring = function() end }))`, `.*`}, {`print(("\0\27[31m\r"):rep(1e5), other, nil, state, print)`, none}, {`print(unpack({}, 1, 500))`, none},
	{`setmetatable({}, { __gc = function() error("x") end, __mode = "kv", __close = print }) return 1`, `^1$`},
	// goto.
	{`local t = {} for i = 1, 3 do t[i] = function() return i end if i == 2 then goto done end end ::done:: return t[1]() + t[2]()`, `^3$`}, {`local n = 0 ::top:: n = n + 1 if n < 10 then goto top end return n`, `^10$`}, {`::a:: do goto b end ::b:: goto a`, cut}, {`for i = 1, 3 do for j = 1, 3 do if j == 2 then goto next end end ::next:: end return 1`, `^1$`},
	// Numbers and times.
	{`return math.random(0)`, raised}, {`return math.random(1, 1e300)`, `.`}, {`return math.random(2, 1)`, raised}, {`return math.random(0/0)`, `.`}, {`return os.date(("%c"):rep(1e5)) ~= nil`, `.`}, {`return os.date("%", 0)`, `.*`}, {`return os.date("%Y", 1e300)`, `.`}, {`return os.date("*t", -1e300)`, `.`}, {`return os.time({ year = 1e300, month = 1, day = 1 })`, `.`}, {`return os.time({})`, raised}, {`return tonumber("1", 37)`, raised}, {`return tonumber("1", 0/0)`, `.`}, {`return 1 % 0 ~= 1 % 0, 2^1024`, raised},
}

// escapeApp makes an app in which each body is a method, and a handler for GET.
func escapeApp(list []escape) string {
	var b strings.Builder
	b.WriteString("-- main.lua --\nlocal Other = objects \"Other\"\nlocal other = Other(\"o\")\nlocal gets = {}\n")
	b.WriteString(`object "Other" {
    publishes = { said = "public" },
    ping = function() return "pong" end, echo = function(_, v) return v end, _hidden = function() return "hidden" end,
}
local function fine()
    local t = { 3, 1, 2 }
    table.sort(t)
    local caught = select(2, pcall(error, "mine", 0))
    local co = coroutine.wrap(function(a) return coroutine.yield(a) end)
    return ("%s %5.1f %s"):format(("ab"):rep(2):upper(), 1.25, table.concat(t, ",")), ("x=1"):match("(%w)=(%d)"), caught, co(7), json.stringify(json.parse('{"a":[1,null]}')),
        jwt.verify("x.y.z", "0123456789abcdef0123456789abcdef", { alg = "HS256" }) == nil, crypto.equal("a", "b"), tostring(other), other:ping()
end
`)
	b.WriteString("object \"A\" {\n    publishes = { said = \"public\" }, _yields = function() coroutine.yield(1) end,\n    fine = function(state) state.store:set(\"n\", 1) return state.sql:query_one(\"SELECT 1 AS a\").a, fine() end,\n")
	for i, e := range list {
		fmt.Fprintf(&b, "    s%d = function(state)\n%s\n end,\n", i, e.lua)
	}
	b.WriteString("}\n")
	for i, e := range list {
		if overHTTP(e) {
			fmt.Fprintf(&b, "gets.s%d = function()\n%s\n end\n", i, e.lua)
		}
	}
	b.WriteString("gets.fine = fine\non \"fetch\" (function(request) return { body = json.stringify({ gets[request.path:sub(2)]() }) } end)\n")
	return b.String()
}

// overHTTP says whether a handler of requests can run it: nothing of an object's, and not a budget that is ten million there.
func overHTTP(e escape) bool {
	return !strings.Contains(e.lua, "state") && !strings.Contains(e.want, "budget") && !strings.Contains(e.lua, "1e9") && !strings.Contains(e.lua, "1e300")
}

// Each ends as it must; the object, its VM, and another object work afterwards as before, and so does the VM of the
// gateway that ran it.
// spec: BOX-1, BOX-2, BOX-3, OBJ-11, VAL-7
func TestEscapes(t *testing.T) {
	list := escapes
	const fine = `1 "ABAB   1.2 1,2,3" "x" "mine" 7 "{\"a\":[1,null]}" true false "Other/o" "pong"`
	testkit.Bubble(t, txtar.Parse([]byte(escapeApp(list))), hostd.Limits{Budget: 400_000}, func(t *testing.T, s *testkit.System) {
		check := func(after string) {
			t.Helper()
			for _, id := range []string{"A/x", "A/y"} {
				out, err := s.Call(id, "fine")
				if got := strings.Join(out, " "); err != nil || got != fine {
					t.Fatalf("%s after %s: %s %v\nwant %s", id, after, got, err, fine)
				}
			}
		}
		check("the start")
		_, _, before, err := s.HTTP("GET", "/fine", "")
		if err != nil || !strings.Contains(before, "pong") {
			t.Fatal(before, err)
		}
		for i, e := range list {
			out, err := s.Call("A/x", fmt.Sprintf("s%d", i))
			got := strings.Join(out, " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if !regexp.MustCompile(e.want).MatchString(got) || strings.Contains(got, "internal: ") || strings.Contains(got, "goroutine ") {
				t.Errorf("%s\n got %.300s\nwant %s", e.lua, got, e.want)
			}
			check(e.lua)
			if !overHTTP(e) {
				continue
			}
			if status, _, body, err := s.HTTP("GET", fmt.Sprintf("/s%d", i), ""); err != nil || status != 200 && status != 500 {
				t.Errorf("%s over HTTP: %d %.200s %v", e.lua, status, body, err)
			}
			if status, _, body, err := s.HTTP("GET", "/fine", ""); err != nil || status != 200 || body != before {
				t.Fatalf("the gateway after %s: %d %s %v", e.lua, status, body, err)
			}
		}
	})
}
