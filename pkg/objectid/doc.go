// Package objectid is the identity of an object: its class and its name, and
// the three things derived from them that must never change or collide, the
// subject token, the file name and the partition.
//
// It owns the one escape that turns any text into a token for subjects,
// streams, consumers and files. Distinct ids give distinct tokens and distinct
// files, also on a file system that ignores case. It refuses names the rest of
// the system could not carry; whatever it accepts is safe to use everywhere.
//
// All functions are pure and may be called concurrently.
package objectid
