// Package hostd is the host service: it owns a data folder, runs the objects in it, and answers for them over NATS.
//
// Open takes the folder (one process at a time) and subscribes; Run works until its context ends; Close finishes
// running calls, puts every object to sleep and gives the folder back.
package hostd
