package luavm

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// What Lua 5.1 answers, by its manual and its reference implementation.
func TestPatternResults(t *testing.T) {
	check(t, []luaCase{
		{`("hello world"):find("wor"), ("hello world"):find("l+")`, "7|3|4"},
		{`return ("hello world"):find("o w")`, "5|7"},
		{`return ("hello"):find("")`, "1|0"},
		{`return ("hello"):find("", 6)`, "6|5"},
		{`return ("hello"):find("", 10)`, "6|5"},
		{`return ("a.b"):find(".", 1, true)`, "2|2"},
		{`return ("a.b"):find("%.")`, "2|2"},
		{`return ("abc"):find("b", -1)`, "nil"},
		{`return ("abc"):find("b", -2)`, "2|2"},
		{`return ("abc"):find("b", -10)`, "2|2"},
		{`return ("key = value"):match("^(%w+)%s*=%s*(%w+)$")`, "key|value"},
		{`return ("  trim  "):match("^%s*(.-)%s*$")`, "trim"},
		{`return ("2024-05-06"):match("(%d+)-(%d+)-(%d+)")`, "2024|05|06"},
		{`return ("abc"):match("()b()")`, "2|3"},
		{`return ("hello"):match(".-l")`, "hel"},
		{`return ("hello"):match(".*l")`, "hell"},
		{`return ("hello"):match("x?")`, ""},
		{`return ("hello"):match("xyz")`, "nil"},
		{`return ("THE (quick) fox"):find("%((%a+)%)")`, "5|11|quick"},
		{`return ("f(a(b)c)d"):match("%b()")`, "(a(b)c)"},
		{`return ("((("):match("%b()")`, "nil"},
		{`return ("THE (quick) fox"):gsub("%f[%a]%a+", "<%0>")`, "<THE> (<quick>) <fox>|3"},
		{`return ("[[x]]"):match("%[%[(.-)%]%]")`, "x"},
		{`return ("abab"):match("(ab)%1")`, "ab"},
		{`return ([["it's" 'a']]):match("([\"'])(.-)%1")`, `"|it's`},
		{`return ("a]b"):match("[]]"), ("a^b"):match("[b^]"), ("a-b"):match("[a-]+"), ("a-b"):match("[%a-]+")`, "]|^|a-|a-b"},
		{`return ("abc123"):match("[^%d]+"), ("abc123"):match("[a-c1-2]+"), ("é"):match("[\128-\255]+") == "é"`, "abc|abc12|true"},
		{`return ("x^y"):find("^", 1, true)`, "2|2"},
		{`return ("a$b"):match("a$b"), ("ab"):match("b$"), ("a^"):match("a^")`, "a$b|b|a^"},
		{`return ("aXb"):gsub("%u", "%%")`, "a%b|1"},
		{`return ("hello world"):gsub("o", "0", 1)`, "hell0 world|1"},
		{`return ("hello world"):gsub("o", "0", 0)`, "hello world|0"},
		{`return ("abc"):gsub("", "-")`, "-a-b-c-|4"},
		{`return ("abc"):gsub("%w*", "x")`, "xx|2"},
		{`return ("hello"):gsub("l*", "x")`, "xhxexxox|5"},
		{`return ("abc def"):gsub("(%w+) (%w+)", "%2 %1")`, "def abc|1"},
		{`return ("abc"):gsub("%w", "%0%0")`, "aabbcc|3"},
		{`return ("abc"):gsub("%w", "%1")`, "abc|3"},
		{`return ("$a $b $c"):gsub("%$(%w)", {a = 1, b = false})`, "1 $b $c|3"},
		{`return ("abc"):gsub("b", function() end)`, "abc|1"},
		{`return ("abc"):gsub("()b", function(p) return p end)`, "a2c|1"},
		{`return ("abc"):gsub("^a", "x")`, "xbc|1"},
		{`return ("aaa"):gsub("^a", "x")`, "xaa|1"},
		{`return ("x"):gsub("x", "%")`, "error: main.lua:1: invalid use of '%' in replacement string"},
		{`return ("x"):gsub("x", "%2")`, "error: main.lua:1: invalid capture index"},
		{`return ("x"):gsub("x", function() return {} end)`, "error: main.lua:1: invalid replacement value (a table)"},
		{`return ("x"):gsub("x", true)`, "error: main.lua:1: bad argument #3 to 'gsub' (string/function/table expected, got boolean)"},
		{`local t = {} for w in ("one two"):gmatch("%a+") do t[#t + 1] = w end return table.concat(t, ",")`, "one,two"},
		{`local t = {} for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do t[#t + 1] = k .. v end return table.concat(t, ",")`, "a1,b2"},
		{`local n = 0 for _ in ("abc"):gmatch("") do n = n + 1 end return n`, "4"},
		{`local n = 0 for _ in ("abc"):gmatch("%a*") do n = n + 1 end return n`, "2"},
		{`local n = 0 for _ in ("^a^a"):gmatch("^a") do n = n + 1 end return n`, "2"},
		{`return ("a\0b"):find("\0"), ("a\0b"):match("%z"), #("a\0b"):match(".+")`, "2|\x00|3"},
		{`return ("%d"):match("%%d"), ("a.b"):match("%.b"), ("q"):match("%q")`, "%d|.b|q"},
		{`return ("0xFf"):match("^0x(%x+)$"), ("tab\t"):find("%c"), ("a_b"):match("%p"), ("aB"):match("%l%u")`, "Ff|4|_|aB"},
		{`return ("aaab"):match("a-b"), ("aaab"):match("^a-b"), ("aaab"):match("a+(a)b")`, "aaab|aaab|a"},
		{`return ("ab"):match("((a)(b))")`, "ab|a|b"},
		{`return ("abc"):match("(a*(.)%w(%s*))")`, "abc|b|"},
		{`return ("(x)*"):match("(x)%)*")`, "x"},
		{`return ("xx*"):match("(x)*")`, "x"},
	})
}

