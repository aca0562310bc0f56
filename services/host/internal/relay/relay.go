package relay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/bus"
	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Source is the publisher's object.
type Source interface {
	// Rows gives durable events after seq, oldest first, about maxBytes of them.
	Rows(ctx context.Context, after uint64, maxBytes int) ([]edge.Event, error)
	// NewToken gives the publisher's next stream a name that is durable when it returns.
	NewToken(ctx context.Context) (string, error)
	// Relayed tells that all was published that no object follows any more: the log need not keep it.
	Relayed()
}

// Follower is one object that follows, as the relay needs it.
type Follower struct {
	Name      string
	Version   uint64
	Topics    []string
	Confirmed uint64
}

// Status is a publisher as of a durable commit.
type Status struct {
	Head, Trimmed uint64
	Token         string
	Sockets       bool
	Followers     []Follower
}

// Config is what a Relay works with.
type Config struct {
	App    string
	ID     objectid.ID
	JS     jetstream.JetStream // with an asynchronous publish timeout
	Client *bus.Client
	Source Source
	Log    *slog.Logger
	// Rebuilt counts streams made anew after a loss; it may be nil.
	Rebuilt func()
}

// Relay is one publisher's.
type Relay struct {
	c      Config
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	status  Status
	rows    []edge.Event // durable, not yet published; a window onto the log, whose gaps nobody was to get
	size    int          // bytes of their data
	running bool
	work    bool // something changed since the goroutine last looked
	doubt   bool // ask for the stream before going on
	closed  bool
	kick    chan struct{} // ends a wait early

	relayed uint64 // published, and acknowledged if there is a stream
	freed   int64  // bytes trimmed since the last purge

	// The goroutine's own.
	next      uint64 // the next sequence to publish
	streaming bool   // the stream under status.Token is known to be at next-1
	everKnown bool
	made      map[string]uint64 // consumers: by follower, the version
	known     map[string]uint64 // of these, those that were there at the last look
	failures  int
	rebuilt   time.Time     // when a lost stream was made anew last
	wait      time.Duration // before the next time
}

// New makes a relay that goes on behind the event before: what came earlier was confirmed, or nobody was to get it.
func New(c Config, s Status, before uint64) *Relay {
	r := &Relay{c: c, status: s, relayed: before, next: before + 1, made: map[string]uint64{}, known: map[string]uint64{}, kick: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Update tells of a durable commit: the publisher's status, and the events that it added.
func (r *Relay) Update(s Status, rows []edge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = s
	r.push(rows)
	r.wake()
}

// Push tells of events added by a durable commit that changed nothing else.
func (r *Relay) Push(rows []edge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Head = max(r.status.Head, rows[len(rows)-1].Seq)
	r.push(rows)
	r.wake()
}

// Trimmed tells that the log now begins after seq; bytes is what went.
func (r *Relay) Trimmed(seq uint64, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Trimmed = seq
	r.freed += bytes
	if r.freed >= 4<<20 {
		r.wake()
	}
}

// Check makes the relay look at the stream and its consumers, whatever it believes of them.
func (r *Relay) Check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = true
	r.wake()
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// Doubt makes the relay look before it publishes the next event: NATS was away, and may have lost what it had.
func (r *Relay) Doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = true
	if r.status.Head > r.relayed {
		r.wake()
	}
}

// Relayed is the last event that was published.
func (r *Relay) Relayed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.relayed
}

// wake sees that the goroutine runs. Call it with the lock held.
func (r *Relay) wake() {
	if r.closed {
		return
	}
	r.work = true
	if !r.running {
		r.running = true
		r.done.Add(1)
		go r.run()
	}
}

// Close ends the relay. gone: everything is confirmed, so that the stream is deleted, as far as NATS is there.
func (r *Relay) Close(gone bool) {
	r.mu.Lock()
	r.closed = true
	s := r.status
	r.mu.Unlock()
	r.cancel()
	r.done.Wait()
	if gone && s.Token != "" {
		r.delete(s.Token)
		crashpoint.Reached(crashpoint.StreamGone)
	}
}

// run works until there is nothing to do.
func (r *Relay) run() {
	defer r.done.Done()
	for {
		r.mu.Lock()
		if !r.work || r.closed {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.work = false
		s := r.status
		doubt := r.doubt
		r.doubt = false
		r.mu.Unlock()
		if doubt {
			r.streaming = false
			r.made = map[string]uint64{}
		}
		wait := r.pass(s)
		if wait == 0 {
			r.failures = 0
			continue
		}
		r.mu.Lock()
		r.work = true
		r.mu.Unlock()
		r.pause(wait)
	}
}

// retryIn is the wait after a failure in a row: 0.1 s doubling to 10 s.
func (r *Relay) retryIn() time.Duration {
	d := 100 * time.Millisecond << min(r.failures, 7)
	r.failures++
	return min(d, 10*time.Second)
}

func (r *Relay) pause(d time.Duration) {
	t := time.NewTimer(d + rand.N(d/10+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.kick:
	case <-r.ctx.Done():
	}
}

// pass does what there is to do, and says how long to wait before trying again, 0 when all is done.
func (r *Relay) pass(s Status) time.Duration {
	if len(s.Followers) == 0 {
		return r.core(s)
	}
	if r.next <= s.Trimmed {
		// Events from before the first follower, which only sockets get.
		r.core(Status{Head: s.Trimmed, Trimmed: s.Trimmed, Sockets: s.Sockets})
	}
	if s.Head == s.Trimmed {
		r.next = s.Head + 1
		r.setRelayed(s.Head)
		return 0
	}
	if !r.streaming {
		if wait := r.look(s); wait != 0 {
			return wait
		}
		r.mu.Lock()
		s.Token = r.status.Token
		r.mu.Unlock()
	}
	if wait := r.consumers(s); wait != 0 {
		return wait
	}
	if wait := r.publish(s); wait != 0 {
		return wait
	}
	r.purge(s)
	return 0
}

func (r *Relay) setRelayed(seq uint64) {
	r.mu.Lock()
	r.relayed = max(r.relayed, seq)
	r.mu.Unlock()
}

// core publishes for sockets alone. What fails is not sent again: they get events at most once.
func (r *Relay) core(s Status) time.Duration {
	r.streaming = false
	r.skipForgotten(s)
	for seq := r.next; seq <= s.Head; seq++ {
		e, ok, err := r.take(seq, s.Head)
		if err != nil {
			return r.retryIn()
		}
		if ok && s.Sockets {
			if err := r.c.Client.NATS.PublishMsg(r.message(e, wire.CoreToken)); err != nil {
				r.c.Log.Debug("an event for sockets was not sent", "object", r.c.ID.String(), "seq", e.Seq, "error", err)
			}
		}
		r.next = seq + 1
	}
	r.setRelayed(s.Head)
	if s.Trimmed < s.Head {
		r.c.Source.Relayed()
	}
	return 0
}

func (r *Relay) message(e edge.Event, token string) *nats.Msg {
	m := nats.NewMsg(r.c.Client.Subjects.Event(r.c.ID, token, e.Topic))
	wire.PutEvent(m, e)
	return m
}
