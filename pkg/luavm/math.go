package luavm

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) openMath() {
	fns := map[string]lua.LGFunction{
		"random":     vm.mathRandom,
		"randomseed": vm.mathRandomseed,
		"max":        func(L *lua.LState) int { return extreme(L, func(a, b float64) bool { return b > a }) },
		"min":        func(L *lua.LState) int { return extreme(L, func(a, b float64) bool { return b < a }) },
		"frexp": func(L *lua.LState) int {
			f, e := math.Frexp(argNumber(L, 1))
			L.Push(lua.LNumber(f))
			L.Push(lua.LNumber(e))
			return 2
		},
		"modf": func(L *lua.LState) int {
			f := argNumber(L, 1)
			whole, part := math.Modf(f)
			if math.IsInf(f, 0) {
				whole, part = f, 0
			}
			L.Push(lua.LNumber(whole))
			L.Push(lua.LNumber(part))
			return 2
		},
		"ldexp": func(L *lua.LState) int {
			L.Push(lua.LNumber(math.Ldexp(argNumber(L, 1), argInt(L, 2))))
			return 1
		},
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(x float64) float64 { return x / (math.Pi / 180) },
		"rad": func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		fns[name] = func(L *lua.LState) int {
			L.Push(lua.LNumber(f(argNumber(L, 1))))
			return 1
		}
	}
	for name, f := range map[string]func(a, b float64) float64{
		"atan2": math.Atan2, "fmod": math.Mod, "mod": math.Mod, "pow": math.Pow,
	} {
		fns[name] = func(L *lua.LState) int {
			L.Push(lua.LNumber(f(argNumber(L, 1), argNumber(L, 2))))
			return 1
		}
	}
	t := vm.module("math", fns)
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
}

func extreme(L *lua.LState, better func(a, b float64) bool) int {
	best := argNumber(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if f := argNumber(L, i); better(best, f) {
			best = f
		}
	}
	L.Push(lua.LNumber(best))
	return 1
}

func (vm *VM) mathRandom(L *lua.LState) int {
	low, high := 1, 0
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(vm.rng.Float64()))
		return 1
	case 1:
		if high = argInt(L, 1); high < 1 {
			badArg(L, 1, "interval is empty")
		}
	case 2:
		if low, high = argInt(L, 1), argInt(L, 2); low > high {
			badArg(L, 2, "interval is empty")
		}
	default:
		fail(L, "wrong number of arguments")
	}
	L.Push(lua.LNumber(low + int(vm.rng.Int64N(int64(high-low)+1))))
	return 1
}

func (vm *VM) mathRandomseed(L *lua.LState) int {
	vm.rng = rand.New(rand.NewPCG(math.Float64bits(argNumber(L, 1)), 0))
	return 0
}
