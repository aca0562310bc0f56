package object

import (
	"context"
	"encoding/json"
	"time"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// callItem is a call of a method.
type callItem struct {
	req     wire.CallRequest
	reply   func(wire.CallReply)
	arrived time.Time
	expires time.Time
}

func (it *callItem) counted() bool { return true }

func (it *callItem) run(o *Object, a *activation, err error) {
	var results json.RawMessage
	if err == nil {
		results, err = it.turn(o, a)
	}
	if o.r.c.Observe != nil {
		o.r.c.Observe.Called(o.id.Class, time.Since(it.arrived), wire.AsError(err))
	}
	reply := wire.CallReply{Results: results}
	if err != nil {
		reply = wire.CallReply{Error: wire.AsError(err)}
	}
	if a == nil {
		it.reply(reply)
		return
	}
	// An error tells what the call has read, and waits like a result.
	a.out.leave(func(barrier error) {
		if barrier != nil {
			reply = wire.CallReply{Error: wire.Errorf(wire.OutcomeUnknown, "%v", barrier)}
		}
		it.reply(reply)
	})
	o.forgetNew()
}

// forgetNew leaves nothing behind of an object whose first transaction did not commit.
func (o *Object) forgetNew() {
	if o.a != nil && o.a.db.New() {
		o.discard()
	}
}

func (it *callItem) turn(o *Object, a *activation) (results json.RawMessage, err error) {
	left := time.Until(it.expires)
	if left <= 0 {
		return nil, wire.Errorf(wire.Timeout, "%s:%s waited its whole time behind other calls and did not run", o.id, it.req.Method)
	}
	if it.req.Method == MethodEdges {
		return a.edgesReply()
	}
	run := a.r.c.Limits.Run
	if limit := time.Duration(it.req.RunMS) * time.Millisecond; limit > 0 {
		run = min(run, limit)
	}
	ctx, cancel := context.WithTimeoutCause(a.r.base, min(run, left), nil)
	defer cancel()
	err = a.transact(ctx, append(it.req.Chain[:len(it.req.Chain):len(it.req.Chain)], it.req.To), func(t *turn) error {
		args := it.req.Args
		if len(args) == 0 {
			args = json.RawMessage("[]")
		}
		values, err := value.DecodeList(a.in.VM.L, args, "argument")
		if err != nil {
			return err
		}
		returned, err := a.lua(t, ":"+it.req.Method, a.in.Function(a.id.Class, "", it.req.Method), values...)
		if err != nil {
			return err
		}
		results, err = value.EncodeList(returned, "result", value.MaxResults)
		return err
	})
	return results, err
}

// caller makes the calls of a running turn to other objects.
type caller activation

// CallObject implements app.Caller. Nothing leaves the object before what it committed earlier is durable.
func (c *caller) CallObject(ctx context.Context, id objectid.ID, method string, args []byte) ([]byte, error) {
	a := (*activation)(c)
	t := a.t
	if t == nil {
		return nil, wire.Errorf(wire.Internal, "no call is running")
	}
	if err := a.leaveFirst(ctx); err != nil {
		return nil, err
	}
	return a.r.c.Client.Call(ctx, wire.CallRequest{To: id.String(), Method: method, Args: args, Chain: t.chain, RunMS: time.Until(deadline(ctx)).Milliseconds()})
}

// buckets are kv as a turn uses it: what it writes shows what it has seen, and waits like a call.
type buckets activation

// Get implements app.Buckets.
func (b *buckets) Get(ctx context.Context, bucket, key string) ([]byte, bool, error) {
	return (*activation)(b).r.c.Buckets.Get(ctx, bucket, key)
}

// List implements app.Buckets.
func (b *buckets) List(ctx context.Context, bucket, prefix, cursor string, limit int) ([]string, bool, error) {
	return (*activation)(b).r.c.Buckets.List(ctx, bucket, prefix, cursor, limit)
}

// Set implements app.Buckets.
func (b *buckets) Set(ctx context.Context, bucket, key string, data []byte) error {
	a := (*activation)(b)
	if err := a.leaveFirst(ctx); err != nil {
		return err
	}
	return a.r.c.Buckets.Set(ctx, bucket, key, data)
}

// Delete implements app.Buckets.
func (b *buckets) Delete(ctx context.Context, bucket, key string) error {
	a := (*activation)(b)
	if err := a.leaveFirst(ctx); err != nil {
		return err
	}
	return a.r.c.Buckets.Delete(ctx, bucket, key)
}

// leaveFirst waits until all that this object committed is durable.
func (a *activation) leaveFirst(ctx context.Context) error {
	if err := a.out.wait(ctx); err != nil {
		return wire.Errorf(wire.OutcomeUnknown, "%v", err)
	}
	return nil
}

func deadline(ctx context.Context) time.Time {
	d, ok := ctx.Deadline()
	if !ok {
		return time.Now().Add(10 * time.Second)
	}
	return d
}

// edgesReply lists the edges and what was dropped, for `weir edges`.
func (a *activation) edgesReply() (json.RawMessage, error) {
	e := &a.db.Edges
	reply := wire.EdgesReply{Head: e.Head, Edges: append([]wire.EdgeRow{}, a.edgeRows("")...), Dropped: []wire.DroppedRow{}}
	if !a.db.New() {
		if err := a.countOwed(reply.Edges); err != nil {
			return nil, err
		}
		dropped, err := a.db.Dropped()
		if err != nil {
			return nil, err
		}
		reply.Dropped = append(reply.Dropped, dropped...)
	}
	data, err := wire.Encode(reply)
	if err != nil {
		return nil, err
	}
	return wire.Encode([]json.RawMessage{data})
}

// countOwed corrects the lag of edges to what they wait for: of the kept events, at most maxOwed, those that they take.
func (a *activation) countOwed(rows []wire.EdgeRow) error {
	const maxOwed = 10_000
	e := &a.db.Edges
	var kept []edge.Event
	if err := a.db.Rows(e.Trimmed, func(ev edge.Event) bool {
		kept = append(kept, ev)
		return len(kept) < maxOwed
	}); err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		p := e.Peers[row.Follower]
		if row.Transport != "object" || p == nil || len(kept) == maxOwed {
			continue
		}
		ed := p.Edges[edge.Key{Topic: row.Topic}]
		row.Lag = 0
		for _, ev := range kept {
			if ev.Seq > p.Confirmed && ev.Topic == row.Topic && ed.Takes(ev.Seq, ev.Data) {
				row.Lag++
			}
		}
		if row.Lag == 0 {
			row.Confirmed = e.Head
		}
	}
	return nil
}

// edgeRows lists the edges of a topic, or of all.
func (a *activation) edgeRows(topic string) []wire.EdgeRow {
	e := &a.db.Edges
	var rows []wire.EdgeRow
	for name, p := range e.Peers {
		if !edge.IsFollower(name) && a.r.presence.gone(name) {
			continue // a ghost
		}
		for _, ed := range p.Set().Edges {
			if topic != "" && ed.Topic != topic {
				continue
			}
			row := wire.EdgeRow{Follower: p.Identity(ed.Conn), Topic: ed.Topic, Transport: "connection"}
			if !ed.Filter.Empty() {
				row.Filter = ed.Filter.JSON()
			}
			if edge.IsFollower(name) {
				row.Transport, row.Confirmed, row.Lag = "object", p.Confirmed, e.Head-min(p.Confirmed, e.Head)
				row.Attempts, row.NextTry, row.Error = p.Attempts, p.Next, p.Error
			}
			rows = append(rows, row)
		}
	}
	sortRows(rows)
	return rows
}
