package object

import (
	"context"
	"errors"
	"time"

	"weir/pkg/app"
	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/services/host/internal/objectdb"
	"weir/services/host/internal/relay"
	"weir/services/host/internal/wake"
)

// activation is an object while it is awake: its open file, its VM, and what it knows of those it follows.
type activation struct {
	o     *Object
	r     *Registry
	id    objectid.ID
	class *app.Class
	db    *objectdb.DB
	out   *outbound
	relay *relay.Relay

	in       *app.Instance // nil until it is needed, and after a failed turn
	state    *stateBinding
	t        *turn // the one in progress
	migrated bool  // the app's migrations are known to be applied

	links    map[string]*link  // by publisher
	last     map[string]uint64 // by topic, the last event
	listed   bool              // the wake list says that there are events
	alarmDue int64
	stale    bool   // the relay does not know the edges as they are
	checked  uint64 // the head at the last check
	oldest   int64  // when the oldest kept event was published; 0: none is kept
	edges    int
	counted  uint64 // the version that edges was counted at
}

// wake opens the object if it sleeps.
func (o *Object) wake() error {
	if o.a != nil {
		return nil
	}
	o.r.makeRoom()
	a, err := o.activate()
	if err != nil {
		o.r.mu.Lock()
		o.r.awake--
		o.r.mu.Unlock()
		return err
	}
	o.mu.Lock()
	o.a = a
	o.open = true
	o.last, o.used = time.Now(), o.r.turns.Add(1)
	o.mu.Unlock()
	if o.r.c.Observe != nil {
		o.r.c.Observe.Woken(o.id.Class)
	}
	if err := o.r.c.Wake.Opened(o.id.String()); err != nil {
		o.r.c.Log.Error("the wake list", "object", o.id.String(), "error", err)
	}
	a.begin()
	return nil
}

func (o *Object) activate() (*activation, error) {
	limits := o.r.c.Limits
	db, err := objectdb.Open(o.path, o.id, objectdb.Options{MaxBytes: limits.Database, MaxLogBytes: limits.Log})
	if err != nil {
		return nil, err
	}
	a := &activation{o: o, r: o.r, id: o.id, class: o.r.c.App.Classes[o.id.Class], db: db, links: map[string]*link{}, stale: true}
	barrier := func() error {
		start := time.Now()
		err := errors.Join(o.r.c.Wake.Sync(), db.Sync())
		if o.r.c.Observe != nil {
			o.r.c.Observe.Barrier(time.Since(start))
		}
		return err
	}
	a.out = newOutbound(barrier)
	if db.Recovered() {
		a.out.commit() // of the process before, which may not have made it durable
	}
	if o.r.c.Barrier != nil {
		a.out.sync = func() error { return o.r.c.Barrier(o.id, barrier) }
	}
	if !db.New() {
		if err = a.read(); err != nil {
			_ = db.Close()
			return nil, err
		}
	}
	return a, nil
}

// read loads what the file says beside its edges.
func (a *activation) read() error {
	following, err := a.db.Following()
	if err != nil {
		return err
	}
	for publisher, c := range following {
		id, err := objectid.Parse(publisher)
		if err != nil {
			return err
		}
		a.links[publisher] = &link{publisher: id, c: c, pos: c.At}
	}
	if a.last, err = a.db.LastBefore(a.db.Edges.Head + 1); err != nil {
		return err
	}
	alarm, ok, err := a.db.Alarm()
	if err != nil {
		return err
	}
	if ok {
		a.alarmDue = alarm.Next
	}
	a.checked = a.db.Edges.Head
	if e := &a.db.Edges; e.Head > e.Trimmed && e.Durable() {
		a.listed = true
		return a.r.c.Wake.Expect(a.id, wake.Entry{Events: true})
	}
	return nil
}

// begin starts what an object that was just opened has to do: go on relaying, and after a crash ask, since a delivery
// that was acknowledged may have been lost with the last commits.
func (a *activation) begin() {
	if a.last == nil {
		a.last = map[string]uint64{}
	}
	a.r.wokenUp(a)
	if a.alarmDue != 0 {
		a.r.alarms.Set(a.id, a.alarmDue)
	}
	if e := &a.db.Edges; e.Head > e.Trimmed {
		a.tellRelay(nil)
	}
	if a.r.firstOpen(a.id) {
		for _, l := range a.links {
			l.reopened = true
			if len(l.c.Set.Edges) > 0 {
				a.ask(l)
			}
		}
	}
}

