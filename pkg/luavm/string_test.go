package luavm

import "testing"

func TestStringFunctions(t *testing.T) {
	check(t, []luaCase{
		{`return ("abc"):byte(), ("abc"):byte(-1), ("abc"):byte(10)`, "97|99"},
		{`return ("abc"):byte(1, -1)`, "97|98|99"},
		{`return ("abc"):byte(0)`, ""},
		{`return ("x"):rep(8000):byte(1, -1)`, "error: main.lua:1: string slice too long"},
		{`return string.char(72, 105), string.char()`, "Hi|"},
		{`return string.char(256)`, "error: main.lua:1: bad argument #1 to 'char' (invalid value)"},
		{`return ("hello"):sub(2, 3), ("hello"):sub(-3), ("hello"):sub(2), ("hello"):sub(0), ("hello"):sub(10), ("hello"):sub(3, 2)`,
			"el|llo|ello|hello||"},
		{`return ("hello"):sub(-100, 2), ("hello"):sub(2, -2), ("hello"):sub(2, 100)`, "he|ell|ello"},
		{`return ("aBc"):upper(), ("aBc"):lower(), ("abc"):reverse(), ("abc"):len(), #"é"`, "ABC|abc|cba|3|2"},
		{`return ("ab"):rep(3), ("ab"):rep(0), ("ab"):rep(-1), (""):rep(1e9), ("x"):rep("2")`, "ababab||||xx"},
		{`return (5):rep(2)`, "error: main.lua:1: attempt to index a non-table object(number) with key 'rep'"},
		{`return string.rep(5, 2), string.len(12)`, "55|2"},
		{`return string.rep()`, "error: main.lua:1: bad argument #1 to 'rep' (string expected, got no value)"},
		{`return string.dump, string.gfind, table.getn, math.huge > 1e308`, "nil|nil|nil|true"},

		{`return ("%d %5d|%-5d|%05d|%+d|% d"):format(3, 42, 42, -42, 7, 7)`, "3    42|42   |-0042|+7| 7"},
		{`return ("%i %u %c %x %X %#x %o %%"):format(3.9, 5, 65, 255, 255, 255, 8)`, "3 5 A ff FF 0xff 10 %"},
		{`return ("%x"):format(-1)`, "ffffffffffffffff"},
		{`return ("%.3d|%5.3d"):format(5, 5)`, "005|  005"},
		{`return ("%f %.2f %8.3f|%-8.1f|"):format(1.5, 3.14159, 2.5, 2.25)`, "1.500000 3.14    2.500|2.2     |"},
		{`return ("%e %.1e %E"):format(12345.678, 0.00012, 1)`, "1.234568e+04 1.2e-04 1.000000E+00"},
		{`return ("%g %g %g %g %g %.3g %G"):format(100000, 1e6, 0.0001, 1e-5, 0.1, 1234.5, 1e-10)`, "100000 1e+06 0.0001 1e-05 0.1 1.23e+03 1E-10"},
		{`return ("%.14g %.17g"):format(0.1, 0.1)`, "0.1 0.10000000000000001"},
		{`return ("%f %5.1f %d"):format(1/0, -1/0, 3)`, "inf  -inf 3"},
		{`return ("%s %10s|%-5s|%.2s"):format("a", "b", "c", "defg")`, "a          b|c    |de"},
		{`return ("%s %s %s"):format(nil, true, 1.5)`, "nil true 1.5"},
		{`return ("%s"):format(setmetatable({}, {__tostring = function() return "T" end}))`, "T"},
		{`return ("%q"):format('a "b"\n\\ \0 \r')`, "\"a \\\"b\\\"\\\n\\\\ \\000 \\r\""},
		{`return ("%5s|%.1s"):format("é", "é") == "   é|" .. ("é"):sub(1, 1)`, "true"},
		{`return ("%d"):format("10")`, "10"},
		{`return ("%d"):format("x")`, "error: main.lua:1: bad argument #2 to 'format' (number expected, got string)"},
		{`return ("%d"):format()`, "error: main.lua:1: bad argument #2 to 'format' (number expected, got no value)"},
		{`return ("%y"):format(1)`, "error: main.lua:1: invalid option '%y' to 'format'"},
		{`return ("%"):format(1)`, "error: main.lua:1: invalid format (ends with '%')"},
		{`return ("%100d"):format(1)`, "error: main.lua:1: invalid format (width or precision too long)"},
		{`return ("%.100f"):format(1)`, "error: main.lua:1: invalid format (width or precision too long)"},
		{`return #("%99d%.99f"):format(1, 1)`, "200"},
		{`return ("%------d"):format(1)`, "error: main.lua:1: invalid format (repeated flags)"},
	})
}

