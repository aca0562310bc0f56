package edge_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/value"
)

// A set's filters are those that came; one that is none is an error that says so.
// spec: EDGE-7
func FuzzUnpack(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{}`, ``, `[]`, `null`, `{"a":`, `{"a":9007199254740993}`, `{"a":{"b":[null]},"a":2}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(s), []byte(`{"a":1}`))
	}
	f.Fuzz(func(t *testing.T, filter, data []byte) {
		s := edge.Set{Version: 1, Edges: []edge.Edge{{Key: edge.Key{Topic: "won"}}, {Key: edge.Key{Topic: "bid"}, Start: 3, FilterJSON: filter}}}
		want, wantErr := value.ParseFilter(filter)
		err := s.Unpack()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: Unpack says %v, ParseFilter %v", filter, err, wantErr)
		}
		if err != nil {
			if !strings.Contains(err.Error(), wantErr.Error()) {
				t.Fatalf("%q: %v does not say %v", filter, err, wantErr)
			}
			return
		}
		if !s.Edges[1].Filter.Equal(want) || !s.Edges[0].Filter.Empty() {
			t.Fatalf("%q unpacks to %s and %s", filter, s.Edges[1].Filter.JSON(), s.Edges[0].Filter.JSON())
		}
		if s.Wants("bid", 4, data) != want.Match(data) || s.Wants("bid", 3, data) || !s.Wants("won", 4, data) {
			t.Fatalf("%q on %q: wants %v, matches %v", filter, data, s.Wants("bid", 4, data), want.Match(data))
		}
	})
}

// answers are the answers, and beside them the deliveries, that fuzzing starts from.
var answers = []string{
	`{"p":{"Class":"A","Name":"x"},"id":1,"i":"i","have":3,"head":9,"e":2,"set":{"v":4,"o":"o","e":[{"c":"bid","s":2,"v":1}]},"rows":[{"i":"i","s":5,"c":"bid","d":"MQ==","e":2,"l":{"bid":4}}]}`,
	`{"i":"j","have":0,"head":2,"parent":"i","fork":2,"e":1,"set":{"v":5,"o":"o","e":[{"c":"bid","s":0,"v":1}]}}`,
	`{"i":"i","have":18446744073709551615,"head":1,"applied":18446744073709551615,"e":18446744073709551615,"set":{"v":18446744073709551615}}`,
	`{"i":"i","have":3,"head":9,"e":3,"base":4,"set":{"v":6,"e":[{"k":"c","c":"bid","s":2,"v":1}]},"removed":[{"k":"d","c":"won"}],"more":true}`,
	`{}`,
}

// A follower uses an answer only of its incarnation or one it waits for, and takes of what is delivered only what comes
// after its position and what its set wants. Whatever came twice is skipped the second time.
// spec: DLV-3, DLV-4, EDGE-7
func FuzzFollower(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a), []byte(`{"i":"i","s":4,"c":"bid","d":"MQ==","e":2,"l":{"bid":3},"Version":4,"Owner":"o"}`), uint64(3), true)
		f.Add([]byte(a), []byte(`{"i":"j","s":1,"c":"bid","d":"bnVsbA==","e":1,"Version":5}`), uint64(0), false)
	}
	f.Fuzz(func(t *testing.T, answer, delivery []byte, pos uint64, awaited bool) {
		var a edge.Answer
		var d edge.Delivery
		if json.Unmarshal(answer, &a) != nil || a.Set.Unpack() != nil || json.Unmarshal(delivery, &d) != nil {
			return
		}
		bid := edge.Edge{Key: edge.Key{Topic: "bid"}, Since: 1}
		c := edge.Cursor{Incarnation: "i", At: min(pos, 3), Number: 2, Set: edge.Set{Version: 4, Owner: "o", Edges: []edge.Edge{bid}}}
		next, at, heard, _ := c.Take(pos, a, awaited)
		if heard != edge.Taken && !reflect.DeepEqual(next, c) {
			t.Fatalf("an answer that was not taken (%d) made %+v of %+v", heard, next, c)
		}
		if heard == edge.Taken && a.Incarnation != c.Incarnation && !awaited {
			t.Fatalf("an answer of another incarnation was taken, and nobody waited for it: %+v", a)
		}
		if heard != edge.Taken {
			at = pos
		}
		switch edge.Decide(next, at, d, 0) {
		case edge.Apply:
			if d.Seq <= at || d.Incarnation != next.Incarnation || !next.Set.Wants(d.Topic, d.Seq, d.Data) {
				t.Fatalf("applied %+v at %d of %+v", d, at, next)
			}
			if v := edge.Decide(next, d.Seq, d, 0); v == edge.Apply || v == edge.Pass {
				t.Fatalf("%+v is taken twice: %d", d, v)
			}
		case edge.Pass:
			if d.Seq <= at || d.Incarnation != next.Incarnation {
				t.Fatalf("went past %+v at %d of %+v", d, at, next)
			}
		}
	})
}

