package edge

import (
	"testing"

	"weir/pkg/objectid"
	"weir/pkg/value"
)

var lot = objectid.ID{Class: "Auction", Name: "lot-42"}

func filter(t *testing.T, json string) value.Filter {
	t.Helper()
	f, err := value.ParseFilter([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// topic is a follower's edge.
func topic(t *testing.T, name string, start, since uint64, json string) Edge {
	t.Helper()
	f := filter(t, json)
	return Edge{Key: Key{Topic: name}, Start: start, Since: since, Filter: f, FilterJSON: f.JSON()}
}

func last(pairs ...any) map[string]uint64 {
	m := map[string]uint64{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = uint64(pairs[i+1].(int))
	}
	return m
}

// spec: DLV-3, DLV-4
func TestDecide(t *testing.T) {
	// The follower has bid from 10 on, odd ones only, and won from 20 on; it is at 30.
	known := Cursor{Incarnation: "i", At: 30, Number: 2, Set: Set{Version: 5, Edges: []Edge{
		topic(t, "bid", 10, 3, `{"odd":true}`), topic(t, "won", 20, 5, "{}")}}}
	failed := known
	failed.Attempts = Attempts{Seq: 31, Since: 3, Count: 2, Next: 1000}
	odd, even := []byte(`{"odd":true}`), []byte(`{"odd":false}`)
	delivery := func(change func(*Delivery)) Delivery {
		d := Delivery{Version: 5, Event: Event{Publisher: lot, Incarnation: "i", Seq: 31, Topic: "bid", Data: odd, Number: 2,
			Last: last("bid", 30, "won", 25)}}
		change(&d)
		return d
	}
	for _, tt := range []struct {
		name string
		c    Cursor
		pos  uint64
		d    Delivery
		want Verdict
	}{
		{"the next one", known, 30, delivery(func(*Delivery) {}), Apply},
		{"of an older edge number", known, 30, delivery(func(d *Delivery) { d.Number = 0 }), Apply},
		{"far ahead, with nothing between", known, 30, delivery(func(d *Delivery) { d.Seq = 99 }), Apply},
		{"had already", known, 30, delivery(func(d *Delivery) { d.Seq = 30 }), Skip},
		{"before the position in memory", known, 40, delivery(func(d *Delivery) { d.Seq = 40 }), Skip},
		{"had already, behind a failed one", failed, 30, delivery(func(d *Delivery) { d.Seq = 7 }), Skip},
		{"filtered", known, 30, delivery(func(d *Delivery) { d.Data = even }), Pass},
		{"of a topic not followed", known, 30, delivery(func(d *Delivery) { d.Topic = "closed" }), Pass},
		{"not past its own start", known, 5, delivery(func(d *Delivery) { d.Topic, d.Seq, d.Last = "won", 15, last("bid", 9) }), Pass},
		{"the end of the log", known, 30, delivery(func(d *Delivery) { d.Topic, d.Data = "", nil }), Pass},
		{"the end of the log, the tail lost", known, 30, delivery(func(d *Delivery) { d.Topic, d.Last = "", last("bid", 31) }), Hold},
		{"a gap in its topic", known, 29, delivery(func(*Delivery) {}), Hold},
		{"a gap in another topic", known, 30, delivery(func(d *Delivery) { d.Last = last("bid", 30, "won", 31); d.Seq = 32 }), Hold},
		{"a gap, though filtered itself", known, 29, delivery(func(d *Delivery) { d.Data = even }), Hold},
		{"no gap: a topic not followed", known, 30, delivery(func(d *Delivery) { d.Last = last("bid", 30, "closed", 31); d.Seq = 32 }), Apply},
		{"no gap: before that topic's start", known, 12, delivery(func(d *Delivery) { d.Last = last("bid", 11, "won", 13); d.Seq = 14 }), Apply},
		{"another incarnation", known, 30, delivery(func(d *Delivery) { d.Incarnation = "j" }), Hold},
		{"another incarnation, of an older set", known, 30, delivery(func(d *Delivery) { d.Incarnation, d.Version = "j", 1 }), Hold},
		{"of an older set", known, 30, delivery(func(d *Delivery) { d.Version = 4 }), Refuse},
		{"of an older set, though it was had", known, 30, delivery(func(d *Delivery) { d.Version, d.Seq = 4, 7 }), Refuse},
		{"of a newer set", known, 30, delivery(func(d *Delivery) { d.Version = 6 }), Hold},
		{"a higher edge number", known, 30, delivery(func(d *Delivery) { d.Number = 3 }), Hold},
		{"the failed one, not due", failed, 30, delivery(func(*Delivery) {}), Wait},
		{"behind the failed one", failed, 30, delivery(func(d *Delivery) { d.Seq, d.Last = 32, last("bid", 31) }), Wait},
		{"before any follow", Cursor{}, 0, delivery(func(*Delivery) {}), Hold},
		{"without edges", Cursor{Incarnation: "i", Number: 2, Set: Set{Version: 5}}, 0, delivery(func(*Delivery) {}), Pass},
	} {
		if got := Decide(tt.c, tt.pos, tt.d, 999); got != tt.want {
			t.Errorf("%s: %d, not %d", tt.name, got, tt.want)
		}
	}
	if got := Decide(failed, 30, delivery(func(*Delivery) {}), 1000); got != Apply {
		t.Errorf("the failed one, due: %d", got)
	}
}

// spec: EDGE-6
func TestWaits(t *testing.T) {
	c := Cursor{Set: Set{Edges: []Edge{topic(t, "bid", 0, 3, "{}")}}, Attempts: Attempts{Seq: 31, Since: 3, Count: 1, Next: 500}}
	for _, tt := range []struct {
		name string
		pos  uint64
		now  int64
		want bool
	}{
		{"not due", 30, 499, true}, {"due", 30, 500, false}, {"passed", 31, 0, false},
	} {
		if got := c.Waits(tt.pos, tt.now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if !c.Attempts.Of(31, 3) || c.Attempts.Of(32, 3) || c.Attempts.Of(31, 4) || (Attempts{Seq: 31, Since: 3}).Of(31, 3) {
		t.Error("attempts are of one event on one edge")
	}
	c.Set.Edges[0].Since = 4
	if c.Waits(30, 0) {
		t.Error("a new follow does not try at once")
	}
	if (Cursor{}).Waits(0, 0) {
		t.Error("nothing failed")
	}
}

func TestBackoff(t *testing.T) {
	var waits []int64
	for n := 1; n < MaxAttempts; n++ {
		waits = append(waits, Backoff(n))
	}
	for i, want := range []int64{500, 1000, 2000, 4000, 8000, 16000, 32000} {
		if waits[i] != want {
			t.Errorf("after failure %d: %d ms, not %d", i+1, waits[i], want)
		}
	}
}

func TestTake(t *testing.T) {
	known := Cursor{Incarnation: "i", At: 28, Number: 2, Set: Set{Version: 5, Edges: []Edge{topic(t, "bid", 10, 3, "{}")}},
		Attempts: Attempts{Seq: 31, Since: 3, Count: 2}}
	set := Set{Version: 6, Edges: []Edge{topic(t, "won", 30, 6, "{}")}}
	answer := func(change func(*Answer)) Answer {
		a := Answer{Publisher: lot, Incarnation: "i", Have: 30, Head: 40, Number: 3, Set: set}
		change(&a)
		return a
	}
	for _, tt := range []struct {
		name    string
		a       Answer
		awaited bool
		heard   Heard
		inc     string
		at, pos uint64
		setBack bool
	}{
		{"the awaited one", answer(func(*Answer) {}), true, Taken, "i", 28, 30, false},
		{"a late one that is newer", answer(func(*Answer) {}), false, Taken, "i", 28, 30, false},
		{"a late one that says the same", answer(func(a *Answer) { a.Number, a.Set.Version = 2, 5 }), false, Taken, "i", 28, 30, false},
		{"of an older set", answer(func(a *Answer) { a.Set.Version = 4 }), true, Stale, "i", 28, 30, false},
		{"of an older number", answer(func(a *Answer) { a.Number = 1 }), true, Stale, "i", 28, 30, false},
		{"asked from before a crash", answer(func(a *Answer) { a.Have = 31 }), true, Stale, "i", 28, 30, false},
		{"asked from further back", answer(func(a *Answer) { a.Have = 3 }), true, Taken, "i", 28, 30, false},
		{"receipts know this cursor", answer(func(a *Answer) { a.Applied = 28 }), true, Taken, "i", 28, 30, false},
		{"receipts know a later one", answer(func(a *Answer) { a.Applied = 29 }), true, Taken, "i", 28, 30, true},
		{"another incarnation, not awaited", answer(func(a *Answer) { a.Incarnation = "j" }), false, Again, "i", 28, 30, false},
		{"another incarnation", answer(func(a *Answer) { a.Incarnation, a.Have, a.Applied = "j", 0, 99 }), true, Taken, "j", 0, 0, false},
		{"another incarnation, of lower numbers", answer(func(a *Answer) { a.Incarnation, a.Set.Version, a.Number = "j", 1, 0 }), true, Taken, "j", 0, 0, false},
		{"restored behind the position", answer(func(a *Answer) { a.Incarnation, a.Parent, a.Fork = "j", "i", 20 }), true, Taken, "j", 20, 20, false},
		{"restored beyond the position", answer(func(a *Answer) { a.Incarnation, a.Parent, a.Fork = "j", "i", 35 }), true, Taken, "j", 30, 30, false},
		{"restored from another one", answer(func(a *Answer) { a.Incarnation, a.Parent, a.Fork = "j", "h", 35 }), true, Taken, "j", 0, 0, false},
	} {
		c, pos, heard, setBack := known.Take(30, tt.a, tt.awaited)
		if heard != tt.heard || c.Incarnation != tt.inc || c.At != tt.at || pos != tt.pos || setBack != tt.setBack {
			t.Errorf("%s: heard %d, %s at %d, position %d, set back %v", tt.name, heard, c.Incarnation, c.At, pos, setBack)
		}
		want := known
		if tt.heard == Taken {
			want.Set, want.Number = tt.a.Set, tt.a.Number
		}
		if c.Set.Version != want.Set.Version || c.Number != want.Number || c.Set.Edges[0].Topic != want.Set.Edges[0].Topic {
			t.Errorf("%s: knows %+v, number %d", tt.name, c.Set, c.Number)
		}
		if kept := c.Attempts.Count > 0; kept != (tt.inc == "i") {
			t.Errorf("%s: attempts %+v", tt.name, c.Attempts)
		}
	}
}

func TestSet(t *testing.T) {
	s := Set{Edges: []Edge{topic(t, "bid", 10, 3, `{"odd":true}`), topic(t, "won", 20, 5, "{}")}}
	if s.Since("bid") != 3 || s.Since("won") != 5 || s.Since("closed") != 0 {
		t.Error("Since")
	}
	if got := s.Topics(); len(got) != 2 || got[0] != "bid" || got[1] != "won" {
		t.Errorf("Topics: %v", got)
	}
	for i := range s.Edges {
		s.Edges[i].Filter = value.Filter{} // as it comes out of JSON
	}
	if err := s.Unpack(); err != nil || !s.Edges[0].Filter.Equal(filter(t, `{"odd":true}`)) || !s.Edges[1].Filter.Empty() {
		t.Errorf("Unpack: %v, %+v", err, s.Edges)
	}
	s.Edges[0].FilterJSON = []byte("7")
	if s.Unpack() == nil {
		t.Error("a filter that is none was taken")
	}
}
