package edge

import (
	"cmp"
	"maps"
	"slices"
)

// folState is what a follower's file holds after a commit: a cursor for each publisher, and its own storage.
type folState struct {
	own     string // its incarnation
	cursors map[int]Cursor
	applied []applied
	due     map[attempt]int64 // ghost: before this an event that failed must not be tried
}

// applied is an event that a handler took into the follower's storage.
type applied struct {
	pub   int
	inc   string
	seq   uint64
	topic string
	n     int
}

func (w *world) newFollower() *folState {
	return &folState{own: w.name("o"), cursors: map[int]Cursor{}, due: map[attempt]int64{}}
}

// with gives the state after a commit that keeps a cursor.
func (s *folState) with(pub int, c Cursor) *folState {
	n := *s
	n.cursors = maps.Clone(s.cursors)
	n.cursors[pub] = c
	n.applied = slices.Clip(s.applied)
	return &n
}

// arrival is a delivery with its acknowledgement; an end has none.
type arrival struct {
	pub int
	Delivery
	ack func()
}

func (a arrival) done() {
	if a.ack != nil {
		a.ack() // flow control only: the commit may still be lost
	}
}

// link is what a follower knows of a publisher in memory.
type link struct {
	pos      uint64 // the cursor, or further: over what filters left out
	asking   uint64 // the id of the request whose answer counts
	held     []arrival
	reopened bool // after a crash: what runs first may have run before
}

// follower is an object with a cursor, as its host runs it.
type follower struct {
	w       *world
	id      string
	file    file[*folState]
	down    bool
	links   map[int]*link
	strayed map[int]bool // ghost: a publisher was restored twice meanwhile, so that events may come again
}

// open starts with what the file says. After a crash it asks each publisher, since acknowledged events may be lost.
func (f *follower) open(crashed bool) {
	f.down, f.links = false, map[int]*link{}
	for _, pub := range sorted(f.file.now().cursors) {
		c := f.cursor(pub)
		if f.w.rules.host.attemptsForgotten {
			c.Attempts = Attempts{}
			f.file.commit(f.file.now().with(pub, c))
		}
		l := f.link(pub)
		l.reopened = crashed
		if crashed && len(c.Set.Edges) > 0 {
			f.ask(pub)
		}
	}
}

func (f *follower) cursor(pub int) Cursor { return f.file.now().cursors[pub] }

func (f *follower) link(pub int) *link {
	l := f.links[pub]
	if l == nil {
		l = &link{pos: f.cursor(pub).At}
		f.links[pub] = l
	}
	return l
}

// request sends q to the publisher. Only the newest one is awaited.
func (f *follower) request(pub int, q Request) {
	l, c := f.link(pub), f.cursor(pub)
	l.asking = f.w.number()
	q.Peer, q.Owner, q.ID = f.id, f.file.now().own, l.asking
	q.Incarnation, q.Have, q.Number, q.Version = c.Incarnation, l.pos, c.Number, c.Set.Version
	q.Failed = c.Attempts.Count > 0
	send := func() { f.w.send(q.Kind, func() { f.w.publishers[pub].handle([]Request{f.w.post(q)}) }) }
	if q.Kind == Follow || q.Kind == Unfollow {
		f.file.leave(send)
	} else {
		send() // a question tells nothing that must be durable: it is no receipt
	}
}

func (f *follower) ask(pub int) {
	if f.link(pub).asking == 0 {
		f.request(pub, Request{Kind: Ask})
	}
}

// retry gives up waiting for answers.
func (f *follower) retry() {
	for _, pub := range sorted(f.links) {
		if l := f.links[pub]; l.asking != 0 {
			l.asking = 0
			f.ask(pub)
		}
	}
}

