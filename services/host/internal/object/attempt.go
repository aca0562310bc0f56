package object

import (
	"context"
	"strings"
	"time"

	"weir/pkg/edge"
	"weir/pkg/failure"
	"weir/pkg/wire"
)

type outcome int

const (
	applied outcome = iota
	failed
	givenUp
	unready // no handler ran
)

// again is when it is tried again what could not begin.
const again = 5 * time.Second

// attempt runs the handler of one event. It commits the handler's writes with the cursor, or counts the failure; an
// event that may have run before is counted first, so that a handler that kills its host is counted.
func (a *activation) attempt(l *link, e edge.Event, repeated bool) outcome {
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
	if repeated {
		a.count(l, "the handler did not come to its end")
	}
	a.out.room() // the handler's time begins when the disk has caught up
	ctx, cancel := context.WithTimeout(a.r.base, a.r.c.Limits.Run)
	defer cancel()
	had, counted := l.c.Attempts.Count > 0, l.c.Attempts
	ran := false
	err := a.transact(ctx, []string{a.id.String()}, func(t *turn) error {
		t.delivery, t.attempting = true, l
		ran = true
		if _, err := a.lua(t, " receives "+key, a.in.Function(a.id.Class, "receives", key), a.eventTable(e)); err != nil {
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
	if err != nil {
		l.c.Attempts = counted // whatever a follow in the handler made of them
	}
	if err != nil && (a.r.base.Err() != nil || !ran) {
		// The host stops, or the object could not be brought up to the app: no handler ran, and nothing is counted.
		if repeated {
			l.c.Attempts.Count--
			l.c.Attempts.Next = now() + 1000
			a.saveAttempts(l)
		}
		a.r.c.Log.Warn("an event could not be attempted", "object", a.id.String(), "edge", l.publisher.String()+":"+e.Topic, "seq", e.Seq, "error", err)
		a.askAt(l, again)
		return unready
	}
	if err != nil {
		if repeated {
			l.c.Attempts.Error = err.Error()
			l.c.Attempts.Next = nextAttempt(l.c.Attempts.Count) // it was counted before the handler ran
			a.saveAttempts(l)
		} else {
			a.count(l, err.Error())
		}
		a.r.c.Log.Warn("a receives handler failed", "object", a.id.String(), "edge", l.publisher.String()+":"+e.Topic, "seq", e.Seq,
			"attempt", l.c.Attempts.Count, "error", err, failure.Key, failure.Of(err))
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

// nextAttempt says when an event is tried again after so many failures. After the last one there is nothing to wait for:
// the edge is given up, as often as it takes.
func nextAttempt(count int) int64 {
	if count >= edge.MaxAttempts {
		return now()
	}
	return now() + edge.Backoff(count)
}

// count adds a failed attempt and says when the next one may be.
func (a *activation) count(l *link, text string) {
	t := &l.c.Attempts
	t.Count++
	t.Next = nextAttempt(t.Count)
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
		a.askAt(l, time.Second) // its answer brings the event again
		return
	}
	a.request(l, edge.Request{Kind: edge.Drop, Key: edge.Key{Topic: e.Topic}, Seq: e.Seq, Since: l.c.Set.Since(e.Topic),
		Attempts: l.c.Attempts.Count, Error: short(l.c.Attempts.Error, 2000)})
}

// short cuts a text to n bytes, at a whole character.
func short(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
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

// dropUnopened asks the publisher to drop the edge of a follower that cannot be opened, and so cannot ask itself.
func (o *Object) dropUnopened(d *Incoming, count int, cause error) {
	r := o.r
	r.background(func(ctx context.Context) {
		reply, err := r.c.Client.Edge(ctx, wire.EdgeRequest{To: d.Publisher.String(), Operations: []edge.Request{{Kind: edge.Drop,
			Peer: o.id.String(), Owner: edge.AnyOwner, Incarnation: d.Incarnation, Key: edge.Key{Topic: d.Topic}, Seq: d.Seq,
			Version: d.Version, Attempts: count, Error: short(cause.Error(), 2000)}}})
		if err == nil && len(reply.Errors) > 0 && reply.Errors[0] != nil {
			err = reply.Errors[0]
		}
		if err == nil && reply.Answer != nil {
			err = r.c.Wake.SetAttempts(o.id.String(), d.Publisher.String(), 0, 0, 0)
		}
		if err != nil {
			r.c.Log.Error("the edge of a follower that cannot be opened was not dropped", "object", o.id.String(), "error", err)
		}
	})
}
