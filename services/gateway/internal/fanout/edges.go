package fanout

import (
	"time"

	"weir/pkg/edge"
)

// take makes the edges what an answer says: all of them, or those that it adds. A set that came in part is asked for
// further.
func (fd *feed) take(a edge.Answer) {
	if a.Base == 0 {
		if fd.was == nil {
			fd.was = fd.edges
		}
		fd.edges, fd.count = map[string]map[string]subscriber{}, 0
	}
	for _, k := range a.Removed {
		fd.remove(k)
	}
	closing := map[string]bool{}
	if a.Base == 0 && len(a.Set.Edges) > 0 {
		for _, o := range fd.ops {
			if o.request.Kind == edge.Close {
				closing[o.request.Key.Conn] = true
			}
		}
	}
	for _, e := range a.Set.Edges {
		s := fd.known[e.Conn]
		if s == nil {
			if a.Base == 0 && !closing[e.Conn] { // of a socket that has closed: the publisher did not hear of it
				closing[e.Conn] = true
				fd.ops = append(fd.ops, op{request: edge.Request{Kind: edge.Close, Key: edge.Key{Conn: e.Conn}}, deadline: time.Now().Add(10 * time.Second)})
			}
			continue
		}
		byConn := fd.edges[e.Topic]
		if byConn == nil {
			byConn = map[string]subscriber{}
			fd.edges[e.Topic] = byConn
		}
		if _, ok := byConn[e.Conn]; !ok {
			fd.count++
		}
		byConn[e.Conn] = subscriber{s, e}
	}
	if fd.partial = a.More; a.More {
		fd.ops = append([]op{question(a.Set.Edges[len(a.Set.Edges)-1].Key)}, fd.ops...)
		return
	}
	// All of it is there: a socket whose edge the publisher no longer has must not believe that it follows.
	for topic, byConn := range fd.was {
		for conn, s := range byConn {
			if _, ok := fd.edges[topic][conn]; !ok && fd.known[conn] != nil && fd.reconnected {
				s.socket.Lost()
			}
		}
	}
	fd.was, fd.reconnected = nil, false
}

// drop forgets a socket at once.
func (fd *feed) drop(conn string) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	delete(fd.known, conn)
	for topic := range fd.edges {
		fd.remove(edge.Key{Conn: conn, Topic: topic})
	}
}

// remove forgets one edge. Call it with the lock held.
func (fd *feed) remove(k edge.Key) {
	byConn := fd.edges[k.Topic]
	if _, ok := byConn[k.Conn]; !ok {
		return
	}
	delete(byConn, k.Conn)
	fd.count--
	if len(byConn) == 0 {
		delete(fd.edges, k.Topic)
	}
}
