package edge

import (
	"slices"

	"weir/pkg/objectid"
	"weir/pkg/value"
)

// publisher is an object with a log, as its host runs it.
type publisher struct {
	w         *world
	index     int
	id        objectid.ID
	file      file[*pubState]
	mem       *Publisher // as of the last commit, with what receipts said since
	down      bool
	streaming bool   // the relay knows its stream
	sent      uint64 // by the relay
}

func (w *world) newPublisher(id objectid.ID) *pubState {
	return &pubState{meta: Publisher{ID: id, Incarnation: w.name("i")}, token: w.name("t"), table: map[edgeKey]edgeRow{},
		ghost: ghost{peers: map[string]ghostPeer{}}}
}

// open starts with what the file says, as after a crash or sleep.
func (p *publisher) open() {
	p.mem = p.file.now().open(p.w.rules)
	p.down, p.streaming, p.sent = false, false, p.mem.Trimmed
}

// transact makes one commit: expect says in plain words what it shall do, do does it to the publisher in memory.
func (p *publisher) transact(expect func(*ghost), do func(*pubState) []Change) []Change {
	before := p.file.now()
	s := before.clone()
	changes := do(s)
	expect(&s.ghost)
	s.apply(changes)
	s.meta = *p.mem
	s.meta.Peers = nil
	if wrong := s.differs(p.mem, p.w.rules); wrong != "" {
		p.w.fail("%s: %s", p.id, wrong)
	}
	if len(changes) > 0 || p.mem.Head > before.meta.Head {
		p.file.commit(s)
	} else if len(s.history) > len(before.history) {
		p.w.fail("%s: nothing was written", p.id)
	}
	return changes
}

// publish appends events in one transaction.
func (p *publisher) publish(n int) {
	p.transact(func(*ghost) {}, func(s *pubState) []Change {
		for range n {
			topic, n, data := p.w.event()
			s.append(p.mem, topic, n, data)
		}
		return nil
	})
}

// removeIdentity is drop_followers.
func (p *publisher) removeIdentity(id string) {
	p.transact(func(g *ghost) { g.removeIdentity(id, p.mem.Head) }, func(*pubState) []Change {
		return p.w.rules.removeIdentity(p.mem, id)
	})
}

func (g *ghost) removeIdentity(id string, head uint64) {
	for _, name := range sorted(g.peers) {
		g.remove(name, g.peers[name].owner, head, func(_ Key, e ghostEdge) bool { return e.identity == id })
	}
}

// handle runs a batch of one peer's operations and answers them together, after the barrier.
func (p *publisher) handle(batch []Request) {
	if p.down {
		return
	}
	var (
		before  uint64
		changed []Change
	)
	for i, q := range batch {
		if peer := p.mem.Peers[q.Peer]; peer != nil && p.w.rules.host.ownerUnchecked {
			q.Owner = peer.Owner
			batch = slices.Clone(batch)
			batch[i] = q
		}
		if peer := p.mem.Find(q.Peer, q.Owner); peer != nil && i == 0 {
			before = peer.Version
		}
		changed = append(changed, p.operate(q)...)
	}
	q := batch[len(batch)-1]
	if q.Kind == Disown || q.Kind == Close || q.Kind == Gone {
		return
	}
	if q.Incarnation == p.mem.Incarnation && q.Have > p.mem.Head {
		p.w.fail("%s was set back unnoticed: asked from %d, head %d", p.id, q.Have, p.mem.Head)
		return
	}
	if peer := p.mem.Find(q.Peer, q.Owner); peer != nil && q.Incarnation == p.mem.Incarnation && q.Have < peer.Confirmed && peer.Applied > 0 {
		p.w.stats["asked below confirmed"]++
	}
	a, err := p.w.rules.answer(p.mem, q, before, changed, p.rows)
	if err != nil {
		p.w.fail("%s: %v", p.id, err)
		return
	}
	if a.Base != 0 {
		p.w.stats["answers with changes only"]++
	}
	if a.More {
		p.w.stats["answers cut"]++
	}
	if p.w.tracing {
		p.w.note("%s, head %d: %s %+v: %s", p.id, p.mem.Head, q.Kind, q, plain(a))
	}
	send := func() { p.w.send("answer", func() { p.w.answered(q.Peer, p.w.carry(a)) }) }
	if p.w.rules.host.answerEarly {
		send()
	}
	p.file.leave(send)
}

