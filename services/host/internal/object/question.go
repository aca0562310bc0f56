package object

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

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
	// A follow clears failed attempts, but not one made by the very handler that is being attempted.
	q.Failed = l.c.Attempts.Count > 0 && (a.t == nil || a.t.attempting != l)
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
			if len(reply.Errors) > 0 && reply.Errors[0] != nil && q.Kind == edge.Drop {
				a.r.c.Log.Warn("an edge that failed too often was not dropped; it is tried again", "object", a.id.String(), "edge", key, "error", reply.Errors[0])
				err = reply.Errors[0]
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
	c, pos := l.c, l.pos
	if err := a.small(func() (err error) {
		kept, err = a.takeSet(l, ans, awaited)
		return err
	}); err != nil {
		l.c, l.pos = c, pos
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
		case givenUp, unready:
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
			l.c, l.pos = h.c, h.pos // as it was before the turn
			if err := a.keepAfterAll(func() error { _, err := a.takeSet(l, h.answer, true); return err }); err != nil {
				l.c, l.pos = h.c, h.pos
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

func sortIncoming(list []*Incoming) {
	slices.SortStableFunc(list, func(x, y *Incoming) int {
		switch {
		case x.Seq < y.Seq:
			return -1
		case x.Seq > y.Seq:
			return 1
		}
		return 0
	})
}
