package luavm

import "testing"

// Values of an assignment to several targets are all evaluated before any of them is stored.
func TestMultipleAssignment(t *testing.T) {
	for src, want := range map[string]string{
		`local a, b = 1, 2 a, b = b, a return a .. "," .. b`:                                                                                      "2,1",
		`local a, b, c = 1, 2, 3 a, b, c = c, a, b return a .. "," .. b .. "," .. c`:                                                              "3,1,2",
		`local a, b = 1 a, b = nil, tostring(a) return tostring(a) .. "," .. b`:                                                                   "nil,1",
		`local i, t = 1, {} i, t[i] = i + 1, 20 return i .. "," .. t[1] .. "," .. tostring(t[2])`:                                                 "2,20,nil",
		`local t = {1, 2} t[1], t[2] = t[2], t[1] return t[1] .. "," .. t[2]`:                                                                     "2,1",
		`local function f() return 1, 2, 3 end local a, b, c, d a, b, c, d = f() return tostring(a) .. tostring(b) .. tostring(c) .. tostring(d)`: "123nil",
		`local function f() return 1, 2 end local a, b = 5, 6 a, b = f(), 9 return a .. "," .. b`:                                                 "1,9",
		`local function f() return 1, 2 end local a a = f(), 7 return a`:                                                                          "1",
		`x, y = 1, 2 x, y = y, x return x .. "," .. y`:                                                                                            "2,1",
		`local function s(a, b) a, b = b, a return a, b end local p, q = s(1, 2) return p .. "," .. q`:                                            "2,1",
		`local function v(...) local a, b = 0, 0 a, b = ... return a .. "," .. b end return v(4, 5)`:                                              "4,5",
		`local a, b = 1, 2 local a, b = b, a return a .. "," .. b`:                                                                                "2,1",
		`local t = {} t.x, t.y = 1 return tostring(t.x) .. tostring(t.y)`:                                                                         "1nil",
	} {
		vm := New(Options{})
		out, err := run(t, vm, src)
		if err != nil || len(out) != 1 || out[0].String() != want {
			t.Errorf("%s: %v %v, want %s", src, out, err, want)
		}
		vm.Close()
	}
}
