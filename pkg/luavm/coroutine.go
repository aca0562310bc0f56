package luavm

import (
	"iter"

	lua "github.com/yuin/gopher-lua"
)

type costatus string

const (
	suspended costatus = "suspended"
	running   costatus = "running"
	normal    costatus = "normal"
	dead      costatus = "dead"
)

// coroutine is a Lua thread that runs on a coroutine of the Go runtime, so it can yield from anywhere, through pcall,
// metamethods and iterators. A yield through a platform function that called back into Lua is refused.
type coroutine struct {
	th      *lua.LState
	fn      lua.LValue
	status  costatus
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	in, out []lua.LValue
	fail    *lua.ApiError
	killed  bool // the call is over: unwind
	barrier int  // VM.Call made by Go functions of this coroutine
	guarded int
}

func (vm *VM) openCoroutine() {
	vm.module("coroutine", map[string]lua.LGFunction{
		"create":  vm.coCreate,
		"resume":  vm.coResume,
		"running": vm.coRunning,
		"status":  vm.coStatus,
		"wrap":    vm.coWrap,
		"yield":   vm.coYield,
	})
}

func (vm *VM) newCoroutine(L *lua.LState) *coroutine {
	fn := argFunction(L, 1)
	if len(vm.cos) >= maxCoroutines {
		Raise(L, &limitError{is: ErrMemory, text: "memory limit: too many coroutines in one call; let them end"})
	}
	th, _ := vm.L.NewThread()
	th.SetContext(vm.poll)
	vm.spend(L, 100)
	vm.poll.m.Built(32 << 10)
	co := &coroutine{th: th, fn: fn, status: suspended}
	vm.cos[th] = co
	return co
}

func (vm *VM) coCreate(L *lua.LState) int {
	L.Push(vm.newCoroutine(L).th)
	return 1
}

func (vm *VM) coWrap(L *lua.LState) int {
	co := vm.newCoroutine(L)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if msg := vm.refuse(co); msg != "" {
			fail(L, msg)
		}
		if e := vm.resume(L, co, frame(L, 1)); e != nil {
			throw(L, &raised{fail: e})
		}
		return pushAll(L, co.out)
	}))
	return 1
}

func (vm *VM) coResume(L *lua.LState) int {
	co := vm.cos[argThread(L, 1)]
	if msg := vm.refuse(co); msg != "" {
		L.Push(lua.LFalse)
		L.Push(lua.LString(msg))
		return 2
	}
	if e := vm.resume(L, co, frame(L, 2)); e != nil {
		L.Push(lua.LFalse)
		L.Push(e.Object)
		return 2
	}
	L.Push(lua.LTrue)
	return 1 + pushAll(L, co.out)
}

// refuse says why a coroutine can not be resumed; one of an earlier call is unknown, and dead.
func (vm *VM) refuse(co *coroutine) string {
	switch {
	case co == nil:
		return "cannot resume dead coroutine"
	case co.status != suspended:
		return "cannot resume " + string(co.status) + " coroutine"
	case vm.nesting >= maxNesting:
		return "stack overflow (coroutines nested too deep)"
	}
	return ""
}

// resume runs co until it yields, ends or fails. A cut call is raised on.
func (vm *VM) resume(L *lua.LState, co *coroutine, args []lua.LValue) *lua.ApiError {
	if co.next == nil {
		co.next, co.stop = iter.Pull(func(yield func(struct{}) bool) {
			co.yield = yield
			co.out, co.fail = vm.protect(co.th, co.fn, co.in)
		})
	}
	outer, guarded := vm.co, vm.guarded
	if outer != nil {
		outer.status = normal
	}
	co.in, co.out, co.status = args, nil, running
	vm.cur, vm.co = co.th, co
	vm.guarded = guarded + 1 + co.guarded
	vm.nesting++
	_, alive := co.next()
	vm.nesting--
	co.guarded = max(0, vm.guarded-guarded-1)
	vm.guarded = guarded
	vm.cur, vm.co = L, outer
	if outer != nil {
		outer.status = running
	}
	co.status = suspended
	if !alive {
		co.status = dead
		delete(vm.cos, co.th)
		if co.fail != nil {
			if vm.ended() {
				throw(L, &raised{fail: co.fail})
			}
			return co.fail
		}
	}
	return nil
}

func (vm *VM) coYield(L *lua.LState) int {
	co := vm.co
	if co == nil || co.th != L {
		fail(L, "attempt to yield from outside a coroutine")
	}
	if co.barrier > 0 {
		fail(L, "attempt to yield across a platform function")
	}
	co.out = frame(L, 1)
	if len(co.out) > maxResults {
		fail(L, "too many results to yield")
	}
	if !co.yield(struct{}{}) {
		throw(L, &raised{fail: &lua.ApiError{
			Type: lua.ApiErrorRun, Object: lua.LString("the call of this coroutine is over"), StackTrace: noTrace,
		}})
	}
	return pushAll(L, co.in)
}

func (vm *VM) coRunning(L *lua.LState) int {
	if vm.co == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(vm.co.th)
	}
	return 1
}

func (vm *VM) coStatus(L *lua.LState) int {
	s := dead
	if co := vm.cos[argThread(L, 1)]; co != nil {
		s = co.status
	}
	return vm.pushString(L, string(s))
}

// endCoroutines unwinds what the outermost call left suspended; its Lua code does not run on.
func (vm *VM) endCoroutines() {
	if len(vm.cos) == 0 {
		return
	}
	for th, co := range vm.cos {
		if co.stop != nil {
			co.killed = true
			vm.cur, vm.co = th, co
			co.stop()
		}
		co.status = dead
	}
	clear(vm.cos)
	vm.cur, vm.co, vm.nesting, vm.guarded = vm.L, nil, 0, 0
}

// frame is the arguments from n on.
func frame(L *lua.LState, n int) []lua.LValue {
	list := make([]lua.LValue, 0, max(0, L.GetTop()-n+1))
	for ; n <= L.GetTop(); n++ {
		list = append(list, L.Get(n))
	}
	return list
}

func pushAll(L *lua.LState, list []lua.LValue) int {
	for _, v := range list {
		L.Push(v)
	}
	return len(list)
}
