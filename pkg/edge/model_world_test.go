package edge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"weir/pkg/objectid"
)

// world is one run of the model, decided by its seed: its objects and gateways, what is on the way between them, and
// what the checker found. It has one thread and its own time.
type world struct {
	rnd        *rand.Rand
	rules      *rules
	calm       bool   // no faults
	healing    bool   // no more faults
	noise      int    // how many per cent of messages are lost, and come twice
	mild       bool   // little goes wrong, so that events come by streams
	slow       string // messages of this kind often come very late
	stuck      string // messages of this kind do not come for now
	window     int    // how many of the oldest messages may come next
	now        int64  // milliseconds
	numbers    uint64
	topics     []string
	poisoned   int  // one event in so many fails for a while
	big        bool // some events are so large that answers are cut
	wire       bool // requests and answers travel as JSON
	remembers  bool // headers name last events that are not kept any more, too
	later      bool // relays put the newest durable edge number on every event
	eager      bool // gateways do not wait for an answer before they ask again
	publishers []*publisher
	followers  []*follower
	gateways   []*gateway
	js         *jetstream
	net, late  []packet
	backups    map[int][]*pubState
	ended      map[string]*pubState // ghost: by incarnation, the file that a restore or destroy ended
	poison     map[poisoned]*poison
	attempts   []attempt    // ghost: those that failed, or were counted before the handler ran and may be lost with a crash
	followed   map[line]int // ghost: how many attempts there were before a follow that should have cleared them
	violation  string
	trace      []string
	tracing    bool
	stats      map[string]int
}

// packet is a message on its way.
type packet struct {
	label   string
	deliver func()
}

// line is a publisher's topic at a follower.
type line struct {
	pub             int
	follower, topic string
}

func pick[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func newWorld(seed uint64, r *rules, calm bool) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), rules: r, calm: calm, numbers: 100, ended: map[string]*pubState{},
		backups: map[int][]*pubState{}, poison: map[poisoned]*poison{}, followed: map[line]int{}, stats: map[string]int{}}
	w.js = &jetstream{w: w}
	w.poisoned = pick(w.rnd, []int{60, 15, 4})
	w.mild = !calm && w.rnd.IntN(2) == 0
	w.noise = pick(w.rnd, []int{0, 0, 3, 15})
	if w.mild {
		w.noise, w.poisoned = 0, 1000
		w.slow = pick(w.rnd, []string{"answer", "answer", "publish", "consumer", "delivery", "receipt", "end", "follow", "drop"})
		if w.slow == "drop" {
			w.poisoned = 4
		}
	}
	w.window = pick(w.rnd, []int{1, 3, 10, 1000})
	w.topics = []string{"bid", "won", "closed"}[:1+w.rnd.IntN(3)]
	w.remembers, w.later, w.eager = w.rnd.IntN(2) == 0, w.rnd.IntN(2) == 0, w.rnd.IntN(3) == 0
	w.big, w.wire = w.rnd.IntN(40) == 0, w.rnd.IntN(8) == 0
	for i := range 1 + w.rnd.IntN(2) {
		id := objectid.ID{Class: "Auction", Name: fmt.Sprintf("lot-%d", i)}
		p := &publisher{w: w, index: i, id: id, file: newFile(w.newPublisher(id))}
		p.open()
		w.publishers = append(w.publishers, p)
	}
	for _, name := range []string{"ada", "bob", "cy"}[:1+w.rnd.IntN(3)] {
		f := &follower{w: w, id: "Account/" + name, file: newFile(w.newFollower()), strayed: map[int]bool{}}
		f.open(false)
		w.followers = append(w.followers, f)
	}
	for range w.rnd.IntN(3) {
		g := &gateway{w: w}
		g.restart()
		w.gateways = append(w.gateways, g)
	}
	return w
}

// number gives a number of its own, name a name of its own; names sort by age.
func (w *world) number() uint64          { w.numbers++; return w.numbers }
func (w *world) name(kind string) string { return fmt.Sprintf("%s%06d", kind, w.number()) }

