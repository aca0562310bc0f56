package object

import (
	"sync"
	"time"

	"weir/pkg/objectid"
)

// item is one entry of an object's queue.
type item interface {
	// run is the item's turn. a is nil when the object could not be opened, with err saying why.
	run(o *Object, a *activation, err error)
	// counted says whether the item counts against the mailbox.
	counted() bool
}

// maxWaiting bounds the bytes of deliveries that wait at one object; what comes beyond is sent back for a second.
const maxWaiting = 16 << 20

// Object is one object of a registry: its queue, and while it is awake its activation.
type Object struct {
	r    *Registry
	id   objectid.ID
	path string

	mu      sync.Mutex // guards what follows; taken after the registry's
	queue   []item
	calls   int // of the queue, those that count against the mailbox
	waiting int // bytes of the deliveries in the queue
	control []func(*activation)
	running bool // a goroutine takes turns
	sleepy  bool // go to sleep when there is nothing else to do
	leaving bool // it is going to sleep
	open    bool
	last    time.Time // of the last turn
	used    uint64    // the number of the last turn, over all objects: who has the lowest is idle the longest
	edges   int       // for metrics, as of the last turn
	oldest  int64     // likewise: when the oldest unconfirmed event was published, Unix milliseconds; 0: none

	a *activation // the turn's own; set under the lock
}

// add queues an item. Call it with the registry's lock held.
func (o *Object) add(it item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if it.counted() {
		if o.calls >= o.r.c.Limits.Mailbox {
			return false
		}
		o.calls++
	}
	if d, ok := it.(*Incoming); ok {
		if o.waiting > maxWaiting {
			return false // it comes again
		}
		o.waiting += len(d.Data) + 256
	}
	o.queue = append(o.queue, it)
	o.start()
	return true
}

// addControl queues work of the platform. Call it with the registry's lock held.
func (o *Object) addControl(work func(*activation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.control = append(o.control, work)
	o.start()
}

// addSleep sends the object to sleep once its queue is empty.
func (o *Object) addSleep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sleepy = true
	o.start()
}

func (o *Object) start() {
	if !o.running {
		o.running = true
		go o.run()
	}
}

// run takes turns until the queue is empty.
func (o *Object) run() {
	for {
		o.mu.Lock()
		switch {
		case len(o.control) > 0:
			work := o.control
			o.control = nil
			o.mu.Unlock()
			o.doControl(work)
		case len(o.queue) > 0:
			it := o.queue[0]
			o.queue[0] = nil
			o.queue = o.queue[1:]
			if it.counted() {
				o.calls--
			}
			if d, ok := it.(*Incoming); ok {
				o.waiting -= len(d.Data) + 256
			}
			o.mu.Unlock()
			o.take(it)
		case o.sleepy, o.a != nil && o.r.stopping.Load():
			o.sleepy, o.leaving = false, true
			o.mu.Unlock()
			o.sleep()
			o.mu.Lock()
			o.leaving = false
			o.mu.Unlock()
			if o.leave() {
				return
			}
		case o.a == nil:
			o.mu.Unlock()
			if o.leave() {
				return
			}
		default:
			o.running = false
			o.mu.Unlock()
			return
		}
	}
}

// leave takes a sleeping object with nothing to do out of the registry.
func (o *Object) leave() bool {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 || len(o.control) > 0 || o.a != nil {
		return false
	}
	o.running = false
	delete(o.r.objects, o.id)
	o.r.idle.Broadcast()
	return true
}

// take runs one item's turn.
func (o *Object) take(it item) {
	o.dropBroken()
	err := o.wake()
	if err != nil {
		o.r.c.Log.Error("an object cannot be opened", "object", o.id.String(), "error", err)
	}
	it.run(o, o.a, err)
	o.mu.Lock()
	o.last, o.used = time.Now(), o.r.turns.Add(1)
	o.mu.Unlock()
	o.after()
}

func (o *Object) doControl(work []func(*activation)) {
	o.dropBroken()
	if err := o.wake(); err != nil {
		o.r.c.Log.Error("an object cannot be opened", "object", o.id.String(), "error", err)
		for _, w := range work {
			w(nil)
		}
		return
	}
	for _, w := range work {
		if o.a == nil {
			_ = o.wake()
		}
		w(o.a)
	}
	o.after()
}

// dropBroken throws away an activation whose barrier failed, so that nobody knows what its file holds, or whose memory may
// differ from it.
func (o *Object) dropBroken() {
	if o.a == nil {
		return
	}
	if err := o.a.out.broken(); err != nil {
		o.r.c.Log.Error("a write could not be made durable; the object is opened anew", "object", o.id.String(), "error", err)
		o.discard()
	} else if err := o.a.db.Spoilt(); err != nil {
		o.r.c.Log.Error("a transaction could not be undone; the object is opened anew", "object", o.id.String(), "error", err)
		o.discard()
	}
}

// after is what follows a turn: a WAL that has grown is copied back.
func (o *Object) after() {
	if o.dropBroken(); o.a == nil {
		return
	}
	edges, oldest := o.a.numbers()
	o.mu.Lock()
	o.edges, o.oldest = edges, oldest
	o.mu.Unlock()
	if err := o.a.db.Checkpoint(); err != nil {
		o.r.c.Log.Error("the object's file", "object", o.id.String(), "error", err)
	}
}
