package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"weir/pkg/value"
)

// kept gives the Rows of a log that keeps (trimmed, head], bid and won in turn, odd ones bids.
func kept(trimmed, head uint64, data func(seq uint64) []byte) Rows {
	return func(after uint64, yield func(Event) bool) error {
		for seq := max(after, trimmed) + 1; seq <= head; seq++ {
			e := Event{Publisher: lot, Seq: seq, Topic: "won", Data: data(seq)}
			if seq%2 == 1 {
				e.Topic = "bid"
			}
			if !yield(e) {
				return nil
			}
		}
		return nil
	}
}

func small(seq uint64) []byte { return fmt.Appendf(nil, `{"n":%d}`, seq) }

func seqs(a Answer) (s []uint64) {
	for _, e := range a.Rows {
		s = append(s, e.Seq)
	}
	return s
}

// spec: EDGE-5
func TestAnswer(t *testing.T) {
	w := &words{t: t, p: Publisher{ID: lot, Incarnation: "j", Parent: "i", Fork: 6, Head: 4}}
	w.do("follow ada@1 bid")
	w.p.Head = 10
	w.p.Received(Receipt{Peer: "Account/ada", Owner: "1", Incarnation: "j", Have: 5, Applied: 5})
	rows := kept(4, 10, small)
	for _, tt := range []struct {
		name    string
		q       Request
		have    uint64
		applied uint64
		version uint64
		want    []uint64
	}{
		{"from where it is", Request{Peer: "Account/ada", Owner: "1", Incarnation: "j", Have: 5}, 5, 5, 1, []uint64{7, 9}},
		{"from the head", Request{Peer: "Account/ada", Owner: "1", Incarnation: "j", Have: 10}, 10, 5, 1, nil},
		{"from nothing", Request{Peer: "Account/ada", Owner: "1"}, 0, 0, 1, []uint64{5, 7, 9}},
		{"from before the edge", Request{Peer: "Account/ada", Owner: "1", Incarnation: "j", Have: 1}, 1, 5, 1, []uint64{5, 7, 9}},
		{"of the parent, within it", Request{Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: 5}, 5, 0, 1, []uint64{7, 9}},
		{"of the parent, beyond it", Request{Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: 9}, 6, 0, 1, []uint64{7, 9}},
		{"of an unknown incarnation", Request{Peer: "Account/ada", Owner: "1", Incarnation: "h", Have: 9}, 0, 0, 1, []uint64{5, 7, 9}},
		{"another life has no edges", Request{Peer: "Account/ada", Owner: "2", Incarnation: "j", Have: 5}, 5, 0, 1, nil},
		{"nor has another follower", Request{Peer: "Account/bob", Owner: "1", Incarnation: "j", Have: 5}, 5, 0, 1, nil},
		{"a gateway gets no rows", Request{Peer: "gw", Incarnation: "j", Have: 5}, 5, 0, 1, nil},
	} {
		tt.q.Kind, tt.q.ID = Ask, 77
		a, err := w.p.Answer(tt.q, 0, nil, rows)
		if err != nil || !slices.Equal(seqs(a), tt.want) || a.Have != tt.have || a.Applied != tt.applied || a.Set.Version != tt.version {
			t.Errorf("%s: %v, rows %v, %+v", tt.name, err, seqs(a), a)
		}
		if a.ID != 77 || a.Incarnation != "j" || a.Head != 10 || a.Parent != "i" || a.Fork != 6 || a.More || a.Base != 0 || a.Set.Owner != tt.q.Owner {
			t.Errorf("%s: %+v", tt.name, a)
		}
	}
	broken := errors.New("the disk")
	if _, err := w.p.Answer(Request{Kind: Ask, Peer: "Account/ada", Owner: "1"}, 0, nil, func(uint64, func(Event) bool) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read: %v", err)
	}
}

// An answer that is too large is cut after a row, and the next question gets the rest.
func TestAnswerCut(t *testing.T) {
	w := &words{t: t, p: Publisher{ID: lot, Incarnation: "i"}}
	w.do("follow ada@1 bid")
	w.p.Head = 9
	for _, tt := range []struct {
		name string
		size int
		want [][]uint64
	}{
		{"two fit", AnswerBytes/2*3/4 - 400, [][]uint64{{1, 3}, {5, 7}, {9}}},
		{"none fits", AnswerBytes + 1, [][]uint64{{1}, {3}, {5}, {7}, {9}}},
		{"all fit", AnswerBytes/5*3/4 - 400, [][]uint64{{1, 3, 5, 7, 9}}},
	} {
		rows := kept(0, 9, func(uint64) []byte { return bytes.Repeat([]byte("1"), tt.size) })
		have := uint64(0)
		for i, want := range tt.want {
			a, err := w.p.Answer(Request{Kind: Ask, Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: have}, 0, nil, rows)
			if err != nil || !slices.Equal(seqs(a), want) || a.More != (i < len(tt.want)-1) || a.More && a.Head != want[len(want)-1] {
				t.Errorf("%s: %v, rows %v, head %d, more %v", tt.name, err, seqs(a), a.Head, a.More)
			}
			have = a.Head
		}
		if have != 9 {
			t.Errorf("%s: complete up to %d", tt.name, have)
		}
	}
}

