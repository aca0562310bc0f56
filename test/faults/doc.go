// Package faults breaks what Weir stands on, one thing at a time: the message server and what it stored, the links to
// it, the disk below the data folder, and the files in it. After each fault nothing that was answered may be missing,
// and every follower must have its publisher's writes, in order, once. Mounting needs root; those tests are skipped
// without it.
package faults
