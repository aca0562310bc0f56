package fanout

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

type someSocket struct {
	id   string
	lost bool
}

func (s *someSocket) ID() string            { return s.id }
func (s *someSocket) Identity() objectid.ID { return objectid.ID{Class: "U", Name: "u"} }
func (s *someSocket) Deliver(*Frame)        {}
func (s *someSocket) Lost()                 { s.lost = true }

// publisher answers batches with the protocol's own code, as an object does.
type publisher struct {
	t *testing.T
	p *edge.Publisher
}

func (p publisher) answer(req wire.EdgeRequest) wire.EdgeReply {
	var before uint64
	var changed []edge.Change
	if peer := p.p.Find(req.Operations[0].Peer, ""); peer != nil {
		before = peer.Version
	}
	for _, q := range req.Operations {
		switch q.Kind {
		case edge.Ask:
		case edge.Follow:
			changed = append(changed, p.p.Follow(q, value.Filter{})...)
		default:
			changed = append(changed, p.p.Remove(q)...)
		}
	}
	a, err := p.p.Answer(req.Operations[len(req.Operations)-1], before, changed, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return wire.EdgeReply{Answer: &a, Errors: make([]*wire.Error, len(req.Operations))}
}

func newFeed() *feed {
	return &feed{f: New(nil, slog.New(slog.DiscardHandler)), publisher: objectid.ID{Class: "P", Name: "p"}, edges: map[string]map[string]subscriber{}, known: map[string]Socket{}}
}

// A set of edges that comes in parts is read to its end, whatever else is queued or lost meanwhile: no socket loses its
// edge, and none is taken for lost.
// spec: CONN-6
func TestPartsAreReadToTheEnd(t *testing.T) {
	for name, disturb := range map[string]func(fd *feed, step int, reply *wire.EdgeReply){
		"one edge of a socket that has gone": func(*feed, int, *wire.EdgeReply) {},
		"sockets come and go": func(fd *feed, step int, _ *wire.EdgeReply) {
			for _, kind := range []string{edge.Follow, edge.Unfollow, edge.Close} {
				if step < 10 {
					fd.ops = append(fd.ops, op{request: edge.Request{Kind: kind, Key: edge.Key{Conn: fmt.Sprintf("visitor-%d", step), Topic: "e"}, Identity: "U/u"}, deadline: time.Now()})
				}
			}
		},
		"an answer is lost": func(_ *feed, step int, reply *wire.EdgeReply) {
			if step == 1 {
				*reply = wire.EdgeReply{Error: wire.Errorf(wire.OutcomeUnknown, "lost")}
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			fd := newFeed()
			p := publisher{t, &edge.Publisher{ID: fd.publisher, Incarnation: "i", Peers: map[string]*edge.Peer{}}}
			sockets := map[string]*someSocket{}
			for i := range 10_000 {
				conn := fmt.Sprintf("%018x", i)
				p.p.Follow(edge.Request{Peer: fd.f.id, Key: edge.Key{Conn: conn, Topic: "e"}, Identity: "U/u"}, value.Filter{})
				if i > 0 { // the publisher has not heard that the first one closed
					sockets[conn] = &someSocket{id: conn}
					fd.known[conn] = sockets[conn]
				}
			}
			for round := range 2 {
				fd.ops = append(fd.ops, question(edge.Key{}))
				for step := 0; step < 200; step++ {
					batch, req, _ := fd.next()
					if len(batch) == 0 {
						break
					}
					reply := p.answer(req)
					disturb(fd, step, &reply)
					fd.answered(batch, reply)
				}
				count := 0
				for conn, s := range sockets {
					if _, ok := fd.edges["e"][conn]; ok {
						count++
					}
					if s.lost {
						t.Fatalf("%s: a socket was taken for lost", name)
					}
				}
				if count != len(sockets) || fd.partial || len(fd.ops) > 0 {
					t.Fatalf("%s, round %d: %d of %d edges, partial %v, %d queued", name, round, count, len(sockets), fd.partial, len(fd.ops))
				}
				fd.state.Version, fd.reconnected = 0, true // NATS was away
			}
		})
	}
}

// The publisher is told until it answers that a socket has gone, even if it was the last one.
// spec: CONN-6
func TestCloseIsToldUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fd := newFeed()
		batch := []op{{request: edge.Request{Kind: edge.Close, Key: edge.Key{Conn: "c"}}, deadline: time.Now()}}
		fd.answered(batch, wire.EdgeReply{Error: wire.Errorf(wire.OutcomeUnknown, "the host was killed")})
		if len(fd.ops) == 0 || fd.ops[0].request.Kind != edge.Close {
			t.Errorf("queued: %+v", fd.ops)
		}
	})
}

// While an answer is awaited 10,000 events of a publisher are held; more are dropped, as sockets may miss some.
// spec: CONN-6
func TestHeldEventsAreBounded(t *testing.T) {
	fd := newFeed()
	fd.busy = true
	for seq := range uint64(10_001) {
		fd.hear(edge.Event{Publisher: fd.publisher, Seq: seq + 1, Topic: "e"})
	}
	if n := len(fd.held); n != 10_000 || fd.held[n-1].Seq != 10_000 {
		t.Errorf("%d events are held", n)
	}
}