// rows are the Rows of an answer.
func (p *publisher) rows(after uint64, yield func(Event) bool) error {
	p.file.now().events(p.mem, after, p.w.remembers, true, func(e Event, _ row) bool { return yield(e) })
	return nil
}

// operate does one operation in a transaction of its own and gives the rows that it changed.
func (p *publisher) operate(q Request) (changes []Change) {
	r := p.w.rules
	since := uint64(0)
	if peer := p.mem.Find(q.Peer, q.Owner); peer != nil {
		since = peer.Edges[q.Key].Since
	}
	removed := func(match func(Key, ghostEdge) bool) []Change {
		return p.transact(func(g *ghost) { g.remove(q.Peer, q.Owner, p.mem.Head, match) },
			func(*pubState) []Change { return r.remove(p.mem, q) })
	}
	switch q.Kind {
	case Follow:
		return p.follow(q)
	case Unfollow:
		return removed(func(k Key, _ ghostEdge) bool { return k == q.Key })
	case Drop:
		granted := q.Incarnation == p.mem.Incarnation && since != 0 && since == q.Since
		if granted {
			p.w.checkDrop(p, q)
		}
		return removed(func(k Key, _ ghostEdge) bool { return granted && k == q.Key })
	case Close:
		return removed(func(k Key, _ ghostEdge) bool { return k.Conn == q.Key.Conn })
	case Disown, Gone:
		return removed(func(Key, ghostEdge) bool { return true })
	}
	return nil
}

// follow asks the hook, which may refuse, publish, drop followers, or end in an error after all.
func (p *publisher) follow(q Request) (changes []Change) {
	filter, err := value.ParseFilter(q.FilterJSON)
	if err != nil {
		p.w.fail("%s: %v", p.id, err)
		return nil
	}
	if IsFollower(q.Peer) {
		q.Identity = q.Peer
	}
	hook := p.w.rnd.IntN(40)
	if hook == 0 {
		return nil
	}
	unwanted := ""
	if hook == 1 {
		unwanted = pick(p.w.rnd, p.w.identities())
	}
	p.transact(func(g *ghost) {
		if hook == 1 {
			g.removeIdentity(unwanted, p.mem.Head)
		}
		g.follow(q, p.mem.Head)
	}, func(s *pubState) (all []Change) {
		if hook == 1 {
			all = p.w.rules.removeIdentity(p.mem, unwanted)
		}
		if hook == 2 {
			topic, n, data := p.w.event()
			s.append(p.mem, topic, n, data)
		}
		changes = p.w.rules.follow(p.mem, q, filter)
		return append(all, changes...)
	})
	if len(changes) == 0 && q.Failed {
		p.w.followed[line{p.index, q.Peer, q.Key.Topic}] = len(p.w.attempts) // it should have cleared them
	}
	if hook == 3 && len(changes) > 0 {
		p.file.states = p.file.states[:len(p.file.states)-1] // rolled back
		p.mem = p.file.now().open(p.w.rules)
		return nil
	}
	return changes
}

// received takes a receipt.
func (p *publisher) received(r Receipt) {
	if !p.down && p.w.rules.received(p.mem, r) {
		p.w.note("%s takes %+v", p.id, r)
	}
}

// trim deletes what is not needed any more.
func (p *publisher) trim() {
	to := p.w.rules.trimTo(p.mem, p.sent)
	if to <= p.mem.Trimmed {
		return
	}
	s := p.file.now().clone()
	s.rows = s.rows[to-p.mem.Trimmed:]
	p.mem.Trimmed, s.meta.Trimmed = to, to
	p.file.commit(s)
	if p.w.rnd.IntN(2) == 0 {
		p.w.js.purge(p.index, s.token, to)
	}
}