// receipts tells each publisher how far this follower is, once that is durable.
func (f *follower) receipts() {
	s := f.file.now()
	for _, pub := range sorted(s.cursors) {
		c, p := s.cursors[pub], f.w.publishers[pub]
		r := Receipt{Publisher: p.id, Peer: f.id, Owner: s.own, Incarnation: c.Incarnation, Have: f.link(pub).pos, Applied: c.At}
		send := func() { f.w.send("receipt", func() { p.received(r) }) }
		if f.w.rules.host.receiptEarly {
			send()
		} else {
			f.file.leave(send)
		}
	}
}

// deliver does with a delivery what its verdict says.
func (f *follower) deliver(a arrival) {
	if f.down {
		return
	}
	if own := f.file.now().own; a.Topic == "" && a.Owner != own && !f.w.rules.host.ownerUnchecked {
		q := Request{Kind: Disown, Peer: f.id, Owner: a.Owner}
		f.w.send(q.Kind, func() { f.w.publishers[a.pub].handle([]Request{q}) })
		return
	}
	l, c := f.link(a.pub), f.cursor(a.pub)
	v := f.w.rules.decide(c, l.pos, a.Delivery, f.w.now)
	if f.w.tracing {
		f.w.note("%s at %d hears %d.%d of %s, number %d version %d, again %v: verdict %d", f.id, l.pos, a.pub, a.Seq, a.Incarnation, a.Number, a.Version, a.Again, v)
	}
	switch v {
	case Pass:
		l.pos = a.Seq
	case Apply:
		f.w.stats["tried from a stream"]++
		if !f.run(a.pub, a.Event, a.Again || l.reopened && !f.w.rules.host.attemptsLate) {
			return
		}
	case Wait:
		return // comes again, by nak
	case Hold:
		if len(l.held) < maxPending {
			l.held = append(l.held, a)
		}
		f.ask(a.pub)
		return
	}
	a.done()
}

// answered takes an answer: the set and number into the file, then the rows.
func (f *follower) answered(a Answer) {
	if f.down || a.Set.Owner != f.file.now().own && !f.w.rules.host.ownerUnchecked {
		return
	}
	pub := f.w.index(a.Publisher)
	l := f.link(pub)
	awaited := a.ID == l.asking
	was := f.cursor(pub)
	c, pos, heard, setBack := f.w.rules.take(was, l.pos, a, awaited)
	if f.w.tracing {
		f.w.note("%s at %d of %s hears (awaited %v, heard %d) %s", f.id, l.pos, was.Incarnation, awaited, heard, plain(a))
	}
	if awaited {
		l.asking = 0
	}
	switch heard {
	case Again:
		f.ask(pub)
		return
	case Stale:
		f.again(pub, false)
		return
	}
	if setBack {
		f.w.fail("%s was set back: cursor %d, a receipt said %d", f.id, was.At, a.Applied)
	}
	if c.Incarnation != was.Incarnation && was.Incarnation != "" && f.w.log(pub, c.Incarnation).meta.Parent != was.Incarnation {
		f.strayed[pub] = true
	}
	l.pos = pos
	f.file.commit(f.file.now().with(pub, c))
	for _, e := range a.Rows {
		if e.Seq <= l.pos {
			continue
		}
		if f.cursor(pub).Waits(l.pos, f.w.now) || !f.run(pub, e, !f.w.rules.host.attemptsLate) {
			return
		}
	}
	l.pos = max(l.pos, a.Head)
	f.again(pub, awaited)
	if a.More && !f.down {
		f.ask(pub)
	}
}

// again decides anew about what was held; after an awaited answer another incarnation's events are of the past.
func (f *follower) again(pub int, awaited bool) {
	l := f.link(pub)
	held := l.held
	l.held = nil
	slices.SortStableFunc(held, func(a, b arrival) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, a := range held {
		if f.down || f.links[pub] != l {
			return
		}
		if awaited && a.Incarnation != f.cursor(pub).Incarnation {
			a.done()
			continue
		}
		f.deliver(a)
	}
}

// crash loses all but keep of the unsynced commits.
func (f *follower) crash(keep int) {
	f.file.crash(keep)
	f.down, f.links = true, nil
	f.w.note("%s crashes", f.id)
}
