// Package crashpoint names the moments at durable boundaries at which a test kills the process, to see that nothing is
// lost and nothing comes twice. Only binaries that are built with the tag "crashpoint" can be killed so.
package crashpoint

// The points, in the order of an event's way.
const (
	WakeBefore   = "wake entry about to be written"
	WakeAfter    = "wake entry written, not committed"
	Committed    = "committed, before the barrier"
	Durable      = "past the barrier, before the answer"
	StreamNamed  = "new stream's name durable, stream not made"
	StreamMade   = "new stream made, nothing published"
	EdgeAccepted = "edge accepted, follower not told"
	EdgeWritten  = "edge written, consumer not made"
	Publishing   = "about to publish to the stream"
	Published    = "published to the stream, not noted"
	Handled      = "handler committed, not acknowledged"
	Acknowledged = "acknowledged, before the barrier"
	Receipt      = "receipt due, not sent"
	Trimming     = "about to trim the log"
	Trimmed      = "log trimmed"
	EdgeRemoved  = "edge removed, consumer still there"
	Sleeping     = "about to sleep, file open"
	StreamGone   = "stream deleted, file open"
	Migrated     = "migration applied, the next one not"
	AlarmFired   = "alarm fired, not removed"
)

// All are all points.
var All = []string{WakeBefore, WakeAfter, Committed, Durable, StreamNamed, StreamMade, EdgeAccepted, EdgeWritten, Publishing,
	Published, Handled, Acknowledged, Receipt, Trimming, Trimmed, EdgeRemoved, Sleeping, StreamGone, Migrated, AlarmFired}

// hook is set by the tag alone, before main runs.
var hook func(point string)

// Reached says that the process is at a point. It is safe for concurrent use.
func Reached(point string) {
	if hook != nil {
		hook(point)
	}
}
