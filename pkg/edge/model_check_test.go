package edge

import "bytes"

// log is the durable log that an incarnation of a publisher has, or had at its end.
func (w *world) log(pub int, inc string) *pubState {
	if s := w.publishers[pub].file.durable(); s.meta.Incarnation == inc {
		return s
	}
	return w.ended[inc]
}

// due is ghost.due over restores: what the parent's edges did not owe, or owed under another filter, need not come.
func (w *world) due(s *pubState, peer, owner string, k Key, r row) (may, must bool) {
	may, must = s.due(peer, owner, k, r)
	if parent := w.ended[s.meta.Parent]; parent != nil && must && r.seq <= s.meta.Fork {
		_, must = w.due(parent, peer, owner, k, r)
	}
	return may, must
}

// checkApply looks at an event that a follower just applied: it is durable, of an edge that had it, not applied before,
// and nothing is left out before it.
// spec: DLV-3, DLV-4, EDGE-5, EDGE-6
func (w *world) checkApply(f *follower, e Event, did applied) {
	w.stats["applied"]++
	w.note("%s applies %d.%d of %s", f.id, did.pub, did.seq, did.inc)
	log := w.log(did.pub, did.inc)
	if log == nil || !log.has(did.seq, did.topic, did.n) || !bytes.Equal(log.all[did.seq-1].data, e.Data) {
		w.fail("%s applied %d.%d, which is not durable", f.id, did.pub, did.seq)
		return
	}
	s := f.file.now()
	if may, _ := w.due(log, f.id, s.own, Key{Topic: did.topic}, log.all[did.seq-1]); !may {
		w.fail("%s applied %d.%d of no edge of its", f.id, did.pub, did.seq)
	}
	before, had := log.base, map[int]bool{}
	for _, a := range s.applied[:len(s.applied)-1] {
		had[a.n] = true
		switch {
		case a.pub != did.pub:
		case a.inc > did.inc:
			w.fail("%s applied %d.%d of an incarnation gone by", f.id, did.pub, did.seq)
		case a.inc == did.inc && a.seq >= did.seq:
			w.fail("%s applied %d.%d after %d", f.id, did.pub, did.seq, a.seq)
		case a.inc == did.inc:
			before = a.seq
		case a.n == did.n && !f.strayed[did.pub]:
			w.fail("%s applied %d.%d again after a restore", f.id, did.pub, did.seq)
		case a.n == did.n:
			w.stats["applied again after two restores"]++
		}
	}
	for seq := before + 1; seq < did.seq; seq++ {
		r := log.all[seq-1]
		if _, must := w.due(log, f.id, s.own, Key{Topic: r.topic}, r); must && !had[r.n] {
			w.fail("%s applied %d.%d without %d", f.id, did.pub, did.seq, r.seq)
		}
	}
}

// checkAttempt looks at an event that is about to be tried: after a failure its time has come.
func (w *world) checkAttempt(f *follower, id attempt) {
	if due := f.file.now().due[id]; w.now < due {
		w.fail("%s tried event %d again %d ms too early", id.follower, id.n, due-w.now)
	}
}

// checkDrop looks at a drop for failures that a publisher is about to grant: there were eight.
func (w *world) checkDrop(p *publisher, q Request) {
	w.stats["dropped"]++
	if q.Seq == 0 || q.Seq > p.mem.Head {
		w.fail("%s dropped %s at %d, which is no event", p.id, q.Peer, q.Seq)
		return
	}
	n := 0
	for _, x := range w.attempts[w.followed[line{p.index, q.Peer, q.Key.Topic}]:] {
		if x == (attempt{q.Peer, p.file.now().all[q.Seq-1].n, q.Incarnation, q.Since}) {
			n++
		}
	}
	if n < MaxAttempts {
		w.fail("%s dropped %s at %d after %d attempts", p.id, q.Peer, q.Seq, n)
	}
}

// checkSocket looks at an event that a socket gets: it is durable, of an edge of the socket that had it, and comes once
// and in order.
// spec: CONN-6, EDGE-5
func (w *world) checkSocket(g *gateway, pub int, k Key, c *socket, e Event) {
	got := applied{pub, e.Incarnation, e.Seq, e.Topic, int(e.At)}
	w.stats["to sockets"]++
	w.note("socket %s gets %d.%d of %s", k.Conn, pub, e.Seq, e.Incarnation)
	log := w.log(pub, e.Incarnation)
	if log == nil || !log.has(e.Seq, e.Topic, got.n) || !bytes.Equal(log.all[e.Seq-1].data, e.Data) {
		w.fail("socket %s got %d.%d, which is not durable", k.Conn, pub, e.Seq)
		return
	}
	if may, _ := w.due(log, g.id, "", k, log.all[e.Seq-1]); !may {
		w.fail("socket %s got %d.%d of no edge of its", k.Conn, pub, e.Seq)
	}
	last := c.last[pub]
	if last.inc > got.inc || last.inc == got.inc && last.seq >= got.seq || c.seen[got.n] {
		w.fail("socket %s got %d.%d of %s after %d of %s", k.Conn, pub, got.seq, got.inc, last.seq, last.inc)
	}
	c.last[pub], c.seen[got.n] = got, true
}

// checkEnd looks at the healed world: every follower has all that it must have, once. Where no
// message is lost for good, every socket has what it must have of the events after heads, which were published when all
// was well again, and in a calm world of all events.
// spec: DLV-3, EDGE-5
func (w *world) checkEnd(heads []uint64) {
	for _, p := range w.publishers {
		log := p.file.durable()
		if s := w.js.find(p.index, log.token); s != nil {
			for _, seq := range sorted(s.msgs) {
				if e := s.msgs[seq]; e.Incarnation != log.meta.Incarnation || e.Seq != seq || !log.has(e.Seq, e.Topic, int(e.At)) {
					w.fail("%s's stream has %d of %s at %d", p.id, e.Seq, e.Incarnation, seq)
				}
			}
		}
		for _, f := range w.followers {
			w.checkFollower(p, log, f)
		}
		for _, g := range w.gateways {
			for _, conn := range sorted(g.conns) {
				for _, r := range log.all {
					_, must := w.due(log, g.id, "", Key{conn, r.topic}, r)
					if (w.calm || w.mild && r.seq > heads[p.index]) && must && !g.conns[conn].seen[r.n] {
						w.fail("socket %s did not get %d.%d though nothing failed", conn, p.index, r.seq)
					}
				}
			}
		}
	}
}

func (w *world) checkFollower(p *publisher, log *pubState, f *follower) {
	s := f.file.durable()
	times, had := map[uint64]int{}, map[int]bool{}
	for _, a := range s.applied {
		had[a.n] = true
		if a.pub == p.index && a.inc == log.meta.Incarnation {
			times[a.seq]++
		}
	}
	for _, r := range log.all {
		may, must := w.due(log, f.id, s.own, Key{Topic: r.topic}, r)
		if n := times[r.seq]; n > 1 || n > 0 && !may || must && !had[r.n] {
			w.fail("%s has %d.%d %d times at the end (may %v, must %v)", f.id, p.index, r.seq, n, may, must)
		}
	}
}
