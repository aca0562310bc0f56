package object

import (
	"maps"
	"slices"
	"strings"
	"time"

	"weir/pkg/app"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Call queues a call; reply is called once, from any goroutine.
func (r *Registry) Call(req wire.CallRequest, reply func(wire.CallReply)) {
	fail := func(err error) { reply(wire.CallReply{Error: wire.AsError(err)}) }
	id, err := r.admit(req.To, req.Chain)
	if err != nil {
		fail(err)
		return
	}
	c := r.c.App.Classes[id.Class]
	if req.Method != MethodEdges && !c.Methods[req.Method] || req.Method[0] == '_' {
		fail(wire.Errorf(wire.NoSuchMethod, "%s has no method %q; it has %s", id.Class, req.Method, methodsOf(c)))
		return
	}
	now := time.Now()
	it := &callItem{req: req, reply: reply, arrived: now, expires: now.Add(time.Duration(req.WaitMS) * time.Millisecond)}
	if !r.enqueue(id, it, len(req.Chain) > 0) {
		reply(wire.CallReply{Busy: true})
	}
}

// MethodEdges is the platform's own method that lists edges (wire.EdgesReply). It is no word, so that no app has it.
const MethodEdges = "weir:edges"

// MaxDepth bounds a chain of calls.
const MaxDepth = 32

// admit checks what a request is addressed to.
func (r *Registry) admit(to string, chain []string) (objectid.ID, error) {
	id, err := objectid.Parse(to)
	if err != nil {
		return id, err
	}
	if r.c.App.Classes[id.Class] == nil {
		return id, wire.Errorf(wire.NoSuchClass, "the app %s declares no class %q; %s", r.c.App.Name, id.Class, r.c.App.ClassNames())
	}
	for i, by := range chain {
		if by == to {
			return id, wire.Errorf(wire.Cycle, "%s would wait for itself: %s", to, joinChain(append(chain[i:len(chain):len(chain)], to)))
		}
	}
	if len(chain) >= MaxDepth {
		return id, wire.Errorf(wire.TooDeep, "a chain of more than %d calls: %s", MaxDepth, joinChain(chain))
	}
	return id, nil
}

func joinChain(ids []string) string {
	s := ids[0]
	for _, id := range ids[1:] {
		s += " -> " + id
	}
	return s
}

// Edge queues edge operations.
func (r *Registry) Edge(req wire.EdgeRequest, reply func(wire.EdgeReply)) {
	id, err := r.admit(req.To, req.Chain)
	if err != nil {
		reply(wire.EdgeReply{Error: wire.AsError(err)})
		return
	}
	now := time.Now()
	it := &edgeItem{req: req, reply: reply, expires: now.Add(time.Duration(req.WaitMS) * time.Millisecond)}
	if !it.counted() {
		if !r.control(id, it.runControl) {
			reply(wire.EdgeReply{Busy: true})
		}
		return
	}
	if !r.enqueue(id, it, len(req.Chain) > 0) {
		reply(wire.EdgeReply{Busy: true})
	}
}

// Receipts takes what followers confirmed.
func (r *Registry) Receipts(batch []edge.Receipt) {
	byPublisher := map[objectid.ID][]edge.Receipt{}
	for _, x := range batch {
		byPublisher[x.Publisher] = append(byPublisher[x.Publisher], x)
	}
	for id, list := range byPublisher {
		if r.c.App.Classes[id.Class] != nil {
			r.control(id, func(a *activation) { a.received(list) })
		}
	}
}

// Deliver queues a delivery for a follower.
func (r *Registry) Deliver(follower objectid.ID, d *Incoming) {
	if r.c.App.Classes[follower.Class] == nil || follower.Validate() != nil {
		d.term()
		return
	}
	if r.passAsleep(follower, d) {
		return
	}
	if !r.enqueue(follower, d, false) {
		d.nak(time.Second)
	}
}

// Alarm wakes an object whose alarm is due.
func (r *Registry) Alarm(id objectid.ID) {
	if r.c.App.Classes[id.Class] == nil {
		return
	}
	r.enqueue(id, alarmItem{}, false)
}

// control queues work for the lane between calls, or says that it will not be done.
func (r *Registry) control(id objectid.ID, work func(*activation)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.App.Classes[id.Class] == nil || r.closing && r.objects[id] == nil {
		return false
	}
	r.get(id).addControl(work)
	return true
}

// enqueue queues an item, or says that there is no room. While the registry closes only what running calls wait for
// is taken.
func (r *Registry) enqueue(id objectid.ID, it item, nested bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing && !nested {
		return false
	}
	return r.get(id).add(it)
}

// methodsOf lists the methods that can be called, for who named another.
func methodsOf(c *app.Class) string {
	names := slices.Sorted(maps.Keys(c.Methods))
	names = slices.DeleteFunc(names, func(n string) bool { return n[0] == '_' })
	if len(names) == 0 {
		return "none"
	}
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}