func TestTableFunctions(t *testing.T) {
	check(t, []luaCase{
		{`return table.concat({1, 2, "x"}), table.concat({1, 2, 3}, ", "), table.concat({}, "x"), table.concat({1, 2, 3}, "-", 2), table.concat({1, 2, 3}, "-", 2, 2)`,
			"12x|1, 2, 3||2-3|2"},
		{`return table.concat({1, {}, 3})`, "error: main.lua:1: invalid value (table) at index 2 in table for 'concat'"},
		{`return table.concat({1}, ",", 1, 3)`, "error: main.lua:1: invalid value (nil) at index 2 in table for 'concat'"},
		{`local t = {} for i = 1, 3000 do t[i] = i end return #table.concat(t, ",")`, "13892"},
		{`local t = {} for i = 1, 200000 do t[i] = "x" end return #table.concat(t)`, "200000"},
		{`local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) return table.concat(t, ",")`, "0,1,2,3"},
		{`local t = {1, 2} table.insert(t, 3, "c") return #t, t[3]`, "3|c"},
		{`local t = {} table.insert(t, 1, 1, 1)`, "error: main.lua:1: wrong number of arguments to 'insert'"},
		{`local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), #t, t[1]`, "3|1|1|2"},
		{`return table.remove({}), table.remove({}, 5)`, "nil|nil"},
		{`local t = {1, 2, 3} t[3] = nil table.remove(t) return #t`, "1"},
		{`return table.maxn({1, 2, [100] = 1, [1e9] = 2}), table.maxn({})`, "1000000000|0"},
		{`local t = {3, 1, 2} table.sort(t) return table.concat(t, ",")`, "1,2,3"},
		{`local t = {"b", "a"} table.sort(t, function(a, b) return a > b end) return table.concat(t, ",")`, "b,a"},
		{`local t = {} for i = 1, 1000 do t[i] = (i * 7919) % 1000 end table.sort(t) for i = 1, 1000 do if t[i] ~= i - 1 then return i end end return "ok"`, "ok"},
		{`local t = {3, 1, "x"} table.sort(t)`, "error: main.lua:1: attempt to compare string with number"},
		{`local t = {5, 2, 4, 1, 3} table.sort(t, function() return true end) return #t`, "5"},
		{`local t = {2, 1} return pcall(table.sort, t, function() error("x", 0) end)`, "false|x"},
		{`local mt = {__lt = function(a, b) return a.v < b.v end} local function o(v) return setmetatable({v = v}, mt) end
		  local t = {o(2), o(1)} table.sort(t) return t[1].v`, "1"},
		{`local t = setmetatable({}, {__index = table}) t:insert("a") return t:concat()`, "a"},
	})
}

func TestMathAndOS(t *testing.T) {
	check(t, []luaCase{
		{`return math.floor(1.7), math.ceil(1.2), math.abs(-3), math.max(1, 5, 2), math.min(4, 2), math.sqrt(16), math.pow(2, 3)`, "1|2|3|5|2|4|8"},
		{`return math.fmod(-7, 3), math.modf(3.7)`, "-1|3|0.7"},
		{`return math.modf(-1/0)`, "-inf|0"},
		{`return math.frexp(8), math.ldexp(0.5, 4), math.log10(100), math.deg(math.pi), math.rad(180) == math.pi`, "0.5|8|2|180|true"},
		{`return math.random(0)`, "error: main.lua:1: bad argument #1 to 'random' (interval is empty)"},
		{`return math.random(2, 1)`, "error: main.lua:1: bad argument #2 to 'random' (interval is empty)"},
		{`local _ = math.randomseed(1) local a = math.random(1e9) math.randomseed(1) return a == math.random(1e9)`, "true"},
		{`for i = 1, 1000 do local n = math.random(3) assert(n == 1 or n == 2 or n == 3) local f = math.random() assert(f >= 0 and f < 1) end return 1`, "1"},
		{`return math.random(-5, -5), math.random(-1e15, 1e15) ~= math.random(-1e15, 1e15)`, "-5|true"},
		{`return os.date("!%Y-%m-%d %H:%M:%S %j %w %p %y %a %A %b %B %%", 86400)`, "1970-01-02 00:00:00 002 5 AM 70 Fri Friday Jan January %"},
		{`return os.date("!%c|%x|%X|%U|%W|%q", 0)`, "Thu Jan  1 00:00:00 1970|01/01/70|00:00:00|00|00|%q"},
		{`local t = os.date("!*t", 0) return t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday, t.isdst`, "1970|1|1|0|0|0|5|1|false"},
		{`return os.time(os.date("*t", 12345)), os.time{year = 2000, month = 1, day = 1, hour = 0} ~= nil`, "12345|true"},
		{`return os.time({year = 2000})`, "error: main.lua:1: field 'month' missing in date table"},
		{`return os.date(("%c"):rep(1000))`, "error: main.lua:1: bad argument #1 to 'date' (format over 512 bytes)"},
		{`return os.date("%Y", 1e18)`, "error: main.lua:1: bad argument #2 to 'date' (time out of range)"},
		{`return type(os.clock()), type(os.time())`, "number|number"},
	})
}
