package object

import (
	"context"
	"slices"
	"time"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

// asking bounds one question to a publisher.
const asking = 10 * time.Second

// background runs work that an object's turn does not wait for; Close waits for it.
func (r *Registry) background(work func(context.Context)) {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return
	}
	r.workers.Add(1)
	r.mu.Unlock()
	go func() {
		defer r.workers.Done()
		ctx, cancel := context.WithTimeout(r.base, asking)
		defer cancel()
		work(ctx)
	}()
}

// controlIfAwake queues work for an object unless it has gone to sleep since.
func (r *Registry) controlIfAwake(o *Object, work func(*activation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.objects[o.id] != o || !o.open {
		return
	}
	a := o.a
	o.control = append(o.control, func(now *activation) {
		if now != nil && now == a {
			work(now)
		}
	})
	o.start()
}

// later queues work between this turn and the next.
func (o *Object) later(work func(*activation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.a
	o.control = append(o.control, func(now *activation) {
		if now != nil && now == a {
			work(now)
		}
	})
	o.start()
}

// dropUnopened asks the publisher to drop the edge of a follower that cannot be opened, and so cannot ask itself.
func (o *Object) dropUnopened(d *Incoming, count int, cause error) {
	r := o.r
	r.background(func(ctx context.Context) {
		reply, err := r.c.Client.Edge(ctx, wire.EdgeRequest{To: d.Publisher.String(), Operations: []edge.Request{{Kind: edge.Drop,
			Peer: o.id.String(), Owner: edge.AnyOwner, Incarnation: d.Incarnation, Key: edge.Key{Topic: d.Topic}, Seq: d.Seq,
			Version: d.Version, Attempts: count, Error: short(cause.Error(), 2000)}}})
		if err == nil && reply.Answer != nil {
			err = r.c.Wake.SetAttempts(o.id.String(), d.Publisher.String(), 0, 0, 0)
		}
		if err != nil {
			r.c.Log.Error("the edge of a follower that cannot be opened was not dropped", "object", o.id.String(), "error", err)
		}
	})
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
