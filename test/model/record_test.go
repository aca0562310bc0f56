package model

import (
	"fmt"
	"math"
	"slices"
)

// event is one write of a source, and the event that tells of it.
type event struct {
	N     int
	Topic string
}

// filter is nil for none, or the wanted value of "odd".
type filter *bool

func takes(f filter, n int) bool { return f == nil || *f == (n%2 == 1) }

// life is an edge from its follow to its end. A follow again may change its filter: what was published before and not
// yet delivered is then judged by either.
type life struct {
	from, to int // numbers after from, through to
	stages   []stage
}

type stage struct {
	from   int
	filter filter
}

// must and may say of an event in the life whether it has to arrive, and whether it can.
func (l *life) must(n int) bool { return l.all(n, true) }
func (l *life) may(n int) bool  { return l.all(n, false) }

func (l *life) all(n int, every bool) bool {
	if n <= l.from || n > l.to {
		return false
	}
	for i, s := range l.stages {
		if i+1 < len(l.stages) && l.stages[i+1].from < n {
			continue // over before the event
		}
		if takes(s.filter, n) != every {
			return !every
		}
	}
	return every
}

// key names an edge of a sink.
type key struct{ source, topic string }

// record is what must be true of one sink.
type record struct {
	name  string
	lives map[key][]*life
}

func (r *record) open(k key) *life {
	if all := r.lives[k]; len(all) > 0 && all[len(all)-1].to == math.MaxInt {
		return all[len(all)-1]
	}
	return nil
}

// follows notes a follow that was answered when the source's last number was n.
func (r *record) follows(k key, n int, f filter) {
	l := r.open(k)
	if l == nil {
		l = &life{from: n, to: math.MaxInt}
		r.lives[k] = append(r.lives[k], l)
	}
	l.stages = append(l.stages, stage{n, f})
}

func (r *record) unfollows(k key, n int) {
	if l := r.open(k); l != nil {
		l.to = n
	}
}

// check compares what the sink has of a source with the source's log. Empty: all is as it must be; final: it says of
// the last lives too that everything has come.
func (r *record) check(source string, log, seen []event, final bool) string {
	at := 0
	for i, e := range seen {
		j := slices.Index(log[at:], e)
		if j < 0 {
			return fmt.Sprintf("%s has %v of %s at %d: not in the log behind %v", r.name, e, source, i, seen[max(0, i-1):i])
		}
		at += j + 1
		if !slices.ContainsFunc(r.lives[key{source, e.Topic}], func(l *life) bool { return l.may(e.N) }) {
			return fmt.Sprintf("%s has %v of %s, which it did not follow", r.name, e, source)
		}
	}
	for k, lives := range r.lives {
		if k.source != source {
			continue
		}
		for _, l := range lives {
			missing := -1
			for _, e := range log {
				if e.Topic != k.topic || !l.must(e.N) {
					continue
				}
				has := slices.Contains(seen, e)
				if !has && missing < 0 {
					missing = e.N
				}
				if has && missing >= 0 {
					return fmt.Sprintf("%s lacks %d of %s:%s, and has %d", r.name, missing, source, k.topic, e.N)
				}
			}
			if missing >= 0 && l.to == math.MaxInt && final {
				return fmt.Sprintf("%s does not get %d of %s:%s (life from %d)", r.name, missing, source, k.topic, l.from)
			}
		}
	}
	return ""
}

// device is a socket and what came over it.
type device struct {
	id    string
	edges map[key]stage
	got   []got
	open  bool // its follows stand
	over  bool // no longer connected
}

type got struct {
	Source, Topic string
	N             int
}

// check: in order for each source, none twice, nothing that it does not follow.
func (d *device) check(logs map[string][]event) string {
	at := map[string]int{}
	for _, g := range d.got {
		j := slices.Index(logs[g.Source][at[g.Source]:], event{g.N, g.Topic})
		if j < 0 {
			return fmt.Sprintf("device %s has %v out of order, twice, or not in the log", d.id, g)
		}
		at[g.Source] += j + 1
		if s, ok := d.edges[key{g.Source, g.Topic}]; !ok || g.N <= s.from || !takes(s.filter, g.N) {
			return fmt.Sprintf("device %s has %v, which it does not follow", d.id, g)
		}
	}
	return ""
}
