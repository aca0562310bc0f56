// Package testkit runs the real standalone system for tests: in a testing/synctest bubble, where time is virtual, with
// real SQLite files and an embedded NATS; and it runs scripts, which are an app with calls and what must come of them.
package testkit
