package edge

import (
	"maps"
	"slices"
)

// op is one kind of step, and how often it is taken.
type op struct {
	name   string
	weight int
	fault  bool
	do     func(*world)
}

var ops = []op{
	{"arrive", 500, false, func(w *world) { w.arrive() }},
	{"push", 40, false, func(w *world) { w.consumers(func(s *stream, c *consumer) { s.push(c) }, true) }},
	{"repush", 16, false, func(w *world) { w.consumers((*stream).repush, true) }},
	{"publish", 12, false, func(w *world) { w.pub(func(p *publisher) { p.publish(1 + w.rnd.IntN(3)) }) }},
	{"flow", 4, false, func(w *world) { w.pub(w.flow) }},
	{"barrier", 12, false, func(w *world) { w.pub(func(p *publisher) { p.file.barrier(w.upTo(p.file.unsynced())) }) }},
	{"relay", 16, false, func(w *world) { w.pub((*publisher).relay) }},
	{"check", 2, false, func(w *world) { w.pub((*publisher).check) }},
	{"trim", 5, false, func(w *world) { w.pub((*publisher).trim) }},
	{"sleep", 1, false, func(w *world) { w.pub((*publisher).sleep) }},
	{"drop followers", 1, false, func(w *world) { w.pub(func(p *publisher) { p.removeIdentity(pick(w.rnd, w.identities())) }) }},

	{"follower's barrier", 12, false, func(w *world) { w.fol(func(f *follower) { f.file.barrier(w.upTo(f.file.unsynced())) }) }},
	{"receipts", 6, false, func(w *world) { w.fol((*follower).receipts) }},
	{"follow", 3, false, func(w *world) { w.fol(func(f *follower) { f.request(w.somePub(), w.ask(Follow, Key{})) }) }},
	{"due", 8, false, func(w *world) { w.fol((*follower).due) }},
	{"failing", 6, false, func(w *world) { w.fol(w.failing) }},
	{"follow again", 2, false, func(w *world) { w.fol(followAgain) }},
	{"unfollow", 1, false, func(w *world) { w.fol(func(f *follower) { f.request(w.somePub(), w.ask(Unfollow, Key{})) }) }},
	{"retry", 3, false, func(w *world) { w.fol((*follower).retry) }},
	{"follower's sleep", 1, false, func(w *world) {
		w.fol(func(f *follower) { f.file.barrier(f.file.unsynced()); f.open(false) })
	}},

	{"sockets follow", 3, false, func(w *world) { w.gate(socketsFollow) }},
	{"socket unfollows", 1, false, func(w *world) {
		w.gate(func(g *gateway) {
			if conn, ok := g.some(); ok {
				g.request(w.somePub(), w.ask(Unfollow, Key{Conn: conn}))
			}
		})
	}},
	{"socket closes", 1, false, func(w *world) {
		w.gate(func(g *gateway) {
			if conn, ok := g.some(); ok {
				g.closeSocket(conn)
			}
		})
	}},
	{"gateway's retry", 2, false, func(w *world) { w.gate((*gateway).retry) }},

	{"time", 10, false, func(w *world) { w.now += 1000 << w.rnd.IntN(9) }},
	{"reopen", 12, false, (*world).reopen},
	{"late", 4, true, func(w *world) {
		if len(w.late) > 0 {
			i := w.rnd.IntN(len(w.late))
			w.net = append(w.net, w.late[i])
			w.late = slices.Delete(w.late, i, i+1)
		}
	}},
	{"crash", 2, true, func(w *world) { w.pub((*publisher).crash) }},
	{"follower's crash", 2, true, func(w *world) { w.fol(func(f *follower) { f.crash(w.upTo(f.file.unsynced())) }) }},
	{"gateway's restart", 1, true, func(w *world) { w.gate((*gateway).restart) }},
	{"misbehave", 4, true, func(w *world) { w.js.misbehave() }},
	{"backup", 1, true, func(w *world) {
		w.pub(func(p *publisher) { w.backups[p.index] = append(w.backups[p.index], p.file.durable()) })
	}},
	{"restore", 1, true, func(w *world) {
		w.pub(func(p *publisher) {
			if b := w.backups[p.index]; len(b) > 0 {
				p.replace(pick(w.rnd, b).restored(w))
			}
		})
	}},
	{"destroy", 1, true, func(w *world) {
		w.pub(func(p *publisher) {
			if w.rnd.IntN(4) == 0 {
				w.backups[p.index] = nil
				p.replace(w.newPublisher(p.id))
			}
		})
	}},
	{"follower's destroy", 1, true, func(w *world) {
		w.fol(func(f *follower) {
			if w.rnd.IntN(3) == 0 {
				f.file = newFile(w.newFollower())
				f.open(false)
			}
		})
	}},
}

