package edge

// The steps that are more than a call.

// followAgain follows a topic again whose event fails.
func followAgain(f *follower) {
	for _, pub := range sorted(f.links) {
		c := f.cursor(pub)
		for _, e := range c.Set.Edges {
			if c.Attempts.Count > 0 && c.Attempts.Since == e.Since {
				f.request(pub, Request{Kind: Follow, Key: e.Key, FilterJSON: e.FilterJSON})
				return
			}
		}
	}
}

// socketsFollow sends a batch of up to three sockets' follows, and now and then an unfollow among them.
func socketsFollow(g *gateway) {
	pub := g.w.somePub()
	var batch []Request
	for range 1 + g.w.rnd.IntN(3) {
		conn, ok := g.some()
		if !ok || len(g.conns) < 3 && g.w.rnd.IntN(2) == 0 {
			conn = g.w.name("c")
			g.conns[conn] = &socket{pick(g.w.rnd, g.w.identities()), map[int]applied{}, map[int]bool{}}
		}
		q := g.w.ask(pick(g.w.rnd, []string{Follow, Follow, Follow, Follow, Unfollow}), Key{Conn: conn})
		q.Identity = g.conns[conn].identity
		batch = append(batch, q)
	}
	g.request(pub, batch...)
}

// some picks a socket.
func (g *gateway) some() (conn string, ok bool) {
	if len(g.conns) == 0 {
		return "", false
	}
	return pick(g.w.rnd, sorted(g.conns)), true
}

// flow lets a publisher's events run to its followers for a while. Somebody may follow meanwhile, and one kind of message
// may not get through.
func (w *world) flow(p *publisher) {
	if f := pick(w.rnd, w.followers); !f.down && w.rnd.IntN(3) == 0 {
		f.request(p.index, w.ask(Follow, Key{}))
		f.file.barrier(f.file.unsynced())
	}
	if !w.calm {
		w.stuck = pick(w.rnd, []string{"", "", "answer", "consumer", "receipt", "drop"})
	}
	defer func() { w.stuck = "" }()
	for range 1 + w.rnd.IntN(8) {
		p.publish(1 + w.rnd.IntN(2))
		p.file.barrier(p.file.unsynced())
		p.relay()
		for range w.rnd.IntN(30) {
			w.arrive()
			w.consumers(func(s *stream, c *consumer) { s.push(c) }, true)
		}
		if w.violation != "" || p.down {
			return
		}
	}
}

// failing lets a follower try a failing event again and again for a while.
func (w *world) failing(f *follower) {
	for range 1 + w.rnd.IntN(8) {
		for _, c := range f.file.now().cursors {
			w.now = max(w.now, c.Attempts.Next)
		}
		if f.due(); len(f.links) == 0 {
			return
		}
		for n := w.rnd.IntN(60); n > 0 && w.violation == "" && !f.down; n-- {
			w.arrive()
			for _, p := range w.publishers {
				p.file.barrier(p.file.unsynced())
			}
		}
		if w.violation != "" || f.down {
			return
		}
	}
}
