package luavm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Why a call was cut. Errors for a single string over its limit match ErrMemory too.
var (
	ErrBudget  = errors.New("budget exceeded: the call ran more VM instructions than one call may; do less in a call or split the work")
	ErrTimeout = errors.New("timeout: the call ran longer than it may; do less in a call, or wait for fewer others in it")
	ErrMemory  = errors.New("memory limit: the process is short of memory and this call held the most; build and keep less in one call")

	// ErrInternal marks a Go panic inside the VM: a bug of ours, not of the app.
	ErrInternal = errors.New("internal: the Lua VM failed; see the log")
	// ErrIdle is what Lua code gets that is run past VM.Call and VM.Run.
	ErrIdle = errors.New("internal: Lua code ran outside a call")
	// ErrClosed is returned by calls on a closed VM.
	ErrClosed = errors.New("luavm: closed")
)

// SyntaxError says where a source file is not Lua.
type SyntaxError struct {
	File string
	Line int
	Msg  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Error is what a Lua call raised.
type Error struct {
	Value lua.LValue // as raised: a string with its position, or any other value
	Trace string     // Lua traceback of the innermost frames, for the log; may be empty
	Cause error      // why the call was cut, or the Go error given to Raise; nil for an error of the app
}

// Error is the raised string, or what the standalone Lua says of a value that is none.
func (e *Error) Error() string {
	switch v := e.Value.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(v)
	case nil:
		return "(no error object)"
	}
	return fmt.Sprintf("(error object is a %s value)", e.Value.Type())
}

// Frame is a line of Lua code in a traceback.
type Frame struct {
	File string
	Line int
}

// Frames gives the lines of Lua code in Trace, innermost first.
func (e *Error) Frames() []Frame {
	var frames []Frame
	for line := range strings.Lines(e.Trace) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		number, _, ok2 := strings.Cut(rest, ":")
		if n, err := strconv.Atoi(number); ok && ok2 && err == nil {
			frames = append(frames, Frame{file, n})
		}
	}
	return frames
}

// Unwrap returns Cause.
func (e *Error) Unwrap() error { return e.Cause }

// limitError is a platform error with a text of its own that matches one of the sentinels.
type limitError struct {
	text string
	is   error
}

func (e *limitError) Error() string        { return e.text }
func (e *limitError) Is(target error) bool { return target == e.is }

// panicError is a Go panic that was stopped at the VM's border.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("internal: Go panic in the Lua VM: %v", e.value)
}
func (e *panicError) Is(target error) bool { return target == ErrInternal }
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
