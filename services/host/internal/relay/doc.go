// Package relay carries one publisher's durable events from its log to its followers: into its JetStream stream when
// objects follow, by core NATS when only gateways do.
//
// The log is the truth, the stream a copy that may be lost at any time. A stream's sequence is the log's: it is made
// with the first kept row as its first sequence, and every publish names the one before it, so that order, the
// absence of doubles and a fence against other writers are one check. After a doubt the relay asks for the stream's
// last sequence and goes on behind it; when the stream is missing it makes a new one under a new token, which is
// durable in the publisher's file before anything is asked under it.
//
// A Relay has at most one goroutine, which lives while there is something to do. Its methods may be called from any
// goroutine and do not block; the Source's are called from the relay's goroutine.
package relay