// A gateway gives no event twice, and its mark never goes back within an incarnation.
// spec: CONN-6
func FuzzGateway(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a), []byte(`{"i":"i","s":6,"c":"bid","e":2,"l":{"bid":5}}`), true)
		f.Add([]byte(a), []byte(`{"i":"j","s":3,"c":"bid","e":1}`), false)
	}
	f.Fuzz(func(t *testing.T, answer, event []byte, awaited bool) {
		var a edge.Answer
		var e edge.Event
		if json.Unmarshal(answer, &a) != nil || a.Set.Unpack() != nil || json.Unmarshal(event, &e) != nil {
			return
		}
		feed := edge.Feed{Incarnation: "i", Number: 2, Version: 4, High: 5}
		before := feed
		heard := feed.Take(a, awaited)
		if heard != edge.Taken && feed != before {
			t.Fatalf("an answer that was not taken (%d) made %+v of %+v", heard, feed, before)
		}
		if heard == edge.Taken && a.Incarnation != before.Incarnation && !awaited {
			t.Fatalf("an answer of another incarnation was taken, and nobody waited for it: %+v", a)
		}
		if feed.Incarnation == before.Incarnation && feed.High < before.High {
			t.Fatalf("%+v went back to %+v", before, feed)
		}
		if feed.Hear(e) == edge.Apply {
			if v := feed.Hear(e); v != edge.Skip {
				t.Fatalf("%+v is given twice: %d", e, v)
			}
		}
	})
}

// Whatever a peer asks or confirms: it gets only what its set wants, in order, after what it has; and nothing is trimmed
// that was never published.
// spec: EDGE-1, DLV-4, LOG-8
func FuzzPublisher(f *testing.F) {
	for _, q := range []string{
		`{"kind":"ask","peer":"B/y","id":1,"owner":"o","inc":"i","have":5}`, `{"kind":"follow","peer":"B/z","owner":"o","key":{"c":"bid"},"filter":"eyJuIjo3fQ=="}`,
		`{"kind":"ask","peer":"gw","inc":"i","version":1}`, `{"kind":"unfollow","peer":"B/y","owner":"o","key":{"c":"bid"}}`, `{"kind":"gone","peer":"gw"}`,
		`{"kind":"drop","peer":"B/y","owner":"*","version":1,"key":{"c":"bid"},"seq":7}`, `{"kind":"disown","peer":"B/y","owner":"o"}`, `{"kind":"close","peer":"gw","key":{"k":"c"}}`,
		`{"kind":"ask","peer":"B/y","owner":"o","inc":"h","have":18446744073709551615,"version":18446744073709551615}`,
	} {
		f.Add([]byte(q), []byte(`{"peer":"B/y","owner":"o","inc":"i","have":18446744073709551615,"applied":1}`))
		f.Add([]byte(q), []byte(`{"peer":"B/y","owner":"o","inc":"i","have":7,"applied":7}`))
	}
	f.Fuzz(func(t *testing.T, request, receipt []byte) {
		var q edge.Request
		var r edge.Receipt
		if json.Unmarshal(request, &q) != nil || json.Unmarshal(receipt, &r) != nil {
			return
		}
		filter, err := value.ParseFilter(q.FilterJSON)
		if err != nil {
			return
		}
		p := edge.Publisher{ID: objectid.ID{Class: "A", Name: "x"}, Incarnation: "i", Parent: "h", Fork: 2}
		p.Follow(edge.Request{Kind: edge.Follow, Peer: "B/y", Owner: "o", Key: edge.Key{Topic: "bid"}}, value.Filter{})
		p.Head = 10
		p.Received(r)
		if got := p.TrimTo(10); got > p.Head {
			t.Fatalf("%+v lets the log be trimmed through %d of %d", r, got, p.Head)
		}
		var changed []edge.Change
		before := uint64(0)
		if peer := p.Find(q.Peer, q.Owner); peer != nil {
			before = peer.Version
		}
		switch q.Kind {
		case edge.Ask:
		case edge.Follow:
			changed = p.Follow(q, filter)
		default:
			changed = p.Remove(q)
		}
		a, err := p.Answer(q, before, changed, func(after uint64, yield func(edge.Event) bool) error {
			for seq := after + 1; seq > after && seq <= p.Head && yield(edge.Event{Publisher: p.ID, Incarnation: "i", Seq: seq, Topic: "bid", Data: []byte(`{"n":7}`)}); seq++ {
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		last := a.Have
		for _, e := range a.Rows {
			if e.Seq <= last || e.Seq > a.Head || !a.Set.Wants(e.Topic, e.Seq, e.Data) {
				t.Fatalf("%+v was answered with %+v", q, a)
			}
			last = e.Seq
		}
		if a.Head > p.Head {
			t.Fatalf("%+v was told the head %d of %d", q, a.Head, p.Head)
		}
	})
}
