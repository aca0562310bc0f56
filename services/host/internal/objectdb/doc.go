// Package objectdb is one object's SQLite file: the app's tables, and beside them, in tables named _weir_*, the log
// of published events, the edges, the cursors of what the object follows, its key-value store and its alarm. All of
// them change in one transaction at a time.
//
// A DB has one connection and one user: the object's turn. Only Sync may be called beside it. The file is opened
// exclusively, in WAL mode with synchronous NORMAL; a commit is durable once Sync has returned after it. The database
// file is never opened a second time in this process: closing that descriptor would drop SQLite's locks.
//
// App SQL passes an authorizer that keeps it to the app's own tables; the platform's statements do not.
package objectdb
