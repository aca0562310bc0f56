package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir/pkg/bus"
)

// house is an example in use: what is done to it under load, and what must be true afterwards.
type house interface {
	open(t *testing.T, gateway string, c *bus.Client)
	load(ctx context.Context)
	// check waits until everything is as it must be.
	check(t *testing.T)
	// heard is how much has come to pages as events.
	heard() int
	figures() string
}

// TestExamples runs the three examples on three services and a NATS server, each a process of its own, and kills each
// service and NATS in turn under load, NATS also with the loss of all that it stored. Pages come back and read what
// they missed; objects miss nothing and get nothing twice.
// spec: OPS-1, CONN-6, DLV-1, DLV-11
func TestExamples(t *testing.T) {
	for name, h := range map[string]house{"auction": &auctionHouse{}, "chat": &chatHouse{}, "guild": &guildHouse{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, filepath.Join("..", "..", "examples", name))
			for _, p := range []string{"nats", "host", "router", "gateway"} {
				c.start(p)
			}
			c.ready("host", "router", "gateway")
			h.open(t, c.listen, c.client())
			for _, step := range []struct {
				what string
				do   func()
			}{
				{"host", func() { c.kill("host"); c.start("host") }},
				{"router", func() { c.kill("router"); c.start("router") }},
				{"gateway", func() { c.kill("gateway"); c.start("gateway") }},
				{"NATS", func() { c.kill("nats"); c.start("nats") }},
				{"NATS and its store", c.emptyNATS},
			} {
				ctx, cancel := context.WithCancel(context.Background())
				var loading sync.WaitGroup
				loading.Go(func() { h.load(ctx) })
				<-time.After(300 * time.Millisecond)
				step.do()
				c.ready("host", "router", "gateway")
				<-time.After(300 * time.Millisecond)
				cancel()
				loading.Wait()
				began := time.Now()
				h.check(t)
				t.Logf("%s killed: all is well %v after the load's end; %s", step.what, time.Since(began).Round(time.Millisecond), h.figures())
			}
			if h.heard() == 0 {
				t.Error("nothing came to a page as an event")
			}
		})
	}
}

