package object

import (
	"context"
	"time"

	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// maxHeld deliveries of one publisher wait in memory for an answer; what comes beyond is sent back for a second.
const maxHeld = 64

// Message is how a delivery is answered: by acknowledging it, sending it back for a while, ending it, or asking for
// more time.
type Message interface {
	Ack() error
	Nak(time.Duration) error
	Term() error
	InProgress() error
}

// Incoming is a delivery for a follower. Message is nil for the end of a log.
type Incoming struct {
	edge.Delivery
	Message Message
}

func (d *Incoming) ack() {
	if d.Message != nil {
		_ = d.Message.Ack() // lost: it comes again, and is skipped
	}
}

func (d *Incoming) nak(wait time.Duration) {
	if d.Message != nil {
		_ = d.Message.Nak(wait)
	}
}

func (d *Incoming) term() {
	if d.Message != nil {
		_ = d.Message.Term()
	}
}

func (d *Incoming) inProgress() {
	if d.Message != nil {
		_ = d.Message.InProgress()
	}
}

func (d *Incoming) counted() bool { return false }

func (d *Incoming) run(o *Object, a *activation, err error) {
	if err != nil {
		o.cannotOpen(d, err)
		return
	}
	a.deliver(d)
	o.forgetNew()
}

// link is what a follower knows of one publisher, in memory and in the file.
type link struct {
	publisher objectid.ID
	c         edge.Cursor
	pos       uint64 // the cursor, or further: over what filters left out
	asking    uint64 // the id of the request that counts; older ones' answers are only hints
	failures  int    // of asking, in a row
	held      []*Incoming
	reopened  bool        // after a crash: what runs first may have run before
	timer     *time.Timer // asks again
}

func (l *link) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (a *activation) link(publisher objectid.ID) *link {
	key := publisher.String()
	l := a.links[key]
	if l == nil {
		l = &link{publisher: publisher}
		a.links[key] = l
	}
	return l
}

func now() int64 { return time.Now().UnixMilli() }

func until(ms int64) time.Duration {
	return max(0, time.Until(time.UnixMilli(ms)))
}

// deliver judges one delivery and does what the judgement says.
func (a *activation) deliver(d *Incoming) {
	l := a.link(d.Publisher)
	end := d.Topic == ""
	if end && d.Owner != a.db.Own {
		a.disown(d)
		return
	}
	switch verdict := edge.Decide(l.c, l.pos, d.Delivery, now()); verdict {
	case edge.Skip:
		d.ack()
		if end {
			a.note(l)
		}
	case edge.Refuse:
		d.term()
	case edge.Pass:
		l.pos = d.Seq
		d.ack()
		a.note(l)
	case edge.Apply:
		switch a.attempt(l, d.Event, d.Again || l.reopened) {
		case applied:
			d.ack()
			crashpoint.Reached(crashpoint.Acknowledged)
		case failed:
			d.nak(max(until(l.c.Attempts.Next), 100*time.Millisecond))
		case unready:
			d.nak(again)
		case givenUp:
			d.nak(time.Second) // the drop's answer makes it one of an older set
		}
	case edge.Wait:
		d.nak(until(l.c.Attempts.Next) + 20*time.Millisecond)
	case edge.Hold:
		if len(l.held) >= maxHeld {
			d.nak(time.Second)
		} else {
			l.held = append(l.held, d)
		}
		a.ask(l)
	}
}

// disown answers for edges of an earlier life of this object: nobody will ever confirm them.
func (a *activation) disown(d *Incoming) {
	q := edge.Request{Kind: edge.Disown, Peer: a.id.String(), Owner: d.Owner}
	a.r.background(func(ctx context.Context) {
		if _, err := a.r.c.Client.Edge(ctx, wire.EdgeRequest{To: d.Publisher.String(), Operations: []edge.Request{q}}); err != nil {
			a.r.c.Log.Debug("edges of an earlier life were not disowned", "object", a.id.String(), "error", err)
		}
	})
}

// note tells the publisher how far this follower is, once that is durable.
func (a *activation) note(l *link) {
	r := edge.Receipt{Publisher: l.publisher, Peer: a.id.String(), Owner: a.db.Own, Incarnation: l.c.Incarnation, Have: l.pos, Applied: l.c.At,
		Attempts: l.c.Attempts.Count, Next: l.c.Attempts.Next, Error: short(l.c.Attempts.Error, 500)}
	a.out.leaveLazy(func(err error) {
		if err == nil {
			a.r.c.Receipt(r)
		}
	})
}
