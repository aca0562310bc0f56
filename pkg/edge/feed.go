package edge

// Feed is what a gateway knows of one publisher: the incarnation and edge number it was told, and how far it has
// given events to its sockets. Nothing of it is kept.
type Feed struct {
	Incarnation string
	Number      uint64
	Version     uint64 // of the gateway's edge set
	High        uint64 // events up to here were given, or came before
}

// Hear judges an event: Hold it and ask, Skip it, or Apply (slice it to the sockets), which moves the mark.
func (f *Feed) Hear(e Event) Verdict {
	switch {
	case e.Incarnation != f.Incarnation, e.Number > f.Number:
		return Hold
	case e.Seq <= f.High:
		return Skip
	}
	f.High = e.Seq
	return Apply
}

// Take uses an answer; its set replaces the known one, or adds to it when the answer has a Base. Of another
// incarnation only the awaited answer counts.
func (f *Feed) Take(a Answer, awaited bool) Heard {
	older := a.Set.Version < f.Version || a.Number < f.Number
	same := a.Incarnation == f.Incarnation
	switch {
	case !same && !awaited:
		return Again
	case same && older, a.Base != 0 && (!same || a.Base != f.Version):
		return Stale
	}
	if !same {
		f.High = 0
	}
	f.Incarnation, f.Number, f.Version = a.Incarnation, a.Number, a.Set.Version
	return Taken
}
