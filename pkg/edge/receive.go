package edge

// Cursor is what a follower durably knows of one publisher: how far it is, and the edge set and edge number it was
// told. They go back together when a tail is lost with the power.
type Cursor struct {
	Incarnation string // the publisher's
	At          uint64
	Number      uint64
	Set         Set
	Attempts    Attempts
}

// Attempts counts the failed attempts of one event on one edge.
type Attempts struct {
	Seq, Since uint64
	Count      int
	Next       int64 // Unix milliseconds of the next attempt
	Error      string
}

// MaxAttempts failures drop an edge; after failure n the next attempt waits Backoff(n).
const MaxAttempts = 8

// Backoff gives the wait after the nth failure in milliseconds: 500 doubling to 32,000.
func Backoff(n int) int64 { return 500 << (min(max(n, 1), MaxAttempts) - 1) }

// Of says whether the count is of this event on this edge.
func (t Attempts) Of(seq, since uint64) bool { return t.Count > 0 && t.Seq == seq && t.Since == since }

// Waits says whether what follows pos stands behind a failed event whose time has not come.
func (c Cursor) Waits(pos uint64, now int64) bool {
	for _, e := range c.Set.Edges {
		if e.Since == c.Attempts.Since {
			return c.Attempts.Seq > pos && now < c.Attempts.Next
		}
	}
	return false
}

// Delivery is an event as it arrives at a follower.
type Delivery struct {
	Event
	Version uint64 // the edge-set version that its consumer was made for
	Owner   string // of a request for a receipt: the follower's incarnation that has the edges
	Again   bool   // delivered before
}

// Verdict is what a delivery is to a follower.
type Verdict int

// The verdicts. After Skip, Pass, Apply and Refuse the message is done with.
const (
	Skip   Verdict = iota // had already
	Pass                  // nothing for this follower: go past it
	Apply                 // the next one
	Wait                  // behind a failed event whose time has not come
	Hold                  // a gap, or news of another incarnation, edge number or set: ask, and hold it
	Refuse                // of an older edge set
)

// Decide is the receiver's decision: what the follower, durably at c and in memory at pos, makes of a delivery.
func Decide(c Cursor, pos uint64, d Delivery, now int64) Verdict {
	switch {
	case d.Incarnation != c.Incarnation:
		return Hold
	case d.Version < c.Set.Version:
		return Refuse
	case d.Version > c.Set.Version, d.Number > c.Number:
		return Hold
	case d.Seq <= pos:
		return Skip
	case c.Waits(pos, now):
		return Wait
	case gap(c, pos, d.Last):
		return Hold
	case !c.Set.Wants(d.Topic, d.Seq, d.Data):
		return Pass
	}
	return Apply
}

// gap says whether a followed topic has an event before this one that the follower lacks.
func gap(c Cursor, pos uint64, last map[string]uint64) bool {
	for _, e := range c.Set.Edges {
		if last[e.Topic] > max(pos, e.Start) {
			return true
		}
	}
	return false
}

// Heard is what an answer is to its receiver.
type Heard int

// The kinds of answers.
const (
	Stale Heard = iota // says nothing newer than what is known: look again at what is held
	Again              // of another incarnation and not the awaited one: ask
	Taken
)

// Take uses an answer: it gives the cursor and position to go on from, before the answer's rows. setBack says that
// receipts had named a later cursor than the follower has: its file was set back.
func (c Cursor) Take(pos uint64, a Answer, awaited bool) (next Cursor, at uint64, heard Heard, setBack bool) {
	same := a.Incarnation == c.Incarnation
	switch older := a.Set.Version < c.Set.Version || a.Number < c.Number; {
	case !same && !awaited:
		return c, pos, Again, false
	case same && (older || a.Have > pos):
		return c, pos, Stale, false
	}
	setBack = same && a.Applied > c.At
	if !same {
		had := pos
		pos = 0
		if a.Parent != "" && a.Parent == c.Incarnation {
			pos = min(had, a.Fork)
		}
		c = Cursor{Incarnation: a.Incarnation, At: pos}
	}
	c.Set, c.Number = a.Set, a.Number
	return c, pos, Taken, setBack
}
