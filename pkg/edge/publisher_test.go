package edge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// words is a publisher for a table: it does operations written as text and tells what it has.
type words struct {
	t       *testing.T
	p       Publisher
	changed []Change // by the last operation
}

// do does one operation: "publish", or a kind with the peer (a follower's name with its incarnation, or a gateway with a
// connection), a topic and a filter. It gives the changed rows, sorted.
func (w *words) do(op string) string {
	w.t.Helper()
	f := strings.Fields(op)
	if f[0] == "publish" {
		w.p.Head++
		return ""
	}
	if f[0] == "identity" {
		return w.rows(w.p.RemoveIdentity(f[1]))
	}
	q := Request{Kind: f[0]}
	peer, life, _ := strings.Cut(f[1], "@")
	if strings.HasPrefix(peer, "gw") {
		q.Peer, q.Key.Conn, _ = strings.Cut(peer, ":")
		q.Identity = "Account/ada"
		if q.Key.Conn == "b" {
			q.Identity = "Account/bob"
		}
	} else {
		q.Peer, q.Owner = "Account/"+peer, life
	}
	if len(f) > 2 {
		q.Key.Topic = f[2]
	}
	if q.Kind == Follow {
		q.FilterJSON = []byte("{}")
		for _, more := range f[3:] {
			if more == "failed" {
				q.Failed = true
			} else {
				q.FilterJSON = []byte(more)
			}
		}
		return w.rows(w.p.Follow(q, filter(w.t, string(q.FilterJSON))))
	}
	if q.Kind == Drop {
		q.Incarnation = f[3]
		_, _ = fmt.Sscan(f[4], &q.Since)
	}
	return w.rows(w.p.Remove(q))
}

func (w *words) rows(changes []Change) string {
	w.changed = changes
	var rows []string
	for _, c := range changes {
		s := "+"
		if c.Deleted {
			s = "-"
		}
		s += strings.TrimPrefix(c.Peer.Name, "Account/")
		if c.Edge.Conn != "" {
			s += ":" + c.Edge.Conn
		}
		s += " " + c.Edge.Topic
		if !c.Deleted {
			s += fmt.Sprintf(" >%d v%d", c.Edge.Start, c.Edge.Since)
		}
		rows = append(rows, s)
	}
	slices.Sort(rows)
	return strings.Join(rows, ", ")
}

// Versions and the edge number: v is the counter of versions after the operation, e the edge number.
//
// spec: EDGE-5, EDGE-6, EDGE-9
func TestFollowAndRemove(t *testing.T) {
	type step struct {
		op, rows string
		v, e     uint64
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a first follow raises no number, another topic and a filter do", []step{
			{"publish", "", 0, 0},
			{"follow ada@1 bid", "+ada bid >1 v1", 1, 0},
			{"publish", "", 1, 0},
			{"follow ada@1 won", "+ada won >2 v2", 2, 1},
			{"follow ada@1 bid {\"odd\":true}", "+ada bid >1 v3", 3, 2},
			{"follow ada@1 bid {\"odd\":true}", "", 3, 2},
			{"follow ada@1 bid {\"odd\":true} failed", "+ada bid >1 v4", 4, 3},
			{"unfollow ada@1 won", "-ada won", 5, 4},
			{"unfollow ada@1 won", "", 5, 4},
			{"unfollow ada@1 bid", "-ada bid", 6, 5},
			{"publish", "", 6, 5},
			{"follow ada@1 bid", "+ada bid >3 v7", 7, 5},
		}},
		{"followers are apart", []step{
			{"follow ada@1 bid", "+ada bid >0 v1", 1, 0},
			{"follow bob@1 bid", "+bob bid >0 v2", 2, 0},
			{"unfollow ada@1 bid", "-ada bid", 3, 1},
			{"unfollow bob@1 bid", "-bob bid", 4, 2},
		}},
		{"another life replaces the edges", []step{
			{"follow ada@1 bid", "+ada bid >0 v1", 1, 0},
			{"follow ada@1 won", "+ada won >0 v2", 2, 1},
			{"publish", "", 2, 1},
			{"follow ada@2 bid", "+ada bid >1 v3, -ada bid, -ada won", 3, 2},
			{"unfollow ada@1 bid", "", 3, 2},
			{"disown ada@1", "", 3, 2},
			{"disown ada@2", "-ada bid", 4, 3},
		}},
		{"a drop names its edge", []step{
			{"follow ada@1 bid", "+ada bid >0 v1", 1, 0},
			{"follow ada@1 bid failed", "+ada bid >0 v2", 2, 1},
			{"drop ada@1 bid i 1", "", 2, 1},
			{"drop ada@1 bid j 2", "", 2, 1},
			{"drop ada@1 won i 2", "", 2, 1},
			{"drop ada@1 bid i 2", "-ada bid", 3, 2},
		}},
		{"sockets come and close without a number, but unfollow and change with one", []step{
			{"follow gw:a bid", "+gw:a bid >0 v1", 1, 0},
			{"follow gw:b bid", "+gw:b bid >0 v2", 2, 0},
			{"follow gw:a won", "+gw:a won >0 v3", 3, 0},
			{"follow gw:a won {\"odd\":true}", "+gw:a won >0 v4", 4, 1},
			{"unfollow gw:a won", "-gw:a won", 5, 2},
			{"follow gw:a won", "+gw:a won >0 v6", 6, 2},
			{"close gw:a", "-gw:a bid, -gw:a won", 7, 2},
			{"close gw:a", "", 7, 2},
			{"gone gw", "-gw:b bid", 8, 3},
		}},
		{"an identity's own edge and its devices'", []step{
			{"follow ada@1 bid", "+ada bid >0 v1", 1, 0},
			{"follow gw:a bid", "+gw:a bid >0 v2", 2, 0},
			{"follow gw:b bid", "+gw:b bid >0 v3", 3, 0},
			{"follow gw2:a won", "+gw2:a won >0 v4", 4, 0},
			{"unfollow gw:a bid", "-gw:a bid", 5, 1},
			{"unfollow ada@1 bid", "-ada bid", 6, 2},
			{"follow ada@1 bid", "+ada bid >0 v7", 7, 2},
			{"follow gw:a bid", "+gw:a bid >0 v8", 8, 2},
			{"identity Account/ada", "-ada bid, -gw2:a won, -gw:a bid", 11, 5},
			{"identity Account/ada", "", 11, 5},
			{"identity Account/bob", "-gw:b bid", 12, 6},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &words{t: t, p: Publisher{ID: lot, Incarnation: "i"}}
			for _, s := range tt.steps {
				if rows := w.do(s.op); rows != s.rows {
					t.Errorf("%s: %q, not %q", s.op, rows, s.rows)
				}
				if w.p.Versions != s.v || w.p.Number != s.e {
					t.Errorf("%s: version %d, edge number %d, not %d and %d", s.op, w.p.Versions, w.p.Number, s.v, s.e)
				}
			}
			for name, p := range w.p.Peers {
				if len(p.Edges) == 0 {
					t.Errorf("%s is left without edges", name)
				}
			}
		})
	}
}