func TestMalformedPatterns(t *testing.T) {
	vm := newVM(t)
	for pattern, want := range map[string]string{
		"[a":                        "malformed pattern (missing ']')",
		"[]":                        "malformed pattern (missing ']')",
		"[^]":                       "malformed pattern (missing ']')",
		"[a%]":                      "malformed pattern (missing ']')",
		"[a%":                       "malformed pattern (missing ']')",
		"x%":                        "malformed pattern (ends with '%')",
		"(x":                        "unfinished capture",
		"x)":                        "invalid pattern capture",
		"%1":                        "invalid capture index",
		"(%1)":                      "invalid capture index",
		"(a)%0":                     "invalid capture index",
		"%bx":                       "unbalanced pattern",
		"%f":                        "missing '[' after '%f' in pattern",
		strings.Repeat("()", 33):    "too many captures",
		strings.Repeat("a?", 201):   "pattern too complex",
		"()" + "%1":                 "invalid capture index",
		strings.Repeat("x?", 1<<16): "pattern too complex",
	} {
		for _, fn := range []string{"match", "gmatch", "gsub"} {
			_, err := run(t, vm, `local f = string.`+fn+`("aaa", "`+pattern+`", "1") if type(f) == "function" then f() end`)
			if err == nil || err.Error() != "main.lua:1: "+want {
				t.Errorf("%s %.20q: %v, want %s", fn, pattern, err, want)
			}
		}
	}
}

// spec: BOX-3 pattern matching is metered
// spec: OBJ-11 string functions included
func TestPatternBombsAreCut(t *testing.T) {
	for _, src := range []string{
		`("a"):rep(30):find(("a?"):rep(30) .. ("a"):rep(30))`,
		`("a"):rep(100000):find(".-.-.-.-b")`,
		`("a"):rep(100000):match("(.-)(.-)(.-)b$")`,
		`("a"):rep(50000):gsub(".-b", "")`,
		`("a"):rep(100000):gsub("a*a*a*b", "x")`,
		`for _ in ("a"):rep(100000):gmatch(".-.-b") do end`,
		`("("):rep(100000):gsub("%b()", "")`,
		`("a"):rep(200000):find("(a*)%1b")`,
		`pcall(string.find, ("a"):rep(100000), ".-.-.-b") while true do end`,
		`pcall(string.find, ("x"):rep(100000), "[^y]*[^y]*[^y]*y")`,
	} {
		vm := newVM(t)
		_, err := vm.Run(NewMeter(context.Background(), 1_000_000), compile(t, src))
		if !errors.Is(err, ErrBudget) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// A subject of a megabyte is no trouble for simple patterns.
func TestSimplePatternsAreLinear(t *testing.T) {
	vm := newVM(t)
	for _, src := range []string{
		`return #(("ab"):rep(200000):gsub("a", "xy"))`,
		`return #(("ab"):rep(200000):gsub("%w", "%0"))`,
		`return #(("a"):rep(400000):gsub("a+", ""))`,
		`local n = 0 for _ in ("ab "):rep(100000):gmatch("%a+") do n = n + 1 end return n`,
		`return ("a"):rep(400000):find("b")`,
		`return ("a"):rep(400000):match("^a*$") ~= nil`,
	} {
		m := NewMeter(context.Background(), 3_000_000)
		if _, err := vm.Run(m, compile(t, src)); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"^(%w+)%s*=%s*(.-)$", "%b()%f[%w]", "[^%]a-z]+", "(a*(.)%w(%s*))", "%1", "[", "()%1", "a-b$"} {
		f.Add("key = (value) aab", s, "%0<%1>")
	}
	f.Fuzz(func(t *testing.T, subject, pattern, repl string) {
		if len(subject) > 1000 {
			return
		}
		vm := New(Options{MaxString: 1 << 20})
		defer vm.Close()
		for _, fn := range []string{"find", "match", "gsub", "gmatch"} {
			c, err := Compile("fuzz.lua", []byte(`local f = ... return function(s, p, r)
				local f = string.`+fn+`(s, p, r) if type(f) == "function" then for a in f do end end end`))
			if err != nil {
				t.Fatal(err)
			}
			m := NewMeter(context.Background(), 100_000)
			out, err := vm.Run(m, c)
			if err != nil {
				t.Fatal(err)
			}
			_, err = vm.Call(NewMeter(context.Background(), 100_000), out[0], str(subject), str(pattern), str(repl))
			if errors.Is(err, ErrInternal) {
				t.Fatal(err)
			}
		}
	})
}
