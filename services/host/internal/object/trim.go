package object

import (
	"context"
	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/wire"
)

// received takes receipts of this publisher's followers.
func (a *activation) received(list []edge.Receipt) {
	if a == nil {
		return
	}
	moved := false
	for _, x := range list {
		moved = a.db.Edges.Received(x) || moved
	}
	if moved {
		a.trim()
	}
}

// trim deletes what every follower has, and lets the wake list know when nothing is left.
func (a *activation) trim() {
	e := &a.db.Edges
	relayed := e.Head
	if a.relay != nil {
		relayed = a.relay.Relayed()
	}
	to := e.TrimTo(relayed)
	if to <= e.Trimmed || a.db.New() {
		return
	}
	_, before := a.db.Kept()
	crashpoint.Reached(crashpoint.Trimming)
	if err := a.small(func() error { return a.db.Trim(to) }); err != nil {
		a.r.c.Log.Error("the log cannot be trimmed", "object", a.id.String(), "error", err)
		return
	}
	crashpoint.Reached(crashpoint.Trimmed)
	_, after := a.db.Kept()
	a.oldest = 0 // another one is the oldest now
	if rel := a.relay; rel != nil {
		a.out.leave(func(err error) {
			if err == nil {
				rel.Trimmed(to, before-after)
			}
		})
	}
}

// check is the regular look: at the stream, its consumers, and the receipts that are missing, which are asked
// for with the end of the log, so that a follower sees a lost tail as a gap.
func (a *activation) check() {
	if a == nil {
		return
	}
	a.trim()
	e := &a.db.Edges
	if e.Head == e.Trimmed || !e.Durable() {
		if a.out.wait(context.Background()) == nil {
			a.settle()
		}
		return
	}
	a.stale = true
	a.tellRelay(nil)
	a.relay.Check()
	last, err := a.db.LastBefore(e.Head + 1)
	if err != nil {
		a.r.c.Log.Error("the log cannot be read", "object", a.id.String(), "error", err)
		return
	}
	var ends []wire.End
	for name, p := range e.Peers {
		if edge.IsFollower(name) && p.Confirmed < a.checked {
			ends = append(ends, wire.End{Follower: name, Owner: p.Owner, Version: p.Version, Event: edge.Event{Publisher: a.id,
				Incarnation: e.Incarnation, Seq: e.Head, Number: e.Number, Last: last}})
		}
	}
	a.checked = e.Head
	a.out.leave(func(err error) {
		if err == nil {
			for _, end := range ends {
				a.r.c.End(end)
			}
		}
	})
}
