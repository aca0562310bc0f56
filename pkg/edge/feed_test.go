package edge

import "testing"

// spec: CONN-6
func TestHear(t *testing.T) {
	known := Feed{Incarnation: "i", Number: 2, Version: 5, High: 30}
	for _, tt := range []struct {
		name string
		e    Event
		want Verdict
		high uint64
	}{
		{"the next one", Event{Incarnation: "i", Seq: 31, Number: 2}, Apply, 31},
		{"one after some that were lost", Event{Incarnation: "i", Seq: 40, Number: 1}, Apply, 40},
		{"given already", Event{Incarnation: "i", Seq: 30, Number: 2}, Skip, 30},
		{"a higher edge number", Event{Incarnation: "i", Seq: 31, Number: 3}, Hold, 30},
		{"a higher edge number, though given", Event{Incarnation: "i", Seq: 30, Number: 3}, Hold, 30},
		{"another incarnation", Event{Incarnation: "j", Seq: 31}, Hold, 30},
	} {
		f := known
		if got := f.Hear(tt.e); got != tt.want || f.High != tt.high {
			t.Errorf("%s: %d, high %d", tt.name, got, f.High)
		}
	}
	f := Feed{}
	if f.Hear(Event{Incarnation: "i", Seq: 1}) != Hold {
		t.Error("an event before the first answer is not held")
	}
}

func TestFeedTake(t *testing.T) {
	known := Feed{Incarnation: "i", Number: 2, Version: 5, High: 30}
	for _, tt := range []struct {
		name    string
		a       Answer
		awaited bool
		heard   Heard
		want    Feed
	}{
		{"newer", Answer{Incarnation: "i", Number: 3, Set: Set{Version: 6}}, true, Taken, Feed{"i", 3, 6, 30}},
		{"newer and late", Answer{Incarnation: "i", Number: 3, Set: Set{Version: 6}}, false, Taken, Feed{"i", 3, 6, 30}},
		{"the same", Answer{Incarnation: "i", Number: 2, Set: Set{Version: 5}}, true, Taken, known},
		{"an older set", Answer{Incarnation: "i", Number: 2, Set: Set{Version: 4}}, true, Stale, known},
		{"an older number", Answer{Incarnation: "i", Number: 1, Set: Set{Version: 6}}, true, Stale, known},
		{"changes to the known set", Answer{Incarnation: "i", Number: 2, Base: 5, Set: Set{Version: 6}}, true, Taken, Feed{"i", 2, 6, 30}},
		{"changes to another set", Answer{Incarnation: "i", Number: 2, Base: 4, Set: Set{Version: 6}}, true, Stale, known},
		{"another incarnation", Answer{Incarnation: "j", Number: 0, Set: Set{Version: 1}}, true, Taken, Feed{"j", 0, 1, 0}},
		{"another incarnation, late", Answer{Incarnation: "j", Number: 9, Set: Set{Version: 9}}, false, Again, known},
		{"changes in another incarnation", Answer{Incarnation: "j", Base: 5, Set: Set{Version: 6}}, true, Stale, known},
	} {
		f := known
		if heard := f.Take(tt.a, tt.awaited); heard != tt.heard || f != tt.want {
			t.Errorf("%s: heard %d, %+v", tt.name, heard, f)
		}
	}
	f := Feed{}
	if f.Take(Answer{Incarnation: "i", Set: Set{Version: 1}}, true) != Taken || f != (Feed{"i", 0, 1, 0}) {
		t.Errorf("the first answer: %+v", f)
	}
}