// instance gives the object's VM, loading the app into a new one if need be.
func (a *activation) instance() (*app.Instance, error) {
	if a.in != nil {
		return a.in, nil
	}
	in, err := a.r.c.App.Instance(func(text string) { a.r.c.Log.Info(text, "object", a.id.String()) })
	if err != nil {
		return nil, err
	}
	in.Caller, in.Buckets = (*caller)(a), (*buckets)(a)
	a.in = in
	a.state = newStateBinding(a, in)
	return in, nil
}

// dropVM throws the VM away: scratch must not survive a failed turn.
func (a *activation) dropVM() {
	if a.in != nil {
		a.in.Close()
		a.in, a.state = nil, nil
	}
}

// sleep closes the object: once everything is durable, nothing of it stays in memory.
func (o *Object) sleep() {
	a := o.a
	if a == nil {
		return
	}
	a.trim()
	if err := a.small(a.db.SaveConfirmed); err != nil && !a.db.New() {
		o.r.c.Log.Error("an object going to sleep", "object", o.id.String(), "error", err)
	}
	if err := a.out.wait(context.Background()); err != nil {
		o.after()
		return
	}
	a.out.drain()
	crashpoint.Reached(crashpoint.Sleeping)
	a.settle()
	o.r.rememberAsleep(a)
	o.close(a.db.Edges.Head == a.db.Edges.Trimmed)
}

// discard throws an activation away that cannot be used any more.
func (o *Object) discard() {
	o.a.out.drain()
	o.close(false)
}

func (o *Object) close(gone bool) {
	a := o.a
	for _, l := range a.links {
		l.stop()
	}
	if a.relay != nil {
		a.relay.Close(gone)
	}
	a.dropVM()
	end := a.db.Close
	if a.db.New() {
		end = a.db.Discard
	}
	if err := end(); err != nil {
		o.r.c.Log.Error("an object's file was not closed well", "object", o.id.String(), "error", err)
	}
	o.mu.Lock()
	o.a = nil
	o.open = false
	o.mu.Unlock()
	o.r.mu.Lock()
	o.r.awake--
	o.r.mu.Unlock()
}

// settle says to the wake list what is durably true. Only when nothing is on its way out: what a commit in flight
// expects must stand until then.
func (a *activation) settle() {
	if a.db.New() {
		return
	}
	e := &a.db.Edges
	events := e.Head > e.Trimmed && e.Durable()
	if err := a.r.c.Wake.Settle(a.id, wake.Entry{Events: events, Due: a.alarmDue}); err != nil {
		a.r.c.Log.Error("the wake list", "object", a.id.String(), "error", err)
		return
	}
	a.listed = events
}

// tellRelay tells the relay of rows and edges as of the last commit, once that is durable. It makes the relay if
// there is none.
func (a *activation) tellRelay(rows []edge.Event) {
	if a.relay == nil {
		before := a.db.Edges.Trimmed
		if len(rows) > 0 {
			before = min(before, rows[0].Seq-1) // rows that only sockets get are not kept
		}
		a.relay = relay.New(relay.Config{App: a.r.c.App.Name, ID: a.id, JS: a.r.c.JS, Client: a.r.c.Client, Source: (*source)(a.o), Log: a.r.c.Log,
			Rebuilt: func() {
				if a.r.c.Observe != nil {
					a.r.c.Observe.Rebuilt(a.id.Class)
				}
			}}, a.status(), before)
	}
	rel := a.relay
	if a.stale || len(rows) == 0 {
		s := a.status()
		a.stale = false
		a.out.leave(func(err error) {
			if err == nil {
				rel.Update(s, rows)
			}
		})
		return
	}
	a.out.leave(func(err error) {
		if err == nil {
			rel.Push(rows)
		}
	})
}

func (a *activation) status() relay.Status {
	e := &a.db.Edges
	s := relay.Status{Head: e.Head, Trimmed: e.Trimmed, Token: a.db.Token}
	for name, p := range e.Peers {
		if !edge.IsFollower(name) {
			s.Sockets = s.Sockets || !a.r.presence.gone(name)
			continue
		}
		s.Followers = append(s.Followers, relay.Follower{Name: name, Version: p.Version, Topics: p.Set().Topics(), Confirmed: p.Confirmed})
	}
	return s
}
