package edge

import (
	"cmp"
	"slices"
)

// gateway gives the events of the publishers that its sockets follow to them, at most once. Nothing of it survives.
type gateway struct {
	w     *world
	id    string // new at each start
	conns map[string]*socket
	feeds map[int]*feed
}

// socket is, but for its identity, a ghost: what it got.
type socket struct {
	identity string
	last     map[int]applied // by publisher
	seen     map[int]bool
}

// feed is a gateway's subscription to one publisher.
type feed struct {
	Feed
	set    []Edge
	asking uint64
	again  bool // ask once more after the answer that is awaited: its question may have come too early
	held   []Event
	todo   []Request // waits until the request on its way is answered
}

func (g *gateway) feed(pub int) *feed {
	fd := g.feeds[pub]
	if fd == nil {
		fd = &feed{} // subscribed before it asks
		g.feeds[pub] = fd
	}
	return fd
}

// request sends a batch of operations, or lets it wait for the answer to the last one.
func (g *gateway) request(pub int, batch ...Request) {
	fd := g.feed(pub)
	if fd.asking != 0 && !g.w.eager {
		fd.todo = append(fd.todo, batch...)
		return
	}
	fd.asking = g.w.number()
	for i := range batch {
		q := &batch[i]
		q.Peer, q.ID, q.Incarnation, q.Have, q.Number, q.Version = g.id, fd.asking, fd.Incarnation, fd.High, fd.Number, fd.Version
		*q = g.w.post(*q)
	}
	g.w.send(batch[0].Kind, func() { g.w.publishers[pub].handle(batch) })
}

// retry gives up waiting for answers.
func (g *gateway) retry() {
	for _, pub := range sorted(g.feeds) {
		if fd := g.feeds[pub]; fd.asking != 0 {
			fd.asking = 0
			g.request(pub, Request{Kind: Ask})
		}
	}
}

// hear takes an event: it waits for an answer on its way, is news, was had, or is sliced to the sockets.
func (g *gateway) hear(pub int, e Event) {
	fd := g.feeds[pub]
	if fd == nil {
		return
	}
	if fd.asking != 0 && !g.w.rules.host.eventsNotHeld {
		fd.held = append(fd.held, e)
		return
	}
	switch g.w.rules.hear(&fd.Feed, e) {
	case Hold:
		fd.held = append(fd.held, e)
		if fd.asking == 0 {
			g.request(pub, Request{Kind: Ask})
		}
	case Apply:
		for _, ed := range fd.set {
			if c := g.conns[ed.Conn]; c != nil && ed.Topic == e.Topic && g.w.rules.takes(ed, e) {
				g.w.checkSocket(g, pub, ed.Key, c, e)
			}
		}
	}
}

// answered takes an answer, and then what was held for it.
func (g *gateway) answered(a Answer) {
	pub := g.w.index(a.Publisher)
	fd := g.feeds[pub]
	if fd == nil {
		return
	}
	awaited := a.ID == fd.asking
	was := fd.Feed
	heard := g.w.rules.takeFeed(&fd.Feed, a, awaited)
	if g.w.tracing {
		g.w.note("%s at %+v hears (awaited %v, heard %d) %s", g.id, was, awaited, heard, plain(a))
	}
	if awaited {
		fd.asking = 0
	}
	switch {
	case heard == Taken && (a.Base == 0 || g.w.rules.host.deltaWhole):
		fd.set = a.Set.Edges
	case heard == Taken:
		fd.set = slices.DeleteFunc(merge(fd.set, a.Set.Edges), func(e Edge) bool { return slices.Contains(a.Removed, e.Key) })
	case awaited || heard == Again:
		fd.again = true
	}
	if fd.again && fd.asking == 0 {
		fd.again = false
		g.request(pub, Request{Kind: Ask})
	}
	if n := min(len(fd.todo), 3); n > 0 && fd.asking == 0 {
		batch := fd.todo[:n:n]
		fd.todo = fd.todo[n:]
		g.request(pub, batch...)
	}
	if fd.asking != 0 {
		return
	}
	held := fd.held
	fd.held = nil
	slices.SortStableFunc(held, func(x, y Event) int { return cmp.Compare(x.Seq, y.Seq) })
	for _, e := range held {
		if !awaited || e.Incarnation == fd.Incarnation {
			g.hear(pub, e)
		}
	}
}

// merge adds what changed to a set.
func merge(set, changed []Edge) []Edge {
	set = slices.Clone(set)
	for _, e := range changed {
		if i := slices.IndexFunc(set, func(x Edge) bool { return x.Key == e.Key }); i >= 0 {
			set[i] = e
		} else {
			set = append(set, e)
		}
	}
	return set
}

// closeSocket drops its edges here at once, and tells the publishers, which need not hear it.
func (g *gateway) closeSocket(conn string) {
	delete(g.conns, conn)
	for _, pub := range sorted(g.feeds) {
		q := Request{Kind: Close, Peer: g.id, Key: Key{Conn: conn}}
		g.w.send(q.Kind, func() { g.w.publishers[pub].handle([]Request{q}) })
	}
}

// restart forgets everything. Somebody says so to the publishers, which need not hear it.
func (g *gateway) restart() {
	for _, pub := range sorted(g.feeds) {
		q := Request{Kind: Gone, Peer: g.id}
		g.w.send(q.Kind, func() { g.w.publishers[pub].handle([]Request{q}) })
	}
	g.id, g.conns, g.feeds = g.w.name("gw-"), map[string]*socket{}, map[int]*feed{}
}
