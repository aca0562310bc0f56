package luavm

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Options are the settings of a VM.
type Options struct {
	MaxString int               // bytes one operation may build; 0 is 16 MiB
	Print     func(text string) // receives each print(); nil drops it
}

// VM is one Lua state with its globals. It is not safe for concurrent use.
type VM struct {
	// L is the main thread. Go functions called by Lua must use the state they are given, which may be a coroutine's.
	L *lua.LState

	opts     Options
	poll     *poll
	env      *lua.LTable                 // what functions have as environment: empty, in front of globals
	globals  *lua.LTable                 // what the globals are in; app code never holds it
	proxies  map[*lua.LTable]*lua.LTable // what app code holds for a library → the library
	frozen   bool
	enterFn  *lua.LFunction
	cur      *lua.LState // the thread that runs
	co       *coroutine  // the coroutine that runs, nil on the main thread
	cos      map[*lua.LState]*coroutine
	nesting  int // coroutines resumed and not yet suspended
	guarded  int // protected calls made by Lua around what runs now
	depth    int // VM.Call nested in one another
	rng      *rand.Rand
	patterns map[string]*pattern
}

// New returns a VM with the standard library as app code may have it.
func New(o Options) *VM {
	if o.MaxString <= 0 {
		o.MaxString = defaultMaxString
	}
	vm := &VM{
		opts:     o,
		poll:     &poll{m: idle},
		proxies:  map[*lua.LTable]*lua.LTable{},
		cos:      map[*lua.LState]*coroutine{},
		rng:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		patterns: map[string]*pattern{},
	}
	vm.L = lua.NewState(lua.Options{
		SkipOpenLibs:        true,
		MinimizeStackMemory: true,
		CallStackSize:       maxCallStack,
		RegistrySize:        512,
		RegistryMaxSize:     maxRegistry,
		RegistryGrowStep:    2048,
	})
	vm.L.SetContext(vm.poll)
	vm.cur = vm.L
	vm.openGlobals()
	vm.enterFn = vm.L.NewFunction(vm.enter)
	vm.openBase()
	vm.openOperators()
	vm.openString()
	vm.openTable()
	vm.openMath()
	vm.openCoroutine()
	vm.openOS()
	return vm
}

// Close frees the VM. It must not be running.
func (vm *VM) Close() {
	if vm.L != nil {
		vm.L.Close()
		vm.L, vm.cur = nil, nil
	}
}

// Meter returns the running call's meter, nil when none runs.
func (vm *VM) Meter() *Meter {
	if vm.depth == 0 {
		return nil
	}
	return vm.poll.m
}

// Run runs a chunk in the global environment and returns all its results.
func (vm *VM) Run(m *Meter, c *Chunk) ([]lua.LValue, error) {
	if vm.L == nil {
		return nil, ErrClosed
	}
	fn := vm.L.NewFunctionFromProto(c.Proto)
	fn.Env = vm.env
	return vm.Call(m, fn)
}

// Call calls fn and returns all its results, or an *Error. From a Go function that Lua called it may be nested; m may
// then be nil for the running meter. Coroutines that were left suspended end with the outermost call.
func (vm *VM) Call(m *Meter, fn lua.LValue, args ...lua.LValue) (results []lua.LValue, err error) {
	if vm.L == nil {
		return nil, ErrClosed
	}
	if m == nil {
		if m = vm.Meter(); m == nil {
			m = NewMeter(context.Background(), defaultBudget)
		}
	}
	if vm.depth >= maxCallDepth {
		return nil, &Error{Value: lua.LString("stack overflow (calls nested too deep)")}
	}
	if e := m.Err(); e != nil {
		return nil, cutError(e, nil)
	}
	heap.enter(m)
	before := vm.poll.use(m)
	vm.depth++
	if vm.co != nil {
		vm.co.barrier++
	}
	co := vm.co
	defer func() {
		if r := recover(); r != nil { // not reached by anything we know
			results, err = nil, vm.broken(m, r)
		}
		if co != nil {
			co.barrier--
		}
		if vm.depth == 1 {
			vm.endCoroutines()
		}
		vm.depth--
		vm.poll.use(before)
		heap.leave(m)
	}()
	results, fail := vm.protect(vm.cur, fn, args)
	vm.poll.flush()
	if m.stopped.Load() {
		return nil, cutError(m.Err(), fail)
	}
	if fail != nil {
		return nil, callError(fail)
	}
	return results, nil
}

func callError(e *lua.ApiError) *Error {
	return &Error{Value: e.Object, Trace: strings.TrimSpace(e.StackTrace), Cause: e.Cause}
}

func cutError(cause error, fail *lua.ApiError) *Error {
	e := &Error{Value: lua.LString(cause.Error()), Cause: cause}
	if fail != nil {
		e.Trace = strings.TrimSpace(fail.StackTrace)
	}
	return e
}

// broken answers a Go panic that even the protected call let through. The thread can not be trusted; a new one takes its
// place.
func (vm *VM) broken(m *Meter, r any) error {
	err, ok := r.(error)
	if !ok || !errors.Is(err, ErrInternal) {
		err = &panicError{value: r, stack: debug.Stack()}
	}
	m.Cut(err)
	if vm.depth == 1 {
		L, _ := vm.L.NewThread()
		L.SetContext(vm.poll)
		vm.L, vm.cur, vm.co, vm.nesting, vm.guarded = L, L, nil, 0, 0
	}
	return &Error{Value: lua.LString(err.Error()), Cause: err}
}
