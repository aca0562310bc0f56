// Package luavm is a sandboxed Lua 5.1 virtual machine (gopher-lua) whose running code is metered.
//
// It owns: compiling a file to a [Chunk]; the library surface app code sees and what it can not see; the [Meter] that
// counts instructions and Go-side work, knows the deadline and can be cut from outside; the process-wide heap watch;
// an own pattern matcher and own string, table, math, coroutine and os functions, all bounded; and errors that are
// clean for users and keep their Go cause.
//
// It refuses to know about objects, SQLite, NATS or files. What app code can do beyond pure computation is what the
// caller gives with [VM.SetGlobal].
//
// Concurrency: a [Chunk] is immutable and shared. A [VM] belongs to one goroutine at a time, which need not be the same
// for every call. A [Meter] may be used from any goroutine. [ArrayMark] and [Null] are shared by all VMs and never
// written after start. A coroutine runs on a goroutine of the runtime's making (iter.Pull) that never runs at the same
// time as its resumer and is gone when the outermost call returns.
//
// What is done about gopher-lua's habits:
//   - It polls ctx.Done() once per instruction, so a context whose Done counts is the meter (poll.go).
//   - `..` and `t[k] = v` have no hook: the first builds strings without bound, the second fills a table with nils up to
//     the key. Both are rewritten in the parsed tree to functions that no source can name (rewrite.go).
//   - An error closes the upvalues of every frame of the thread, also of those that go on after a pcall, and their
//     locals fall out of step with closures: every protected call hides the outer ones (protect.go).
//   - Yielding through pcall, a metamethod or an iterator loses the thread: coroutines are our own (coroutine.go).
//   - lua.MaxArrayIndex is lowered for the process (limits.go).
package luavm