func TestDurableAndSockets(t *testing.T) {
	w := &words{t: t, p: Publisher{ID: lot}}
	for _, s := range []struct {
		op               string
		durable, sockets bool
	}{
		{"follow gw:a bid", false, true}, {"follow ada@1 bid", true, true}, {"close gw:a", true, false}, {"unfollow ada@1 bid", false, false},
	} {
		w.do(s.op)
		if w.p.Durable() != s.durable || w.p.Sockets() != s.sockets {
			t.Errorf("%s: durable %v, sockets %v", s.op, w.p.Durable(), w.p.Sockets())
		}
	}
}

// What a set's rows do not say, the counter does: a gateway's set that comes out of the file is not older than what the
// gateway was told.
func TestRestore(t *testing.T) {
	p := Publisher{ID: lot, Incarnation: "i", Versions: 9}
	for _, e := range []struct {
		peer, owner, identity string
		version               uint64
		edge                  Edge
	}{
		{"Account/ada", "1", "Account/ada", 4, topic(t, "bid", 2, 3, "{}")},
		{"Account/ada", "1", "Account/ada", 4, topic(t, "won", 2, 4, "{}")},
		{"gw", "", "Account/ada", 5, Edge{Key: Key{"a", "bid"}, Start: 3, Since: 5}},
		{"gw", "", "Account/bob", 7, Edge{Key: Key{"b", "bid"}, Start: 3, Since: 7}},
	} {
		p.Restore(e.peer, e.owner, e.identity, e.version, 6, e.edge)
	}
	ada, gw := p.Find("Account/ada", "1"), p.Find("gw", "")
	if ada == nil || ada.Version != 4 || ada.Confirmed != 6 || len(ada.Edges) != 2 || ada.Identity("") != "Account/ada" {
		t.Errorf("the follower: %+v", ada)
	}
	if gw == nil || gw.Version != 9 || len(gw.Edges) != 2 || gw.Identity("a") != "Account/ada" || gw.Identity("b") != "Account/bob" {
		t.Errorf("the gateway: %+v", gw)
	}
	if p.Find("Account/ada", "2") != nil || p.Find("gw", "1") != nil {
		t.Error("another life has these edges")
	}
	if got := gw.Set(); got.Edges[0].Conn != "a" || got.Edges[1].Conn != "b" {
		t.Errorf("a set out of order: %+v", got)
	}
}
