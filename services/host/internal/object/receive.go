package object

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

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
		case failed:
			d.nak(until(l.c.Attempts.Next))
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
		Attempts: l.c.Attempts.Count, Next: l.c.Attempts.Next}
	a.out.leaveLazy(func(err error) {
		if err == nil {
			a.r.c.Receipt(r)
		}
	})
}

type outcome int

const (
	applied outcome = iota
	failed
	givenUp
)

// attempt runs the handler of one event. It commits the handler's writes with the cursor, or counts the failure; an
// event that may have run before is counted first, so that a handler that kills its host is counted.
func (a *activation) attempt(l *link, e edge.Event, again bool) outcome {
	key := e.Publisher.Class + ":" + e.Topic
	if !a.class.Receives[key] {
		l.pos = e.Seq
		a.note(l)
		return applied
	}
	since := l.c.Set.Since(e.Topic)
	if !l.c.Attempts.Of(e.Seq, since) {
		if l.c.Attempts.Count > 0 && l.c.Attempts.Seq != e.Seq {
			l.c.Attempts = edge.Attempts{}
		}
		l.c.Attempts = edge.Attempts{Seq: e.Seq, Since: since}
	}
	if l.c.Attempts.Count >= edge.MaxAttempts {
		a.giveUp(l, e)
		return givenUp
	}
	if again {
		a.count(l, "the handler did not come to its end")
	}
	ctx, cancel := context.WithTimeout(a.r.base, a.r.c.Limits.Run)
	defer cancel()
	had := l.c.Attempts.Count > 0
	err := a.transact(ctx, []string{a.id.String()}, func(t *turn) error {
		t.delivery = true
		if _, err := a.lua(t, a.in.Function(a.id.Class, "receives", key), a.eventTable(e)); err != nil {
			return err
		}
		return a.db.SaveCursor(e.Publisher.String(), e.Seq, had)
	})
	if a.r.c.Observe != nil {
		verdict := "applied"
		if err != nil {
			verdict = "failed"
		}
		a.r.c.Observe.Delivered(a.id.Class, verdict)
	}
	if err != nil && a.r.base.Err() != nil {
		return failed // the host stops: it comes again after the start
	}
	if err != nil {
		if again {
			l.c.Attempts.Error = err.Error()
			a.saveAttempts(l)
		} else {
			a.count(l, err.Error())
		}
		a.r.c.Log.Warn("a receives handler failed", "object", a.id.String(), "edge", l.publisher.String()+":"+e.Topic, "seq", e.Seq,
			"attempt", l.c.Attempts.Count, "error", err)
		a.note(l)
		if l.c.Attempts.Count >= edge.MaxAttempts {
			a.giveUp(l, e)
			return givenUp
		}
		a.askAt(l, until(l.c.Attempts.Next)+time.Second) // if the delivery does not come again by itself
		return failed
	}
	l.c.At, l.c.Attempts = e.Seq, edge.Attempts{}
	l.pos, l.reopened = e.Seq, false
	a.note(l)
	return applied
}

// count adds a failed attempt and says when the next one may be.
func (a *activation) count(l *link, text string) {
	t := &l.c.Attempts
	t.Count++
	t.Next = now() + edge.Backoff(t.Count)
	t.Error = text
	a.saveAttempts(l)
}

func (a *activation) saveAttempts(l *link) {
	if err := a.small(func() error { return a.db.SaveAttempts(l.publisher.String(), l.c) }); err != nil {
		a.r.c.Log.Error("a failed attempt was not counted", "object", a.id.String(), "error", err)
	}
}

// giveUp asks the publisher to drop the edge and record why, as often as the event comes again.
func (a *activation) giveUp(l *link, e edge.Event) {
	if l.asking != 0 {
		return
	}
	a.request(l, edge.Request{Kind: edge.Drop, Key: edge.Key{Topic: e.Topic}, Seq: e.Seq, Since: l.c.Set.Since(e.Topic),
		Attempts: l.c.Attempts.Count, Error: short(l.c.Attempts.Error, 2000)})
}

