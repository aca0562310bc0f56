// Package edge is the delivery protocol between a publisher and those who follow it, as pure functions over plain
// values: what a publisher answers and forgets, and what a receiver makes of what arrives.
//
// The publisher's file is the truth, the transport may lose, repeat, delay and reorder everything, and the receiver
// decides. A Publisher is the edge table of one object in memory; its methods change it and say which rows of the
// file change with it. A Cursor is what a follower durably knows of one publisher; Decide judges a delivery against
// it and Take uses an answer. A Feed is the same for a gateway, whose sockets get events at most once.
//
// Three things hold everything together:
//
//   - Every event names, for each topic, the last earlier event. A receiver that lacks one of a topic it follows has
//     found a gap, and asks.
//   - Every event names the publisher's edge number, which counts the changes that a receiver must know before it
//     takes a later event. A receiver that meets a higher one than it was told asks.
//   - There is one question, "I have N and know E", and its answer is complete: the asker's whole edge set, and every
//     event after N that the set wants. What is no longer kept was confirmed by this very follower.
//
// Nothing here does I/O, starts a goroutine or looks at a clock, and nothing locks: the owner of a value serialises
// its use.
package edge
