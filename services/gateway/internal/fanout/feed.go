package fanout

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// maxBatch operations go to a publisher in one request.
const maxBatch = 32

// maxHeld events wait for an answer; more are dropped, as a socket may miss one.
const maxHeld = 10_000

// feed is this gateway's side of one publisher.
type feed struct {
	f         *Fanout
	publisher objectid.ID
	sub       *nats.Subscription
	users     int // guarded by the fanout's lock: operations in progress

	mu      sync.Mutex // guards what follows; not held over a request
	state   edge.Feed
	edges   map[string]map[string]subscriber // by topic, by connection
	count   int                              // of edges
	known   map[string]Socket                // sockets that have asked for an edge
	ops     []op
	busy    bool // a request is out: events are held until its answer
	running bool // a goroutine sends requests
	partial bool // the edge set came in part: events are held until all of it is there
	held    []edge.Event

	was         map[string]map[string]subscriber // the edges before a whole set that is coming
	reconnected bool                             // NATS was away: a whole set shows what was lost
}

type subscriber struct {
	socket Socket
	edge   edge.Edge
}

// op is one operation that waits for its turn. done is nil when nobody waits.
type op struct {
	request  edge.Request
	socket   Socket
	deadline time.Time
	done     chan error
}

// arrive takes an event off the wire.
func (fd *feed) arrive(m *nats.Msg) {
	e, err := wire.GetEvent(m)
	if err != nil {
		fd.f.log.Error("an event that cannot be read", "error", err)
		return
	}
	fd.mu.Lock()
	defer fd.mu.Unlock()
	fd.hear(e)
}

// hear holds what may be news, skips what was had, and slices the rest.
func (fd *feed) hear(e edge.Event) {
	if fd.busy || fd.partial {
		fd.hold(e)
		return
	}
	switch fd.state.Hear(e) {
	case edge.Hold:
		fd.hold(e)
		fd.ask()
	case edge.Apply:
		frame := &Frame{Event: e}
		for _, s := range fd.edges[e.Topic] {
			if s.edge.Takes(e.Seq, e.Data) {
				s.socket.Deliver(frame)
			}
		}
	}
}

func (fd *feed) hold(e edge.Event) {
	if len(fd.held) < maxHeld {
		fd.held = append(fd.held, e)
	}
}

// ask queues the one question, unless something is being asked already.
func (fd *feed) ask() {
	if len(fd.ops) == 0 {
		fd.ops = append(fd.ops, question(edge.Key{}))
	}
	if !fd.running {
		fd.start()
	}
}

// add queues an operation.
func (fd *feed) add(o op) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if o.socket != nil {
		if fd.known == nil {
			fd.known = map[string]Socket{}
		}
		fd.known[o.socket.ID()] = o.socket
	}
	fd.ops = append(fd.ops, o)
	fd.start()
}

// question is the one question; after names the last edge of a set that came in part.
func question(after edge.Key) op {
	return op{request: edge.Request{Kind: edge.Ask, Key: after}, deadline: time.Now().Add(10 * time.Second)}
}

// start sees that a request goes out for what is queued. Call it with the lock held.
func (fd *feed) start() {
	if !fd.running && len(fd.ops) > 0 {
		fd.running, fd.busy = true, true
		fd.f.work.Go(fd.run)
	}
}

// run sends what is queued, a batch after the other.
func (fd *feed) run() {
	for {
		fd.mu.Lock()
		// What came while the last request was out is judged before the next one goes: new sockets slow no others.
		fd.busy = false
		held := fd.held
		fd.held = nil
		slices.SortStableFunc(held, func(x, y edge.Event) int { return cmp.Compare(x.Seq, y.Seq) })
		for _, e := range held {
			if e.Incarnation == fd.state.Incarnation && !fd.partial {
				fd.hear(e)
			} else if fd.partial {
				fd.hold(e)
			}
		}
		batch, req, until := fd.next()
		if len(batch) == 0 {
			fd.running = false
			fd.mu.Unlock()
			fd.f.mu.Lock()
			fd.users++
			fd.f.mu.Unlock()
			fd.f.release(fd)
			return
		}
		fd.busy = true
		fd.mu.Unlock()
		fd.answered(batch, fd.request(req, until))
	}
}