func short(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// ask asks the one question, unless an answer is already on its way.
func (a *activation) ask(l *link) {
	if l.asking == 0 {
		a.request(l, edge.Request{Kind: edge.Ask})
	}
}

// askAt asks later.
func (a *activation) askAt(l *link, wait time.Duration) {
	l.stop()
	key := l.publisher.String()
	l.timer = time.AfterFunc(wait, func() {
		a.r.controlIfAwake(a.o, func(a *activation) {
			if l := a.links[key]; l != nil {
				a.ask(l)
			}
		})
	})
}

// fill completes a request with what this follower has and knows.
func (a *activation) fill(l *link, q edge.Request) edge.Request {
	q.Peer, q.ID, q.Owner = a.id.String(), rand.Uint64()|1, a.db.Own
	q.Incarnation, q.Have, q.Number, q.Version = l.c.Incarnation, l.pos, l.c.Number, l.c.Set.Version
	q.Failed = l.c.Attempts.Count > 0
	return q
}

// request sends q; the newest one is the one whose answer counts. It tells nothing that must be durable: what is said
// to be had is never taken as a receipt.
func (a *activation) request(l *link, q edge.Request) {
	q = a.fill(l, q)
	l.asking = q.ID
	key := l.publisher.String()
	a.r.background(func(ctx context.Context) {
		reply, err := a.r.c.Client.Edge(ctx, wire.EdgeRequest{To: key, Operations: []edge.Request{q}})
		a.r.controlIfAwake(a.o, func(a *activation) {
			l := a.links[key]
			if l == nil {
				return
			}
			if err != nil || reply.Answer == nil {
				a.unanswered(l, q.ID, err)
				return
			}
			a.answered(l, *reply.Answer)
		})
	})
}

// unanswered gives a question up and asks again later.
func (a *activation) unanswered(l *link, id uint64, err error) {
	if l.asking != id {
		return
	}
	l.asking = 0
	l.failures++
	a.r.c.Log.Debug("a publisher did not answer", "object", a.id.String(), "edge", l.publisher.String(), "error", err)
	a.askAt(l, min(10*time.Second, time.Second<<min(l.failures, 4)))
}

// answered takes the answer to a request: the edge set, then the events that were missing.
func (a *activation) answered(l *link, ans edge.Answer) {
	if ans.Set.Owner != a.db.Own {
		return
	}
	awaited := ans.ID == l.asking
	if awaited {
		l.asking, l.failures = 0, 0
		l.stop()
	}
	var kept bool
	if err := a.small(func() (err error) {
		kept, err = a.takeSet(l, ans, awaited)
		return err
	}); err != nil {
		a.r.c.Log.Error("an answer was not kept", "object", a.id.String(), "error", err)
		return
	}
	if kept {
		if !a.applyRows(l, ans.Rows) {
			return
		}
		if ans.More {
			l.pos = max(l.pos, ans.Head)
			a.ask(l)
		} else {
			l.pos = max(l.pos, ans.Head)
			a.note(l)
		}
	}
	a.again(l, awaited)
}

// takeSet keeps what an answer says of the edges, in the transaction in progress. false: the answer is of no use.
func (a *activation) takeSet(l *link, ans edge.Answer, awaited bool) (bool, error) {
	c, pos, how, setBack := l.c.Take(l.pos, ans, awaited)
	switch how {
	case edge.Stale:
		return false, nil
	case edge.Again:
		a.ask(l)
		return false, nil
	}
	if setBack {
		a.r.c.Log.Error("this object's file was set back: it has confirmed events that it no longer has", "object", a.id.String(),
			"edge", l.publisher.String(), "cursor", l.c.At, "confirmed", ans.Applied)
	}
	if !slices.ContainsFunc(c.Set.Edges, func(e edge.Edge) bool { return e.Since == c.Attempts.Since }) {
		c.Attempts = edge.Attempts{} // of an edge that is gone, or was followed again
	}
	if err := a.db.SaveFollowing(l.publisher.String(), c); err != nil {
		return false, err
	}
	l.c, l.pos = c, pos
	return true, nil
}

// applyRows runs the events of an answer. false: it must wait for a later attempt.
func (a *activation) applyRows(l *link, rows []edge.Event) bool {
	for _, e := range rows {
		if e.Seq <= l.pos {
			continue
		}
		if l.c.Waits(l.pos, now()) {
			a.askAt(l, until(l.c.Attempts.Next))
			return false
		}
		switch a.attempt(l, e, true) {
		case applied:
		case failed:
			a.askAt(l, until(l.c.Attempts.Next))
			return false
		case givenUp:
			return false
		}
	}
	return true
}

// again judges anew what was held; after an awaited answer another incarnation's events are of the past.
func (a *activation) again(l *link, awaited bool) {
	held := l.held
	l.held = nil
	sortIncoming(held)
	for _, d := range held {
		if awaited && d.Incarnation != l.c.Incarnation {
			d.term()
			continue
		}
		a.deliver(d)
	}
}

// hear takes the answers to follows that a turn made. They stand even if the turn does not: then they are kept by a
// transaction of their own.
func (a *activation) hear(t *turn, committed bool) {
	for _, h := range t.answers {
		l := a.links[h.publisher]
		if !committed {
			if err := a.keepAfterAll(func() error { _, err := a.takeSet(l, h.answer, true); return err }); err != nil {
				a.r.c.Log.Error("an accepted follow was not kept; it comes with the next question", "object", a.id.String(), "error", err)
			}
		}
		rows, head, more := h.answer.Rows, h.answer.Head, h.answer.More
		a.o.later(func(a *activation) {
			if a.applyRows(l, rows) {
				l.pos = max(l.pos, head)
				if more {
					a.ask(l)
				}
				a.note(l)
				a.again(l, true)
			}
		})
	}
}

// keepAfterAll is small, also for an object whose first call has just failed: its name stays, its init runs later.
func (a *activation) keepAfterAll(do func() error) error {
	if err := a.db.Begin(context.Background()); err != nil {
		return err
	}
	if err := do(); err != nil {
		_ = a.db.Rollback()
		return err
	}
	if _, err := a.db.Commit(); err != nil {
		return err
	}
	a.out.commit()
	return nil
}

// cannotOpen counts a delivery to a follower that cannot be opened as a failed attempt. The file cannot keep the
// count, so the wake list's does.
func (o *Object) cannotOpen(d *Incoming, err error) {
	if d.Topic == "" {
		return
	}
	follower, publisher := o.id.String(), d.Publisher.String()
	seq, count, next, bad := o.r.c.Wake.Attempts(follower, publisher)
	if bad != nil || seq == d.Seq && until(next) > 0 || seq != 0 && seq < d.Seq && count < edge.MaxAttempts {
		d.nak(max(until(next), time.Second))
		return
	}
	if seq != d.Seq {
		count = 0
	}
	count++
	next = now() + edge.Backoff(min(count, edge.MaxAttempts))
	if bad := o.r.c.Wake.SetAttempts(follower, publisher, d.Seq, count, next); bad != nil {
		o.r.c.Log.Error("a failed attempt was not counted", "object", follower, "error", bad)
	}
	o.r.c.Log.Warn("a follower cannot be opened", "object", follower, "edge", publisher+":"+d.Topic, "seq", d.Seq, "attempt", count, "error", err)
	if count < edge.MaxAttempts {
		d.nak(until(next))
		return
	}
	d.nak(time.Second)
	o.dropUnopened(d, count, err)
}