// A gateway's set that is too large comes in parts, each asked for behind the last edge of the one before; when the set
// changes meanwhile it is told from the start.
func TestGatewaySetInParts(t *testing.T) {
	p := Publisher{ID: lot, Incarnation: "i"}
	const sockets = 20_000
	for i := range sockets {
		p.Follow(Request{Kind: Follow, Peer: "gw", Key: Key{Conn: fmt.Sprintf("conn-%06d", i), Topic: "bid"}, Identity: "Account/ada"}, value.Filter{})
	}
	got, parts, after, version := map[Key]bool{}, 0, Key{}, uint64(0)
	for {
		a, err := p.Answer(Request{Kind: Ask, Peer: "gw", Incarnation: "i", Version: version, Key: after}, 0, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (a.Base == 0) != (parts == 0) {
			t.Fatalf("part %d has base %d", parts, a.Base)
		}
		for _, e := range a.Set.Edges {
			if got[e.Key] {
				t.Fatalf("%v came twice", e.Key)
			}
			got[e.Key] = true
		}
		data, err := json.Marshal(a)
		if err != nil || len(data) > 1<<20 {
			t.Fatalf("a part of %d bytes: %v", len(data), err)
		}
		parts++
		version, after = a.Set.Version, a.Set.Edges[len(a.Set.Edges)-1].Key
		if !a.More {
			break
		}
	}
	if len(got) != sockets || parts < 3 {
		t.Errorf("%d of %d edges in %d parts", len(got), sockets, parts)
	}
	p.Remove(Request{Kind: Close, Peer: "gw", Key: Key{Conn: "conn-000000"}})
	if a, _ := p.Answer(Request{Kind: Ask, Peer: "gw", Incarnation: "i", Version: version, Key: Key{Conn: "conn-010000", Topic: "bid"}}, 0, nil, nil); a.Base != 0 || a.Set.Edges[0].Conn != "conn-000001" {
		t.Errorf("after a change: base %d, from %v on", a.Base, a.Set.Edges[0].Key)
	}
}

// A gateway is told only what its operations changed if it knows the rest: not if a hook took an edge meanwhile, or it
// knows another version. What went stands with a "-".
func TestAnswerToBatch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		batch   []string
		version uint64 // that the gateway knows
		kind    string // of the last operation
		base    uint64
		edges   []string
	}{
		{"a new socket", []string{"follow gw:c bid"}, 2, Follow, 2, []string{"c bid"}},
		{"two, and another filter", []string{"follow gw:c bid", "follow gw:a bid {\"odd\":true}"}, 2, Follow, 2, []string{"c bid", "a bid"}},
		{"nothing new", []string{"follow gw:b bid"}, 2, Follow, 2, nil},
		{"refused", nil, 2, Follow, 2, nil},
		{"another version is known", []string{"follow gw:c bid"}, 1, Follow, 0, []string{"a bid", "b bid", "c bid"}},
		{"nothing is known", []string{"follow gw:c bid"}, 0, Follow, 0, []string{"a bid", "b bid", "c bid"}},
		{"a question", nil, 2, Ask, 0, []string{"a bid", "b bid"}},
		{"an unfollow", []string{"unfollow gw:a bid"}, 2, Unfollow, 2, []string{"-a bid"}},
		{"an unfollow before a follow", []string{"unfollow gw:a bid", "follow gw:c bid"}, 2, Follow, 2, []string{"c bid", "-a bid"}},
		{"gone and come again", []string{"unfollow gw:a bid", "follow gw:a bid"}, 2, Follow, 2, []string{"a bid"}},
		{"come and gone again", []string{"follow gw:c bid", "close gw:c"}, 2, Close, 2, []string{"-c bid"}},
		{"a closed socket", []string{"close gw:b"}, 2, Close, 2, []string{"-b bid"}},
		{"a closed socket of another version", []string{"close gw:b"}, 1, Close, 0, []string{"a bid"}},
		{"all gone", []string{"close gw:a", "close gw:b"}, 2, Follow, 0, nil},
		{"all gone, and one new", []string{"close gw:a", "close gw:b", "follow gw:c bid"}, 2, Follow, 0, []string{"c bid"}},
		{"a hook that drops followers", []string{"identity Account/bob", "follow gw:c bid"}, 2, Follow, 0, []string{"a bid", "c bid"}},
	} {
		w := &words{t: t, p: Publisher{ID: lot, Incarnation: "i"}}
		w.do("follow gw:a bid")
		w.do("follow gw:b bid")
		before := w.p.Find("gw", "").Version
		var changed []Change
		for _, op := range tt.batch {
			if w.do(op); !strings.HasPrefix(op, "identity") { // that is the hook's: the host of the batch does not see it
				changed = append(changed, w.changed...)
			}
		}
		a, err := w.p.Answer(Request{Kind: tt.kind, Peer: "gw", Incarnation: "i", Version: tt.version}, before, changed, nil)
		got := edges(a.Set)
		for _, k := range a.Removed {
			got = append(got, "-"+k.Conn+" "+k.Topic)
		}
		if err != nil || a.Base != tt.base || !slices.Equal(got, tt.edges) {
			t.Errorf("%s: %v, base %d, %v", tt.name, err, a.Base, got)
		}
		if peer := w.p.Find("gw", ""); peer != nil && a.Set.Version != peer.Version {
			t.Errorf("%s: version %d of %d", tt.name, a.Set.Version, peer.Version)
		}
	}
}

