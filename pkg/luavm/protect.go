package luavm

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// noTrace stands for a stack trace, which gopher-lua would otherwise make for every error, in time quadratic in depth.
const noTrace = " "

// raised carries a Go error, or an error on its way up, through gopher-lua's error function.
type raised struct {
	err  error
	fail *lua.ApiError
}

// Raise raises a platform error from a Go function that Lua called; it does not return. App code sees err.Error()
// without a source position; if nobody catches it, the call's Error has err as its Cause. An *Error of a nested Call is
// raised as it was.
func Raise(L *lua.LState, err error) {
	throw(L, &raised{err: err})
}

func throw(L *lua.LState, r *raised) {
	// A value that is no string: gopher-lua closes the upvalues of the frames that end, and calls L.Panic.
	L.Error(&lua.LUserData{Value: r, Metatable: lua.LNil}, 0)
}

// onError is L.Panic inside protected calls: it turns the value on top of the stack into the Go panic that PCall catches.
func (vm *VM) onError(L *lua.LState) {
	v := L.Get(-1)
	e := &lua.ApiError{Type: lua.ApiErrorRun, Object: v, StackTrace: noTrace}
	if ud, ok := v.(*lua.LUserData); ok {
		if r, ok := ud.Value.(*raised); ok {
			if r.fail != nil {
				panic(r.fail)
			}
			e.Cause = r.err
			if inner, ok := r.err.(*Error); ok { //nolint:errorlint // only one that was raised as it is
				e.Object, e.Cause = inner.Value, inner.Cause
				if inner.Trace != "" {
					e.StackTrace = inner.Trace
				}
			} else {
				e.Object = lua.LString(r.err.Error())
			}
		}
	}
	if s, ok := e.Object.(lua.LString); ok && strings.HasSuffix(string(s), ": registry overflow") {
		e.Object = lua.LString(strings.TrimSuffix(string(s), "registry overflow") + "stack overflow")
	}
	if vm.guarded == 0 && e.StackTrace == noTrace {
		e.StackTrace = traceback(L)
	}
	panic(e)
}

// enter is the Go function that stands below every protected call. It sees Go panics before gopher-lua does.
func (vm *VM) enter(L *lua.LState) int {
	L.Panic = vm.onError
	defer func() {
		if r := recover(); r != nil {
			vm.convert(L, r)
		}
	}()
	if f := L.Get(1); f.Type() != lua.LTFunction && L.GetMetaField(f, "__call").Type() != lua.LTFunction {
		L.RaiseError("attempt to call a %s value", f.Type().String())
	}
	L.Call(L.GetTop()-1, lua.MultRet)
	return L.GetTop()
}

// convert panics with an ApiError for whatever was recovered.
func (vm *VM) convert(L *lua.LState, r any) {
	if e, ok := r.(*lua.ApiError); ok {
		if e.StackTrace == "" {
			e.StackTrace = noTrace
		}
		panic(e)
	}
	if overflow(r) {
		e := &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(where(L, 0) + "stack overflow"), StackTrace: noTrace}
		defer func() { // throw may fail for want of room
			_ = recover()
			panic(e)
		}()
		throw(L, &raised{fail: e})
	}
	err := &panicError{value: r, stack: debug.Stack()}
	vm.poll.m.Cut(err)
	panic(&lua.ApiError{Type: lua.ApiErrorPanic, Object: lua.LString(err.Error()), StackTrace: string(err.stack), Cause: err})
}

// overflow knows gopher-lua's ways to say that the stack is full: a bare string, and, when a tail call finds no room in
// the registry, its own failure to name the line of a frame that has not started.
func overflow(r any) bool {
	if s, ok := r.(string); ok {
		return s == "lua callstack overflow"
	}
	err, ok := r.(runtime.Error)
	return ok && strings.Contains(err.Error(), "index out of range [-1]")
}

// inPlace calls the function and arguments that are L's whole frame, and leaves the results in their place.
func (vm *VM) inPlace(L *lua.LState) *lua.ApiError {
	n := L.GetTop()
	L.Insert(vm.enterFn, 1)
	return vm.pcall(L, n)
}

// protect calls fn on L and returns all its results.
func (vm *VM) protect(L *lua.LState, fn lua.LValue, args []lua.LValue) ([]lua.LValue, *lua.ApiError) {
	base := L.GetTop()
	L.Push(vm.enterFn)
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	if e := vm.pcall(L, len(args)+1); e != nil {
		return nil, e
	}
	results := make([]lua.LValue, L.GetTop()-base)
	for i := range results {
		results[i] = L.Get(base + 1 + i)
	}
	L.SetTop(base)
	return results, nil
}

func (vm *VM) pcall(L *lua.LState, nargs int) *lua.ApiError {
	outer := upvalues(L)
	saved := *outer
	*outer = nil
	err := L.PCall(nargs, lua.MultRet, nil)
	*outer = saved
	if err == nil {
		return nil
	}
	e, ok := err.(*lua.ApiError) //nolint:errorlint // gopher-lua never wraps it
	if !ok {
		e = &lua.ApiError{Type: lua.ApiErrorPanic, Object: lua.LString(err.Error()), StackTrace: noTrace, Cause: err}
	}
	return e
}

// ended says that no Lua code of this thread may run on: the call was cut, or the coroutine is being ended.
func (vm *VM) ended() bool {
	return vm.poll.m.stopped.Load() || vm.co != nil && vm.co.killed
}

// upvalues returns L's list of open upvalues. gopher-lua closes all of them when an error is raised, though only those of
// the frames that end should be; hiding the outer ones during a protected call puts that right.
func upvalues(L *lua.LState) **lua.Upvalue {
	return (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(L), upvaluesOffset))
}

var upvaluesOffset = func() uintptr {
	f, ok := reflect.TypeFor[lua.LState]().FieldByName("uvcache")
	if !ok || f.Type != reflect.TypeFor[*lua.Upvalue]() {
		panic("luavm: this gopher-lua keeps its open upvalues elsewhere")
	}
	return f.Offset
}()

// where is the position of the function at a level of the stack, as "main.lua:3: ", or empty for a Go function.
func where(L *lua.LState, level int) (s string) {
	defer func() {
		if recover() != nil {
			s = ""
		}
	}()
	if s = L.Where(level); s == "" || strings.HasPrefix(s, "[G]") {
		return ""
	}
	return s + " "
}

// traceback describes the innermost frames.
func traceback(L *lua.LState) (s string) {
	defer func() {
		if recover() != nil {
			s = noTrace
		}
	}()
	const levels = 12
	var b strings.Builder
	b.WriteString("stack traceback:")
	for i := 0; ; i++ {
		dbg, ok := L.GetStack(i)
		if !ok {
			break
		}
		if i == levels {
			b.WriteString("\n\t...")
			break
		}
		if _, err := L.GetInfo("nSl", dbg, lua.LNil); err != nil {
			break
		}
		name := strings.TrimPrefix(dbg.Name, hidden)
		if dbg.What == "G" {
			fmt.Fprintf(&b, "\n\t[Go]: in %s", name)
		} else {
			fmt.Fprintf(&b, "\n\t%s:%d: in %s", dbg.Source, dbg.CurrentLine, name)
		}
	}
	return b.String()
}
