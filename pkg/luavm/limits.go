package luavm

import lua "github.com/yuin/gopher-lua"

// Limits of one VM. None is a setting: each stands where honest code does not come near and the process stays safe.
const (
	defaultMaxString = 16 << 20 // BOX-3
	defaultBudget    = 10_000_000

	maxCallStack  = 2000    // Lua frames of one thread; with maxNesting it bounds the Go stack too
	maxRegistry   = 1 << 17 // value slots of one thread (2 MiB)
	maxNesting    = 32      // coroutines that resume one another
	maxCallDepth  = 100     // VM.Call from Go functions called by Lua
	maxCoroutines = 4096    // not yet ended coroutines of one call
	maxResults    = 7000    // values unpack, string.byte and coroutine transfers may return
	maxTreeDepth  = 5000    // nesting of expressions and blocks in a source file
	maxSource     = 8 << 20 // bytes of a source file

	// maxArrayIndex bounds the array part of a table: one assignment to a far key allocates 16 bytes for each key up to
	// it. Keys past it live in the hash part; an array that would grow past it by appending is refused (table.go).
	maxArrayIndex = 1 << 21
)

func init() { lua.MaxArrayIndex = maxArrayIndex }