// ask makes an operation on some topic.
func (w *world) ask(kind string, k Key) Request {
	k.Topic = pick(w.rnd, w.topics)
	q := Request{Kind: kind, Key: k}
	if kind == Follow {
		q.FilterJSON = []byte(pick(w.rnd, []string{takesAll, takesAll, takesAll, takesOdd, takesEven}))
	}
	return q
}

// crash loses some of the unsynced commits, perhaps in the middle of relaying.
func (p *publisher) crash() {
	if p.w.rnd.IntN(2) == 0 {
		p.relay()
	}
	p.file.crash(p.w.upTo(p.file.unsynced()))
	p.down = true
	p.w.note("%s crashes", p.id)
}

func (w *world) upTo(n int) int { return w.rnd.IntN(n + 1) }
func (w *world) somePub() int   { return w.rnd.IntN(len(w.publishers)) }

func (w *world) pub(do func(*publisher)) {
	if p := pick(w.rnd, w.publishers); !p.down {
		do(p)
	}
}

func (w *world) fol(do func(*follower)) {
	if f := pick(w.rnd, w.followers); !f.down {
		do(f)
	}
}

func (w *world) gate(do func(*gateway)) {
	if len(w.gateways) > 0 {
		do(pick(w.rnd, w.gateways))
	}
}

// identities are those that connections act as: followers, and others.
func (w *world) identities() []string {
	ids := []string{"Account/dee", "Account/eve"}
	for _, f := range w.followers {
		ids = append(ids, f.id)
	}
	return ids
}

// consumers does something with one consumer, or with all that there are.
func (w *world) consumers(do func(*stream, *consumer), one bool) {
	type pair struct {
		s *stream
		c *consumer
	}
	var all []pair
	for _, s := range w.js.streams {
		if s.gone {
			continue
		}
		for _, n := range slices.SortedFunc(maps.Keys(s.consumers), compareNames) {
			all = append(all, pair{s, s.consumers[n]})
		}
	}
	if one && len(all) > 0 {
		all = []pair{pick(w.rnd, all)}
	}
	for _, x := range all {
		do(x.s, x.c)
	}
}

// reopen opens objects that crashed.
func (w *world) reopen() {
	for _, p := range w.publishers {
		if p.down && (w.healing || w.rnd.IntN(2) == 0) {
			p.open()
		}
	}
	for _, f := range w.followers {
		if f.down && (w.healing || w.rnd.IntN(2) == 0) {
			f.open(true)
		}
	}
}

// run takes steps, then heals and checks the end. It gives the first violation.
func (w *world) run(steps int) string {
	total := 0
	weights := make([]int, len(ops))
	for i, o := range ops {
		weights[i] = o.weight * pick(w.rnd, []int{1, 2, 4})
		if o.fault {
			weights[i] *= pick(w.rnd, []int{0, 0, 1, 3})
		}
		if o.fault && (w.calm || w.mild) {
			weights[i] = 0
		}
	}
	if w.mild {
		for _, name := range []string{"late", pick(w.rnd, ops[slices.IndexFunc(ops, func(o op) bool { return o.fault }):]).name} {
			i := slices.IndexFunc(ops, func(o op) bool { return o.name == name })
			weights[i] = ops[i].weight
		}
	}
	for _, n := range weights {
		total += n
	}
	for range steps {
		n := w.rnd.IntN(total)
		i := 0
		for ; n >= weights[i]; i++ {
			n -= weights[i]
		}
		if i > 0 {
			w.note("%s", ops[i].name)
		}
		ops[i].do(w)
		w.stats[ops[i].name]++
		w.now += 20
		if w.violation != "" {
			return w.violation
		}
	}
	w.heal()
	return w.violation
}