// next takes the next batch of what is queued, none if there is nothing. Call it with the lock held.
func (fd *feed) next() (batch []op, req wire.EdgeRequest, until time.Time) {
	n := min(maxBatch, len(fd.ops))
	if fd.partial {
		n = min(n, 1) // the question for the next part stands first, and an answer is to the last of a batch
	}
	batch = slices.Clone(fd.ops[:n])
	clear(fd.ops[:n])
	fd.ops = fd.ops[n:]
	req.To, until = fd.publisher.String(), time.Now()
	for _, o := range batch {
		q := o.request
		q.Peer, q.ID = fd.f.id, rand.Uint64()|1
		q.Incarnation, q.Have, q.Number, q.Version = fd.state.Incarnation, fd.state.High, fd.state.Number, fd.state.Version
		req.Operations = append(req.Operations, q)
		if o.deadline.After(until) {
			until = o.deadline
		}
	}
	return batch, req, until
}

func (fd *feed) request(req wire.EdgeRequest, until time.Time) wire.EdgeReply {
	ctx, cancel := context.WithDeadline(fd.f.ctx, until)
	defer cancel()
	reply, err := fd.f.client.RouteEdge(ctx, req)
	if err != nil {
		return wire.EdgeReply{Error: wire.AsError(err)}
	}
	return reply
}

// answered takes the answer to a batch.
func (fd *feed) answered(batch []op, reply wire.EdgeReply) {
	fd.mu.Lock()
	if a := reply.Answer; a != nil {
		switch fd.state.Take(*a, true) {
		case edge.Taken:
			fd.take(*a)
		default:
			// A difference to something else than what is known, or an answer that was overtaken.
			fd.ops = append(fd.ops, question(edge.Key{}))
			fd.state.Version = 0
		}
	}
	for i, o := range batch {
		if o.request.Kind == edge.Unfollow && reply.Answer != nil && (i >= len(reply.Errors) || reply.Errors[i] == nil) {
			fd.remove(o.request.Key)
		}
	}
	closing := slices.ContainsFunc(batch, func(o op) bool { return o.request.Kind == edge.Close })
	lost := reply.Answer == nil && (len(fd.held) > 0 || fd.count > 0 || fd.partial || closing)
	if lost && fd.partial {
		fd.state.Version = 0 // the parts are asked for from the first on
	}
	fd.mu.Unlock()
	if lost {
		// The publisher did not answer: what it may have changed must be asked for.
		fd.f.log.Debug("a publisher did not answer", "object", fd.publisher.String(), "error", reply.Error)
		t := time.NewTimer(500 * time.Millisecond)
		select {
		case <-t.C:
			fd.mu.Lock()
			for _, o := range batch {
				if o.request.Kind == edge.Close { // the publisher must hear of it
					fd.ops = append(fd.ops, op{request: o.request, deadline: time.Now().Add(10 * time.Second)})
				}
			}
			fd.ops = append(fd.ops, question(edge.Key{}))
			fd.mu.Unlock()
		case <-fd.f.ctx.Done():
			t.Stop()
		}
	}
	for i, o := range batch {
		if o.done == nil {
			continue
		}
		switch {
		case reply.Error != nil:
			o.done <- reply.Error
		case i < len(reply.Errors) && reply.Errors[i] != nil:
			o.done <- reply.Errors[i]
		default:
			o.done <- nil
		}
	}
}

// doubt asks for everything: NATS was away, and the publisher may have given this gateway up.
func (fd *feed) doubt() {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	fd.state.Version, fd.reconnected = 0, true
	fd.ops = append(fd.ops, question(edge.Key{}))
	fd.start()
}
