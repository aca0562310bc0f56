// Package value is the one converter between Lua values, JSON and SQL. Every
// boundary goes through it: call arguments and results, event data, stored
// values, kv, websocket frames, connection state, json and SQL parameters.
//
// # What crosses
//
// nil, booleans, numbers, text and tables. A table whose keys are exactly 1..n
// is an array, one with only text keys an object; anything else, and functions,
// handles, userdata and coroutines, is an error that names the path. A handle
// never comes out of data: decoding makes plain tables only.
//
// # Canonical JSON
//
// Encoding is deterministic, so equal values have equal bytes: keys sorted, no
// spaces, null fields left out, integral numbers within ±2^53 without fraction
// or exponent, all other numbers with one of them, only the escapes JSON needs.
// Decoding is strict: one value, valid UTF-8, no lone surrogates, at most
// [MaxDepth] levels, and an integer beyond ±2^53 is refused instead of rounded.
// Of a repeated key the last one wins.
//
// # Hostile input
//
// Depth and size are bounded while working, not afterwards, and no metamethod
// runs. Errors are of type [*Error] and start with "bad value: ".
//
// Functions that take an *lua.LState belong to the goroutine that owns it;
// encoding reads its tables and belongs there too. Everything else may be
// called concurrently; a [Filter] is immutable.
package value
