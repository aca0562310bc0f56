package object

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/host/internal/alarm"
	"weir/services/host/internal/wake"
)

// Limits bound objects; zero values are the defaults.
type Limits struct {
	Run      time.Duration // of one call, waiting for other objects included: 10 s
	Budget   int64         // VM instructions of one call: 10 million
	Mailbox  int           // calls that wait at one object: 128
	Awake    int           // objects awake at once: 4,000
	Idle     time.Duration // after which an object sleeps: 300 s
	Database int64         // bytes of one object's database: 64 MiB
	Log      int64         // bytes of its undelivered events: 64 MiB
}

func (l *Limits) defaults() {
	or := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.Run, 10*time.Second)
	or(&l.Idle, 300*time.Second)
	if l.Budget == 0 {
		l.Budget = 10_000_000
	}
	if l.Mailbox == 0 {
		l.Mailbox = 128
	}
	if l.Awake == 0 {
		l.Awake = 4000
	}
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	Called(class string, took time.Duration, err *wire.Error)
	Delivered(class string, verdict string)
	Dropped(class string)
	Woken(class string)
	Rebuilt(class string)
	Barrier(took time.Duration)
}

// Config is what a Registry works with.
type Config struct {
	App     *app.App
	Dir     string // the data folder's objects/
	Wake    *wake.List
	Client  *bus.Client
	Buckets app.Buckets
	JS      jetstream.JetStream
	Log     *slog.Logger
	Limits  Limits
	Crashed bool               // the last process did not close this data folder
	Receipt func(edge.Receipt) // takes a durable receipt; must not block
	End     func(wire.End)     // takes a question for a missing receipt; must not block
	Observe Observer
	// Barrier, if it is set, stands in for the barrier of an object: it calls sync or does not. For faults, and to measure.
	Barrier func(id objectid.ID, sync func() error) error
}

// Registry has the objects of one host.
type Registry struct {
	c        Config
	alarms   *alarm.Clock
	turns    atomic.Uint64   // taken so far
	stopping atomic.Bool     // no object stays awake that has nothing to do
	base     context.Context // of every turn; cancelled when a stop takes too long
	cancel   context.CancelFunc
	presence *presence

	mu      sync.Mutex // guards what follows; taken before an object's
	objects map[objectid.ID]*Object
	dormant map[objectid.ID]*dormant
	awake   int
	opened  map[objectid.ID]bool // since the start, if the last process crashed
	closing bool
	idle    sync.Cond // signalled when an object leaves
	workers sync.WaitGroup
}

// New makes a registry. Run must be running for alarms and sleep.
func New(c Config) *Registry {
	c.Limits.defaults()
	r := &Registry{c: c, objects: map[objectid.ID]*Object{}, opened: map[objectid.ID]bool{}, dormant: map[objectid.ID]*dormant{}, presence: newPresence()}
	r.idle.L = &r.mu
	r.base, r.cancel = context.WithCancel(context.Background())
	r.alarms = alarm.New(r.Alarm)
	return r
}

// checkEvery is the time between two looks at a publisher with unconfirmed events. A receipt is asked for at the second
// one that finds it missing, so that a lost tail is noticed within twice this time.
const checkEvery = 40 * time.Second

// Run arms the alarms of sleeping objects, looks at once and then every checkEvery after events that were not confirmed,
// and puts idle objects to sleep, until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	for id, e := range r.c.Wake.All() {
		if e.Due != 0 {
			r.alarms.Set(id, e.Due)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { r.alarms.Run(ctx) })
	defer wg.Wait()
	r.CheckAll()
	check := time.NewTicker(checkEvery)
	sweep := time.NewTicker(time.Second)
	streams := time.NewTicker(sweepEvery)
	defer streams.Stop()
	defer check.Stop()
	defer sweep.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
			r.CheckAll()
			r.pruneGhosts()
		case <-streams.C:
			wg.Go(func() { r.sweepStreams(ctx) })
		case <-sweep.C:
			for _, d := range r.sweep(n%5 == 0) {
				d.inProgress()
			}
		}
	}
}

// CheckAll makes every publisher with unconfirmed events look after its stream, its consumers and its receipts.
func (r *Registry) CheckAll() {
	for id, e := range r.c.Wake.All() {
		if e.Events {
			r.control(id, (*activation).check)
		}
	}
}

// NATSBack makes every publisher doubt what it knows of NATS, and look at once if it has events that were not confirmed.
func (r *Registry) NATSBack() {
	r.mu.Lock()
	for _, o := range r.objects {
		o.mu.Lock()
		open := o.open
		o.mu.Unlock()
		if open {
			o.addControl(func(a *activation) {
				if a != nil && a.relay != nil {
					a.stale = true
					a.relay.Doubt()
				}
			})
		}
	}
	r.mu.Unlock()
	r.CheckAll()
}

// get gives an object, awake or not. Call it with the lock held.
func (r *Registry) get(id objectid.ID) *Object {
	o := r.objects[id]
	if o == nil {
		o = &Object{r: r, id: id, last: time.Now(), path: filepath.Join(r.c.Dir, filepath.FromSlash(id.File()))}
		r.objects[id] = o
	}
	return o
}

// sweep puts idle objects to sleep, the longest idle first when too many are awake; with alive it gives the deliveries
// in queues, which NATS must be told are still wanted.
func (r *Registry) sweep(alive bool) (wanted []*Incoming) {
	var spare []*Object
	staying := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.objects {
		o.mu.Lock()
		if alive {
			for _, it := range o.queue {
				if d, ok := it.(*Incoming); ok {
					wanted = append(wanted, d)
				}
			}
		}
		idle := o.open && !o.running && time.Since(o.last) >= r.c.Limits.Idle
		if o.open && !o.sleepy && !o.leaving && !idle {
			staying++
			if !o.running {
				spare = append(spare, o)
			}
		}
		o.mu.Unlock()
		if idle {
			o.addSleep()
		}
	}
	if over := staying - r.c.Limits.Awake; over > 0 {
		slices.SortFunc(spare, func(x, y *Object) int { return cmp.Compare(x.used, y.used) })
		for _, o := range spare[:min(over, len(spare))] {
			o.addSleep()
		}
	}
	return wanted
}

// makeRoom sends the longest idle object to sleep if as many as may be are awake.
func (r *Registry) makeRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awake++
	if r.awake <= r.c.Limits.Awake {
		return
	}
	var oldest *Object
	for _, o := range r.objects {
		o.mu.Lock()
		if o.open && !o.running && !o.sleepy && (oldest == nil || o.used < oldest.used) {
			oldest = o
		}
		o.mu.Unlock()
	}
	if oldest != nil {
		oldest.addSleep()
	}
}

// firstOpen says whether this is the first time that an object is opened after a crash.
func (r *Registry) firstOpen(id objectid.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.c.Crashed || r.opened[id] {
		return false
	}
	r.opened[id] = true
	return true
}

// Close lets running and waiting calls finish, until ctx ends, and puts every object to sleep.
func (r *Registry) Close(ctx context.Context) {
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.mu.Lock()
	r.closing = true
	r.stopping.Store(true)
	for len(r.objects) > 0 {
		for _, o := range r.objects {
			o.addSleep()
		}
		r.idle.Wait()
	}
	r.mu.Unlock()
	r.cancel()
	r.workers.Wait()
}
