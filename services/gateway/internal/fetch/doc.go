// Package fetch runs an app's on "fetch" handler for HTTP requests: it turns a request into a Lua table, runs the
// handler on a pooled VM, and writes what it returns. An upgrade that the handler asked for is handed back to the
// caller, which owns sockets.
package fetch
