package value

// The limits of the boundaries, in bytes of JSON where not said otherwise.
const (
	// MaxDepth is how deep arrays and objects may be nested; a list's own
	// brackets do not count.
	MaxDepth = 64
	// MaxArguments bounds the arguments of one call.
	MaxArguments = 768 << 10
	// MaxResults bounds the results of one call.
	MaxResults = 768 << 10
	// MaxEvent bounds the data of one event.
	MaxEvent = 256 << 10
	// MaxFrame bounds one websocket frame.
	MaxFrame = 256 << 10
	// MaxFilter bounds a filter: a follower's whole set of edges travels in one
	// message, and so do many sockets' follows.
	MaxFilter = 4 << 10
	// MaxState bounds a connection's state.
	MaxState = 64 << 10
	// MaxStore bounds one stored value.
	MaxStore = 64 << 10
	// MaxInteger is the largest magnitude of an integer, 2^53: up to there a
	// Lua number holds every integer exactly.
	MaxInteger = 1 << 53
)

// noLimit is what a limit of zero means. It is far above what fits into a VM,
// yet it ends the encoding of tables that share their parts and unfold to an
// astronomical size.
const noLimit = 32 << 20
