// Package model drives the real system in virtual time with random publishers, followers, devices, filters, failing
// handlers and faults of the message server, each run from a seed, and compares what followers got with what a simple
// record says they must have:
//
//	go test ./test/model -seeds 2000 -first 1
package model
