// Package overload floods the whole system in every way that a client or an app can, from processes of its own, while a
// well-behaved client goes on asking and listening. Everything that is refused is refused with a reason, memory stays
// under a bound, the well-behaved client gets all its answers and events; its times are reported beside those of a quiet
// system. -full is the size of `make faults`; otherwise a twentieth.
package overload
