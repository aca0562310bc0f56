package object

import (
	"cmp"
	"context"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/failure"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// edgeItem is a batch of one peer's operations on this publisher's edges, answered together.
type edgeItem struct {
	req     wire.EdgeRequest
	reply   func(wire.EdgeReply)
	expires time.Time
}

// counted: follows and unfollows run like calls; questions, drops and goodbyes go between them.
func (it *edgeItem) counted() bool {
	for _, q := range it.req.Operations {
		if q.Kind == edge.Follow || q.Kind == edge.Unfollow {
			return true
		}
	}
	return false
}

func (it *edgeItem) run(o *Object, a *activation, err error) {
	if err != nil {
		it.reply(wire.EdgeReply{Error: wire.AsError(err)})
		return
	}
	if it.counted() && time.Now().After(it.expires) {
		it.reply(wire.EdgeReply{Error: wire.Errorf(wire.Timeout, "%s: the follow waited its whole time behind other calls", it.req.To)})
		return
	}
	it.do(a)
	o.forgetNew()
}

// runControl is run for the lane between calls.
func (it *edgeItem) runControl(a *activation) {
	if a == nil {
		it.reply(wire.EdgeReply{Error: wire.Errorf(wire.Unavailable, "%s cannot be opened", it.req.To)})
		return
	}
	it.do(a)
}

func (it *edgeItem) do(a *activation) {
	var (
		reply   = wire.EdgeReply{Errors: make([]*wire.Error, len(it.req.Operations))}
		last    edge.Request
		before  uint64
		changed []edge.Change
	)
	for i, q := range it.req.Operations {
		if i == 0 {
			if peer := a.db.Edges.Find(q.Peer, q.Owner); peer != nil {
				before = peer.Version
			}
		}
		changes, err := a.operate(q, it)
		if err != nil {
			reply.Errors[i] = wire.AsError(err)
		}
		changed = append(changed, changes...)
		last = q
	}
	if len(changed) > 0 {
		a.trim()
	}
	answer, err := a.db.Edges.Answer(last, before, changed, a.db.Rows)
	if err != nil {
		reply.Error = wire.AsError(err)
	} else {
		reply.Answer = &answer
	}
	a.out.leave(func(barrier error) {
		if barrier != nil {
			reply = wire.EdgeReply{Error: wire.Errorf(wire.OutcomeUnknown, "%v", barrier)}
		}
		if len(changed) > 0 {
			crashpoint.Reached(crashpoint.EdgeAccepted)
		}
		it.reply(reply)
	})
}

// operate does one operation and gives the rows that it changed.
func (a *activation) operate(q edge.Request, it *edgeItem) (changes []edge.Change, err error) {
	switch q.Kind {
	case edge.Ask:
		return nil, nil
	case edge.Follow:
		return a.follow(q, it)
	}
	if a.db.New() {
		return nil, nil
	}
	if peer := a.db.Edges.Peers[q.Peer]; q.Kind == edge.Drop && q.Owner == edge.AnyOwner && peer != nil && peer.Version == q.Version {
		q.Owner, q.Since = peer.Owner, peer.Edges[q.Key].Since
	}
	if q.Kind == edge.Drop {
		peer := a.db.Edges.Find(q.Peer, q.Owner)
		if peer == nil || q.Incarnation != a.db.Edges.Incarnation || peer.Edges[q.Key].Since != q.Since {
			return nil, nil // of an edge that was followed again since
		}
	}
	err = a.small(func() error {
		if changes = a.db.Edges.Remove(q); len(changes) == 0 {
			return nil
		}
		if err := a.db.Apply(changes); err != nil || q.Kind != edge.Drop {
			return err
		}
		return a.db.RecordDrop(q, time.Now().UnixMilli())
	})
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	if q.Kind == edge.Drop {
		a.r.c.Log.Error("an edge was dropped: its follower failed too often", "object", a.id.String(), "edge", q.Peer+":"+q.Key.Topic,
			"seq", q.Seq, "attempts", q.Attempts, "error", q.Error)
		if a.r.c.Observe != nil {
			a.r.c.Observe.Dropped(a.id.Class)
		}
	}
	a.edgesChanged()
	return changes, nil
}

// edgesChanged tells the relay, at once if it has something on its way.
func (a *activation) edgesChanged() {
	a.stale = true
	if a.db.Edges.Head > a.db.Edges.Trimmed {
		a.tellRelay(nil)
	}
}

// follow decides over a follow, as a call of this object: what the hook writes and the edge commit together.
func (a *activation) follow(q edge.Request, it *edgeItem) (changes []edge.Change, err error) {
	topic := q.Key.Topic
	policy, ok := a.class.Publishes[topic]
	if !ok {
		return nil, wire.Errorf(wire.NoSuchTopic, "%s publishes no topic %q; %s", a.id.Class, topic, a.class.Topics())
	}
	filter, err := value.ParseFilter(q.FilterJSON)
	if err != nil {
		return nil, err
	}
	identity := q.Peer
	if !edge.IsFollower(q.Peer) {
		identity = q.Identity
	} else if identity == a.id.String() {
		return nil, wire.Errorf(wire.BadValue, "%s cannot follow itself", a.id)
	}
	follower, err := objectid.Parse(identity)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.r.base, min(a.r.c.Limits.Run, max(time.Millisecond, time.Until(it.expires))))
	defer cancel()
	chain := append(it.req.Chain[:len(it.req.Chain):len(it.req.Chain)], a.id.String())
	refused := wire.Errorf(wire.FollowRefused, "%s:%s", a.id, topic)
	err = a.transact(ctx, chain, func(t *turn) error {
		switch policy {
		case app.Self:
			if identity != a.id.String() {
				return refused
			}
		case app.ByHook:
			fn := a.in.Function(a.id.Class, "hooks", "follow")
			if fn == nil {
				return refused
			}
			results, err := a.lua(t, " hooks.follow", fn, lua.LString(topic), a.followerTable(follower, !edge.IsFollower(q.Peer)))
			if err != nil {
				a.r.c.Log.Error("a follow hook failed; the follow is refused", "object", a.id.String(), "edge", identity+":"+topic, "error", err, failure.Key, failure.Of(err))
				return refused
			}
			if len(results) == 0 || !lua.LVAsBool(results[0]) {
				return refused
			}
		}
		changes = a.db.Edges.Follow(q, filter)
		t.edges = len(changes) > 0
		return a.db.Apply(changes)
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// followerTable is the follower argument of the hook: data, with is() to ask for its class.
func (a *activation) followerTable(id objectid.ID, socket bool) *lua.LTable {
	t := a.in.Identity(id)
	transport := "object"
	if socket {
		transport = "connection"
	}
	t.RawSetString("transport", lua.LString(transport))
	return t
}

func sortRows(rows []wire.EdgeRow) {
	slices.SortFunc(rows, func(x, y wire.EdgeRow) int {
		return cmp.Or(cmp.Compare(x.Follower, y.Follower), cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Transport, y.Transport))
	})
}