// eventually asks until problem is empty.
func eventually(t *testing.T, problem func() string) {
	t.Helper()
	deadline := time.Now().Add(100 * time.Second)
	for {
		p := problem()
		if p == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(p)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// get calls a method and reads its first result.
func get[T any](c *bus.Client, object, method string, args ...any) (v T, problem string) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	result, err := call(ctx, c, object, method, args...)
	if err != nil {
		return v, err.Error()
	}
	if err := json.Unmarshal(result, &v); err != nil {
		return v, err.Error()
	}
	return v, ""
}

func decode[T any](data json.RawMessage) (v T) {
	_ = json.Unmarshal(data, &v)
	return v
}

// guildHouse: members watch one tag of the board, and each has a device.
type guildHouse struct {
	c       *bus.Client
	poster  *device
	members []*device
	posted  map[int]string  // texts of quests on the board, by number
	said    map[string]bool // texts of those that were answered
	k       int

	mu   sync.Mutex
	live map[string]map[int]int // by member and note: how often its device was told
}

type guildPost struct {
	N, ID    int
	Tag, Who string
	Text     string
}

func (g *guildHouse) open(t *testing.T, gateway string, c *bus.Client) {
	g.c, g.posted, g.said, g.live = c, map[int]string{}, map[string]bool{}, map[string]map[int]int{}
	g.poster = enter(t, gateway, "eve", nil, nil)
	for i := range 4 {
		d := enter(t, gateway, fmt.Sprintf("m%d", i), nil, g.hear)
		d.must("watch", map[string]any{"tag": "quest"})
		g.members = append(g.members, d)
	}
}

func (g *guildHouse) hear(d *device, f note) {
	event := decode[struct {
		Kind string
		Note guildPost
	}](f.Data)
	if f.Type != "event" || event.Kind != "note" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live[d.name] == nil {
		g.live[d.name] = map[int]int{}
	}
	g.live[d.name][event.Note.ID]++
}

// load posts at most 28 quests: what a check sees of the board.
func (g *guildHouse) load(ctx context.Context) {
	for i := 0; i < 56 && ctx.Err() == nil; i++ {
		g.k++
		tag := []string{"quest", "trade"}[i%2]
		if _, err := g.poster.ask("post", map[string]any{"tag": tag, "text": strconv.Itoa(g.k)}); err == nil && tag == "quest" {
			g.said[strconv.Itoa(g.k)] = true
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (g *guildHouse) check(t *testing.T) {
	t.Helper()
	for _, d := range g.members {
		eventually(t, func() string {
			board, problem := get[[]guildPost](g.c, "Board/main", "latest", "quest")
			if problem != "" {
				return problem
			}
			in, problem := get[struct{ Notes []guildPost }](g.c, "Account/"+d.name, "inbox")
			if problem != "" {
				return problem
			}
			for _, p := range board {
				g.posted[p.N] = p.Text
			}
			if len(in.Notes) == 0 || in.Notes[0].ID != len(g.posted) {
				return fmt.Sprintf("%s has %d notes and not %d", d.name, len(in.Notes), len(g.posted))
			}
			for i, p := range board {
				if i < len(in.Notes) && (in.Notes[i].Text != p.Text || in.Notes[i].ID != len(g.posted)-i) {
					return fmt.Sprintf("%s has %+v where the board has %+v", d.name, in.Notes[i], p)
				}
			}
			return ""
		})
	}
	texts := map[string]bool{}
	for _, text := range g.posted {
		if texts[text] {
			t.Errorf("the quest %s was posted twice", text)
		}
		texts[text] = true
	}
	for text := range g.said {
		if !texts[text] {
			t.Errorf("the quest %s was answered and is not on the board", text)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, notes := range g.live {
		for id, n := range notes {
			if n > 1 {
				t.Errorf("the device of %s was told of note %d %d times", name, id, n)
			}
		}
	}
}

func (g *guildHouse) heard() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return heard(g.live)
}

func heard(live map[string]map[int]int) (n int) {
	for _, events := range live {
		n += len(events)
	}
	return n
}

func (g *guildHouse) figures() string {
	return fmt.Sprintf("%d quests in each of %d accounts, in order, once; %d of %d told to devices live", len(g.posted), len(g.members), g.heard(), len(g.posted)*len(g.members))
}

// chatHouse: people talk in one room, each in a page that asks for what it missed; others join.
type chatHouse struct {
	c      *bus.Client
	people []*device
	k      int
	joined []*device
	sure   map[string]bool // what was said and answered

	mu   sync.Mutex
	has  map[string]map[int]string // by person: the messages by number
	live map[string]map[int]int    // and how often each came as an event
}

type chatMessage struct {
	N         int
	Who, Text string
}

func (h *chatHouse) open(t *testing.T, gateway string, c *bus.Client) {
	h.c, h.has, h.live, h.sure = c, map[string]map[int]string{}, map[string]map[int]int{}, map[string]bool{}
	for i := range 10 {
		name := fmt.Sprintf("p%d", i)
		h.mu.Lock()
		h.has[name], h.live[name] = map[int]string{}, map[int]int{}
		h.mu.Unlock()
		if i > 3 {
			h.joined = append(h.joined, enter(t, gateway, name, nil, nil)) // join later, one at a time
			continue
		}
		d := enter(t, gateway, name, nil, nil)
		if i == 0 {
			d.must("open", map[string]any{"room": "hall"})
		}
		d.must("join", map[string]any{"room": "hall"})
		d.close()
		h.people = append(h.people, enter(t, gateway, name, h.back, h.hear))
	}
}

func (h *chatHouse) keep(d *device, messages ...chatMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		h.has[d.name][m.N] = m.Who + ": " + m.Text
	}
}

// last is the last number up to which the page has every message.
func (h *chatHouse) last(d *device) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for h.has[d.name][n+1] != "" {
		n++
	}
	return n
}

// back enters the room and reads until nothing more comes.
func (h *chatHouse) back(d *device) {
	data, err := d.ask("enter", map[string]any{"room": "hall", "n": h.last(d)})
	if err != nil {
		d.drop() // comes again
		return
	}
	h.keep(d, decode[struct{ Messages []chatMessage }](data).Messages...)
	h.catchUp(d)
}

func (h *chatHouse) catchUp(d *device) {
	for {
		data, err := d.ask("since", map[string]any{"room": "hall", "n": h.last(d)})
		messages := decode[[]chatMessage](data)
		if err != nil || len(messages) == 0 {
			return
		}
		h.keep(d, messages...)
	}
}

func (h *chatHouse) hear(d *device, f note) {
	if f.Type != "message" {
		return
	}
	m := decode[chatMessage](f.Message)
	gap := h.last(d) < m.N-1
	h.keep(d, m)
	h.mu.Lock()
	h.live[d.name][m.N]++
	h.mu.Unlock()
	if gap {
		go h.catchUp(d)
	}
}

// load says at most 45 things for each person: a room keeps a thousand, and a check reads them all.
func (h *chatHouse) load(ctx context.Context) {
	var wg sync.WaitGroup
	for _, d := range h.people {
		wg.Go(func() {
			for range 45 {
				if ctx.Err() != nil {
					return
				}
				h.mu.Lock()
				h.k++
				k := h.k
				h.mu.Unlock()
				if _, err := d.ask("say", map[string]any{"room": "hall", "text": strconv.Itoa(k)}); err == nil {
					h.mu.Lock()
					h.sure[d.name+": "+strconv.Itoa(k)] = true
					h.mu.Unlock()
				}
				<-time.After(20 * time.Millisecond)
			}
		})
	}
	if len(h.joined) > 0 { // in the middle of it
		<-time.After(250 * time.Millisecond)
		d := h.joined[0]
		h.joined = h.joined[1:]
		wg.Go(func() { d.must("join", map[string]any{"room": "hall"}) })
	}
	wg.Wait()
}

func (h *chatHouse) check(t *testing.T) {
	t.Helper()
	said := map[int]string{}
	read := func() string { // what the room has, in parts
		for {
			part, problem := get[[]chatMessage](h.c, "Room/hall", "since", "p0", len(said))
			if problem != "" || len(part) == 0 {
				return problem
			}
			for _, m := range part {
				said[m.N] = m.Who + ": " + m.Text
			}
		}
	}
	for _, d := range h.people {
		eventually(t, func() string {
			if problem := read(); problem != "" { // a call whose page was cut off may come to it even now
				return problem
			}
			if n := h.last(d); n != len(said) {
				h.catchUp(d) // a page asks when the next number shows that one was left out, or when it comes back
				return fmt.Sprintf("%s has the messages up to %d of %d", d.name, n, len(said))
			}
			return ""
		})
	}
	texts := map[string]bool{}
	for _, text := range said {
		if texts[text] {
			t.Errorf("%q was said twice", text)
		}
		texts[text] = true
	}
	for text := range h.sure {
		if !texts[text] {
			t.Errorf("%q was answered and is not in the room", text)
		}
	}
	for _, d := range h.people {
		h.mu.Lock()
		for n, text := range h.has[d.name] {
			if n <= len(said) && said[n] != text {
				t.Errorf("%s has %q as number %d, the room %q", d.name, text, n, said[n])
			}
			if h.live[d.name][n] > 1 {
				t.Errorf("%s was told of message %d %d times", d.name, n, h.live[d.name][n])
			}
		}
		h.mu.Unlock()
	}
	// The lobby follows the room: what it was told last is what is true now.
	eventually(t, func() string {
		rooms, problem := get[[]struct{ Members int }](h.c, "Lobby/main", "rooms")
		if problem == "" && (len(rooms) != 1 || rooms[0].Members != 10-len(h.joined)) {
			problem = fmt.Sprintf("the lobby says %+v, %d have joined", rooms, 10-len(h.joined))
		}
		return problem
	})
}

func (h *chatHouse) heard() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return heard(h.live)
}

func (h *chatHouse) figures() string {
	live := h.heard()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := 0
	for _, has := range h.has {
		all += len(has)
	}
	return fmt.Sprintf("%d messages in %d pages, %d of them came live and the rest was read", all, len(h.people), live)
}

// auctionHouse: bidders outbid each other on one lot, and are told by their accounts.
type auctionHouse struct {
	c       *bus.Client
	lot     string
	bidders []*device
	told    int
}

type auctionNote struct {
	ID, Amount     int
	Kind, Lot, Who string
}

type auctionLook struct {
	Facts struct {
		Step, Round, Next int
		Leader            string
	}
	History []struct {
		Bidder string
		Amount int
	}
}

func (h *auctionHouse) open(t *testing.T, gateway string, c *bus.Client) {
	h.c = c
	eventually(t, func() string {
		board, problem := get[struct {
			Lots []struct{ About struct{ ID string } }
		}](c, "Hall/main", "board")
		if problem == "" {
			h.lot = board.Lots[0].About.ID
		}
		return problem
	})
	for i := range 3 {
		d := enter(t, gateway, fmt.Sprintf("b%d", i), nil, nil)
		d.must("watch", map[string]any{"lot": h.lot})
		h.bidders = append(h.bidders, d)
	}
}

// load bids at most 45 times: what a check sees of a round.
func (h *auctionHouse) load(ctx context.Context) {
	for i := 0; i < 45 && ctx.Err() == nil; i++ {
		look, problem := get[auctionLook](h.c, "Auction/"+h.lot, "look")
		d := h.bidders[i%len(h.bidders)]
		if problem == "" && look.Facts.Leader == d.name {
			d = h.bidders[(i+1)%len(h.bidders)]
		}
		_, _ = d.ask("bid", map[string]any{"lot": h.lot, "amount": look.Facts.Next})
		<-time.After(10 * time.Millisecond)
	}
}

func (h *auctionHouse) check(t *testing.T) {
	t.Helper()
	for _, d := range h.bidders {
		eventually(t, func() string {
			look, problem := get[auctionLook](h.c, "Auction/"+h.lot, "look")
			if problem != "" {
				return problem
			}
			in, problem := get[struct{ Notes []auctionNote }](h.c, "Account/"+d.name, "inbox")
			if problem != "" {
				return problem
			}
			var want, got []string
			for i := 1; i < len(look.History); i++ { // the highest first
				if by := look.History[i-1]; look.History[i].Bidder == d.name {
					want = append(want, fmt.Sprintf("outbid by %s at %d", by.Bidder, by.Amount))
				}
			}
			for _, n := range in.Notes {
				if n.Kind == "outbid" && len(got) < len(want) {
					got = append(got, fmt.Sprintf("outbid by %s at %d", n.Who, n.Amount))
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Sprintf("%s was told\n%v and not\n%v", d.name, got, want)
			}
			if len(in.Notes) > 0 {
				h.told = max(h.told, in.Notes[0].ID)
			}
			return ""
		})
	}
	eventually(t, func() string {
		look, problem := get[auctionLook](h.c, "Auction/"+h.lot, "look")
		if problem != "" {
			return problem
		}
		board, problem := get[struct {
			Lots []struct{ Facts struct{ Step int } }
		}](h.c, "Hall/main", "board")
		if problem == "" && board.Lots[0].Facts.Step != look.Facts.Step {
			problem = fmt.Sprintf("the hall is at step %d of %d", board.Lots[0].Facts.Step, look.Facts.Step)
		}
		return problem
	})
}

func (h *auctionHouse) heard() int { return h.told }

func (h *auctionHouse) figures() string {
	return fmt.Sprintf("up to %d notes in each of %d accounts, one for each time they were outbid", h.told, len(h.bidders))
}

// emptyNATS kills NATS, takes its store away and starts it again.
func (c *cluster) emptyNATS() {
	c.t.Helper()
	c.kill("nats")
	if err := os.RemoveAll(filepath.Join(c.dir, "store")); err != nil {
		c.t.Fatal(err)
	}
	c.start("nats")
}
