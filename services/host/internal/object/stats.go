package object

import (
	"time"
)

// numbers are what metrics say of this object. They are counted again only when edges or the log's end changed.
func (a *activation) numbers() (edges int, oldest int64) {
	if a.db.Edges.Head == a.db.Edges.Trimmed {
		a.oldest = 0
	} else if a.oldest == 0 {
		a.oldest, _ = a.db.Oldest()
	}
	if a.counted != a.db.Edges.Versions {
		a.counted, a.edges = a.db.Edges.Versions, 0
		for _, p := range a.db.Edges.Peers {
			a.edges += len(p.Edges)
		}
	}
	return a.edges, a.oldest
}

// Stats are a registry's numbers of the moment.
type Stats struct {
	Awake       int
	Deepest     int // calls that wait at the object with the most
	Edges       int // of awake publishers
	Oldest      time.Duration
	Undelivered int // publishers
}

// Stats gives them.
func (r *Registry) Stats() (s Stats) {
	r.mu.Lock()
	for _, o := range r.objects {
		o.mu.Lock()
		if o.open {
			s.Awake++
		}
		s.Deepest = max(s.Deepest, o.calls)
		s.Edges += o.edges
		if o.oldest != 0 {
			s.Oldest = max(s.Oldest, time.Since(time.UnixMilli(o.oldest)))
		}
		o.mu.Unlock()
	}
	r.mu.Unlock()
	for _, e := range r.c.Wake.All() {
		if e.Events {
			s.Undelivered++
		}
	}
	return s
}
