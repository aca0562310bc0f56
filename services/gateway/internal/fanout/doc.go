// Package fanout brings the events of followed publishers to a gateway's sockets: one subscription a publisher,
// however many sockets follow it, sliced here by topic, filter and edge, at most once.
//
// A Fanout is safe for concurrent use. Each publisher has a Feed, whose lock orders what arrives with what is asked;
// requests to the publisher go one at a time, those of many sockets together.
package fanout
