package faults

import (
	"fmt"
	"testing"
	"time"
)

// TestLinks makes the way between each service and the message server slow, lets nothing pass for some seconds, and
// ends its connections in the middle of messages, under load.
// spec: DLV-11, OBJ-6, OPS-1
func TestLinks(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	names := []string{"host", "router", "gateway"}
	for _, name := range names {
		c.links[name] = newLink(t, c.nats)
	}
	c.begin()
	l := newLedger(t, c.client(), c.listen)
	l.follow("k")
	w := newWatcher(t, c.listen)
	stall, cuts, rounds := 2500*time.Millisecond, 4, 1
	if *long {
		stall, cuts, rounds = 15*time.Second, 10, 2
	}
	for round := range rounds {
		for _, name := range names {
			link := c.links[name]
			stop := l.load()
			l.more(30)

			link.delay.Store(int64(20 * time.Millisecond))
			l.more(30)
			link.delay.Store(0)

			end := link.stall()
			<-time.After(stall)
			end()
			l.more(30)

			before := link.cut.Load()
			n := cuts
			if name == "router" && !*long {
				n = 1 // each needs follows, which its lost answers hold up
			}
			for i := range n {
				link.breaks.Store(1)
				has := func() int { return int(link.cut.Load() - before) }
				until(t, 120*time.Second, "a message of "+name+" is cut", func() string {
					if name == "router" && has() <= i { // it has work only when somebody follows
						l.follow(fmt.Sprintf("cut%d-%d", round, i))
					}
					if has() <= i {
						return fmt.Sprint(has())
					}
					return ""
				})
			}
			link.breaks.Store(0)
			link.drop()
			l.more(30)
			l.follow(fmt.Sprintf("%s-%d", name, round))
			stop()
			l.check("the link of "+name, 150*time.Second)
			w.check(l, name)
		}
	}
	c.stop("gateway", "router", "host")
}