func edges(s Set) (list []string) {
	for _, e := range s.Edges {
		list = append(list, e.Conn+" "+e.Topic)
	}
	return list
}

func TestReceived(t *testing.T) {
	w := &words{t: t, p: Publisher{ID: lot, Incarnation: "i", Head: 3}}
	w.do("follow ada@1 bid")
	w.p.Head = 10
	for _, tt := range []struct {
		name               string
		r                  Receipt
		moved              bool
		confirmed, applied uint64
	}{
		{"of another life", Receipt{Peer: "Account/ada", Owner: "2", Incarnation: "i", Have: 9, Applied: 9}, false, 3, 0},
		{"of another incarnation", Receipt{Peer: "Account/ada", Owner: "1", Incarnation: "h", Have: 9, Applied: 9}, false, 3, 0},
		{"of another follower", Receipt{Peer: "Account/bob", Owner: "1", Incarnation: "i", Have: 9, Applied: 9}, false, 3, 0},
		{"further", Receipt{Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: 7, Applied: 5}, true, 7, 5},
		{"again", Receipt{Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: 7, Applied: 5}, false, 7, 5},
		{"late", Receipt{Peer: "Account/ada", Owner: "1", Incarnation: "i", Have: 5, Applied: 3}, false, 7, 5},
	} {
		moved := w.p.Received(tt.r)
		if p := w.p.Peers["Account/ada"]; moved != tt.moved || p.Confirmed != tt.confirmed || p.Applied != tt.applied {
			t.Errorf("%s: moved %v, %+v", tt.name, moved, p)
		}
	}
}

// spec: LOG-8
func TestTrimTo(t *testing.T) {
	for _, tt := range []struct {
		name      string
		follow    []string
		confirmed map[string]uint64
		relayed   uint64
		want      uint64
	}{
		{"nobody follows: what was relayed", nil, nil, 6, 6},
		{"one follower", []string{"follow ada@1 bid"}, map[string]uint64{"Account/ada": 7}, 6, 7},
		{"the slower of two", []string{"follow ada@1 bid", "follow bob@1 won"}, map[string]uint64{"Account/ada": 7, "Account/bob": 5}, 9, 5},
		{"sockets: what was relayed", []string{"follow ada@1 bid", "follow gw:a bid"}, map[string]uint64{"Account/ada": 7}, 6, 6},
		{"sockets alone", []string{"follow gw:a bid"}, nil, 8, 8},
		{"never back", []string{"follow ada@1 bid"}, map[string]uint64{"Account/ada": 2}, 0, 4},
	} {
		w := &words{t: t, p: Publisher{ID: lot, Incarnation: "i", Trimmed: 4}}
		for _, op := range tt.follow {
			w.do(op)
		}
		w.p.Head = 10
		for name, n := range tt.confirmed {
			w.p.Peers[name].Confirmed = n
		}
		if got := w.p.TrimTo(tt.relayed); got != tt.want {
			t.Errorf("%s: %d, not %d", tt.name, got, tt.want)
		}
	}
}
