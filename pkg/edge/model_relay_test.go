package edge

import (
	"maps"
	"slices"
)

// relay publishes durable rows: without followers by core NATS, else to the stream, each naming the row before.
func (p *publisher) relay() {
	s, r := p.file.durable(), p.w.rules
	if r.host.relayEarly {
		s = p.file.now()
	}
	pub := s.read(r)
	header := pub
	if r.host.numberEarly {
		header = p.mem
	}
	stream := pub.Durable()
	if stream && !p.streaming {
		p.look()
	}
	token := s.token
	if !stream || p.streaming {
		s.events(header, p.sent, p.w.remembers, p.w.later || r.host.numberEarly, func(e Event, _ row) bool {
			p.sent = e.Seq
			if stream {
				p.w.send("publish", func() { p.w.js.publish(p.index, token, e) })
			} else {
				p.w.send("publish", func() { p.w.core(p.index, e) })
			}
			return true
		})
	}
	p.consume()
}

// look is what follows a doubtful publish, an opening and a minute: go on after the stream's last sequence, or make a
// new stream if there is none, or one that lost what is no longer kept.
func (p *publisher) look() {
	s := p.file.durable()
	pub := s.read(p.w.rules)
	if !pub.Durable() || pub.Trimmed == pub.Head {
		return
	}
	if js := p.w.js.find(p.index, s.token); js == nil || js.last < pub.Trimmed {
		p.renew()
	} else {
		p.streaming, p.sent = true, min(js.last, pub.Head)
	}
}

// confirmed gives what a follower of the durable edge table confirmed, as far as memory knows.
func (p *publisher) confirmed(f *Peer) uint64 {
	if now := p.mem.Find(f.Name, f.Owner); now != nil {
		return now.Confirmed
	}
	return f.Confirmed
}

// consume asks for the consumers that are missing, each for a follower and version, from confirmed on; and now and then
// for the end of one that is not needed any more.
func (p *publisher) consume() {
	s := p.file.durable()
	js, pub := p.w.js.find(p.index, s.token), s.read(p.w.rules)
	if js == nil {
		return
	}
	for _, name := range sorted(pub.Peers) {
		peer := pub.Peers[name]
		from := p.confirmed(peer) + 1
		if !IsFollower(name) || from > pub.Head {
			continue
		}
		c := cname{name, peer.Version}
		if has := js.consumers[c]; has == nil {
			topics := peer.Set().Topics()
			p.w.send("consumer", func() { js.consume(c, topics, from) })
		} else if now := p.mem.Find(name, peer.Owner); p.w.rules.host.ackFloor && now != nil {
			now.Confirmed = max(now.Confirmed, min(has.floor(), pub.Head))
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(js.consumers), compareNames) {
		if peer := pub.Peers[c.peer]; (peer == nil || c.version < peer.Version) && p.w.rnd.IntN(4) == 0 {
			p.w.send("consumer's end", func() { delete(js.consumers, c) })
		}
	}
}

// check is the look every minute at a publisher with unconfirmed events: at its stream, its consumers, and the
// receipts that are missing, which are asked for with the end of the log, so that a follower sees a lost tail as a gap.
func (p *publisher) check() {
	p.look()
	p.consume()
	s := p.file.durable()
	pub := s.read(p.w.rules)
	for _, name := range sorted(pub.Peers) {
		peer := pub.Peers[name]
		if !IsFollower(name) || p.confirmed(peer) >= pub.Head || p.w.rules.host.noEnds {
			continue
		}
		d := Delivery{Version: peer.Version, Owner: peer.Owner, Event: Event{Publisher: p.id, Incarnation: pub.Incarnation,
			Seq: pub.Head, Number: pub.Number, Last: s.lasts()}}
		p.w.send("end", func() { p.w.follower(name).deliver(arrival{p.index, d, nil}) })
	}
}

// renew makes a stream under a new token, durable before it is asked for.
func (p *publisher) renew() {
	s := p.file.now().clone()
	old := s.token
	s.token = p.w.name("t")
	p.file.commit(s)
	p.streaming = false
	p.file.leave(func() {
		p.w.send("delete", func() { p.w.js.remove(p.index, old) })
		p.w.send("stream", func() { p.w.js.create(p.index, s.token, s.meta.Trimmed+1) })
	})
}

// sleep keeps what memory knows in the file, and deletes the stream once all is confirmed.
func (p *publisher) sleep() {
	s := p.file.now().clone()
	for _, peer := range p.mem.Peers {
		s.update(peer, func(e *edgeRow) { e.confirmed = max(e.confirmed, peer.Confirmed) })
	}
	p.file.commit(s)
	p.file.barrier(p.file.unsynced())
	if s.meta.Trimmed == s.meta.Head {
		p.w.send("delete", func() { p.w.js.remove(p.index, s.token) })
	}
	p.open()
}

// restored is a file that was put back from a backup: another incarnation and token. Sockets start again at the head,
// so that they see no event twice. Followers go on from their position in the parent, up to the head there.
func (s *pubState) restored(w *world) *pubState {
	c := s.fork()
	m := &c.meta
	m.Parent, m.Fork, m.Incarnation = m.Incarnation, m.Head, w.name("i")
	c.base = m.Trimmed
	if !w.rules.host.tokenKept {
		c.token = w.name("t")
	}
	if w.rules.host.socketsGoOn {
		return c
	}
	m.Versions++
	m.Number++
	for k, e := range c.table {
		if !IsFollower(k.peer) {
			e.edge.Start, e.set = m.Head, m.Versions
			c.table[k] = e
		}
	}
	for _, name := range sorted(c.peers) {
		if g := c.peers[name]; !IsFollower(name) {
			edges := map[Key]ghostEdge{}
			for k, e := range g.edges {
				e.start = m.Head
				edges[k] = e
			}
			c.set(name, m.Head, ghostPeer{g.owner, edges})
		}
	}
	return c
}

// replace gives the publisher another file: a restored one, or that of a new life after a destroy.
func (p *publisher) replace(s *pubState) {
	old := p.file.durable()
	p.w.ended[old.meta.Incarnation] = old
	p.file = newFile(s)
	p.open()
	p.w.note("%s: incarnation %s after %s, trimmed %d, head %d", p.id, s.meta.Incarnation, old.meta.Incarnation, s.meta.Trimmed, s.meta.Head)
}
