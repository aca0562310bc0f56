// Package alarm is the clock of a host's alarms: for each object the one time at which it wants to be woken, asleep
// or awake. It keeps nothing: what is due after a restart comes from the wake list.
package alarm

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"weir/pkg/objectid"
)

// Clock calls fire when an object's alarm is due. It is safe for concurrent use.
type Clock struct {
	fire func(objectid.ID)
	mu   sync.Mutex // guards what follows
	due  queue
	byID map[objectid.ID]*entry
	wake chan struct{}
}

type entry struct {
	id    objectid.ID
	at    int64
	index int
}

// New makes a clock; Run must be running for it to fire.
func New(fire func(objectid.ID)) *Clock {
	return &Clock{fire: fire, byID: map[objectid.ID]*entry{}, wake: make(chan struct{}, 1)}
}

// Set sets an object's alarm to a time in Unix milliseconds; 0 takes it away.
func (c *Clock) Set(id objectid.ID, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	switch {
	case at == 0:
		if e != nil {
			heap.Remove(&c.due, e.index)
			delete(c.byID, id)
		}
		return
	case e == nil:
		e = &entry{id: id, at: at}
		c.byID[id] = e
		heap.Push(&c.due, e)
	default:
		e.at = at
		heap.Fix(&c.due, e.index)
	}
	if e.index == 0 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// Run fires alarms until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(c.ring())
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// ring fires what is due and says how long until the next.
func (c *Clock) ring() time.Duration {
	for {
		c.mu.Lock()
		if len(c.due) == 0 {
			c.mu.Unlock()
			return time.Hour
		}
		first := c.due[0]
		if wait := time.Until(time.UnixMilli(first.at)); wait > 0 {
			c.mu.Unlock()
			return min(wait, time.Minute) // the clock may be set, the machine may sleep
		}
		heap.Pop(&c.due)
		delete(c.byID, first.id)
		c.mu.Unlock()
		c.fire(first.id)
	}
}

type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return e
}