func (w *world) index(id objectid.ID) int {
	return slices.IndexFunc(w.publishers, func(p *publisher) bool { return p.id == id })
}

func (w *world) follower(id string) *follower {
	return w.followers[slices.IndexFunc(w.followers, func(f *follower) bool { return f.id == id })]
}

// pad makes an answer of three events too large.
var pad = strings.Repeat("x", AnswerBytes/3)

// event makes up what to publish.
func (w *world) event() (topic string, n int, data []byte) {
	n = int(w.number())
	data = fmt.Appendf(nil, `{"n":%d,"odd":%v}`, n, n%2 == 1)
	if w.big && w.rnd.IntN(2) == 0 {
		data = fmt.Appendf(nil, `{"n":%d,"odd":%v,"pad":"%s"}`, n, n%2 == 1, pad)
	}
	return pick(w.rnd, w.topics), n, data
}

func (w *world) note(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
		w.note("VIOLATION %s", w.violation)
	}
}

// fault says yes so many times in a hundred, in worlds that have faults.
func (w *world) fault(percent int) bool {
	return !w.calm && !w.healing && (w.noise > 0 || w.mild) && w.rnd.IntN(100) < percent
}

// send puts a message on the way: it may be lost, come twice, overtake others, or come very late.
func (w *world) send(label string, deliver func()) {
	for n := 1; n > 0; n-- {
		switch {
		case w.fault(w.noise):
		case w.fault(w.noise), label == w.slow && w.fault(40):
			w.late = append(w.late, packet{label, deliver})
		default:
			w.net = append(w.net, packet{label, deliver})
		}
		if w.fault(w.noise) {
			n++
		}
	}
}

// arrive lets one message arrive.
func (w *world) arrive() bool {
	if len(w.net) == 0 {
		return false
	}
	i := 0
	if !w.calm && !w.healing {
		i = w.rnd.IntN(min(w.window, len(w.net)))
	}
	for w.stuck != "" && w.net[i].label == w.stuck {
		if i++; i == len(w.net) {
			return false
		}
	}
	p := w.net[i]
	w.net = slices.Delete(w.net, i, i+1)
	w.note("arrives: %s", p.label)
	p.deliver()
	return true
}

// core is a message of core NATS: it reaches every gateway.
func (w *world) core(pub int, e Event) {
	for _, g := range w.gateways {
		w.send("core", func() { g.hear(pub, e) })
	}
}

// answered brings an answer to its peer. One for a gateway's past start finds nobody.
func (w *world) answered(peer string, a Answer) {
	if IsFollower(peer) {
		w.follower(peer).answered(a)
		return
	}
	for _, g := range w.gateways {
		if g.id == peer {
			g.answered(a)
		}
	}
}

// post and carry take a request and an answer over the wire.
func (w *world) post(q Request) (out Request) {
	if !w.wire {
		return q
	}
	w.over(q, &out)
	return out
}

func (w *world) carry(a Answer) (out Answer) {
	if !w.wire {
		return a
	}
	w.over(a, &out)
	if err := out.Set.Unpack(); err != nil {
		w.fail("an answer's set: %v", err)
	}
	return out
}

func (w *world) over(in, out any) {
	data, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		w.fail("%T: %v", in, err)
	}
}

// plain is an answer as a trace shows it.
func plain(a Answer) string {
	s := fmt.Sprintf("answer %d of %s: have %d head %d number %d applied %d base %d more %v version %d:", a.ID, a.Incarnation, a.Have, a.Head,
		a.Number, a.Applied, a.Base, a.More, a.Set.Version)
	for _, e := range a.Set.Edges {
		s += fmt.Sprintf(" %s%s>%d/%d%s", e.Conn, e.Topic, e.Start, e.Since, e.FilterJSON)
	}
	for _, e := range a.Rows {
		s += fmt.Sprintf(" row %d", e.Seq)
	}
	return s
}
