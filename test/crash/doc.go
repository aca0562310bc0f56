// Package crash kills real processes with SIGKILL under load, restarts them, and checks that nothing that was answered
// is lost and that every follower's record is its publisher's, in order, once.
package crash
