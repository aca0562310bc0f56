package relay

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/crashpoint"
	"weir/pkg/edge"
	"weir/pkg/wire"
)

// request bounds one question to a router.
const request = 5 * time.Second

// inFlight bounds the publishes that wait for their acknowledgement.
const inFlight = 256

// look finds out where the stream stands, or makes it.
func (r *Relay) look(s Status) time.Duration {
	if s.Token != "" {
		var reply wire.StreamReply
		if err := r.ask(wire.RouteStream, wire.StreamRequest{Publisher: r.c.ID.String(), Token: s.Token}, &reply); err != nil {
			return r.later("the stream cannot be asked for", err)
		}
		if !reply.Missing && reply.Last >= s.Trimmed && reply.Last <= s.Head {
			r.streaming, r.everKnown = true, true
			r.next = reply.Last + 1
			r.setRelayed(reply.Last)
			return 0
		}
	}
	return r.renew(s)
}

// renew makes a stream under a new token, durable before it is asked for. After the first in a row it takes its time:
// 1 s doubling to 60 s.
func (r *Relay) renew(s Status) time.Duration {
	if r.everKnown {
		if left := time.Until(r.rebuilt.Add(r.wait)); left > 0 {
			return left
		}
	}
	token, err := r.c.Source.NewToken(r.ctx)
	if err != nil {
		return r.later("the next stream cannot be named", err)
	}
	crashpoint.Reached(crashpoint.StreamNamed)
	if s.Token != "" {
		r.done.Go(func() { r.delete(s.Token) }) // Close waits for it
	}
	r.mu.Lock()
	r.status.Token = token
	trimmed := r.status.Trimmed
	r.mu.Unlock()
	var reply wire.StreamReply
	if err := r.ask(wire.RouteStream, wire.StreamRequest{Publisher: r.c.ID.String(), Token: token, First: trimmed + 1, Make: true}, &reply); err != nil {
		return r.later("the stream cannot be made", err)
	}
	crashpoint.Reached(crashpoint.StreamMade)
	if r.everKnown {
		if r.wait = min(max(time.Second, 2*r.wait), time.Minute); time.Since(r.rebuilt) > 10*time.Minute {
			r.wait = time.Second
		}
		r.rebuilt = time.Now()
		if r.c.Rebuilt != nil {
			r.c.Rebuilt()
		}
		r.c.Log.Info("a lost stream was made anew", "object", r.c.ID.String(), "from", trimmed+1)
	}
	r.streaming, r.everKnown = true, true
	r.next = trimmed + 1
	r.made = map[string]uint64{}
	return 0
}

func (r *Relay) later(what string, err error) time.Duration {
	if r.failures == 3 {
		r.c.Log.Warn("relay: "+what+"; it is tried again", "object", r.c.ID.String(), "error", err)
	}
	return r.retryIn()
}

func (r *Relay) ask(op string, req, reply any) error {
	ctx, cancel := context.WithTimeout(r.ctx, request)
	defer cancel()
	if err := r.c.Client.Route(ctx, op, req, reply); err != nil {
		return err
	}
	switch reply := reply.(type) {
	case *wire.StreamReply:
		if reply.Error != nil {
			return reply.Error
		}
	case *wire.ConsumerReply:
		if reply.Error != nil {
			return reply.Error
		}
	}
	return nil
}

// delete asks for the end of a stream. It may fail: its name is never used again.
func (r *Relay) delete(token string) {
	ctx, cancel := context.WithTimeout(context.Background(), request)
	defer cancel()
	var reply wire.StreamReply
	if err := r.c.Client.Route(ctx, wire.RouteDelete, wire.StreamRequest{Publisher: r.c.ID.String(), Token: token}, &reply); err != nil {
		r.c.Log.Debug("a stream was not deleted", "object", r.c.ID.String(), "error", err)
	}
}

// consumers makes those that are missing: one for each follower's edge-set version, from what it confirmed on.
func (r *Relay) consumers(s Status) time.Duration {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		lost   bool
		slots  = make(chan struct{}, 8)
	)
	var missing []Follower
	for _, f := range s.Followers {
		if r.made[f.Name] != f.Version && f.Confirmed < s.Head {
			missing = append(missing, f)
		}
	}
	for _, f := range missing {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var reply wire.ConsumerReply
			crashpoint.Reached(crashpoint.EdgeWritten)
			err := r.ask(wire.RouteConsumer, wire.ConsumerRequest{Publisher: r.c.ID.String(), Token: s.Token, Follower: f.Name,
				Version: f.Version, Topics: f.Topics, Start: f.Confirmed + 1}, &reply)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed = err
			case reply.Missing:
				lost = true
			default:
				r.made[f.Name] = f.Version
			}
		})
	}
	wg.Wait()
	r.forget(s)
	if lost {
		r.streaming = false
		return time.Millisecond
	}
	if failed != nil {
		return r.later("a consumer cannot be made", failed)
	}
	return 0
}

// forget deletes the consumers of edge sets that are gone: they would go on delivering what is only refused.
func (r *Relay) forget(s Status) {
	versions := make(map[string]uint64, len(s.Followers))
	for _, f := range s.Followers {
		versions[f.Name] = f.Version
	}
	for name, version := range r.known {
		if versions[name] == version {
			continue
		}
		var reply wire.ConsumerReply
		crashpoint.Reached(crashpoint.EdgeRemoved)
		if err := r.ask(wire.RouteUnconsume, wire.ConsumerRequest{Publisher: r.c.ID.String(), Token: s.Token, Follower: name, Version: version}, &reply); err != nil {
			return // next time; it does no harm
		}
		delete(r.known, name)
	}
	for name, version := range r.made {
		r.known[name] = version
	}
}

// publish sends everything up to the head, up to inFlight at once.
func (r *Relay) publish(s Status) time.Duration {
	type flight struct {
		seq    uint64
		future jetstream.PubAckFuture
	}
	var flying []flight
	failed := error(nil)
	land := func(most int) {
		for len(flying) > most {
			f := flying[0]
			flying = flying[1:]
			select {
			case <-f.future.Ok():
				crashpoint.Reached(crashpoint.Published)
				if failed == nil {
					r.setRelayed(f.seq)
				}
			case err := <-f.future.Err():
				if failed == nil {
					failed = err
				}
			case <-r.ctx.Done():
				failed = r.ctx.Err()
			}
		}
	}
	for seq := r.next; failed == nil; seq++ {
		r.mu.Lock()
		head := max(s.Head, r.status.Head)
		r.mu.Unlock()
		var e edge.Event
		var ok bool
		if e, ok, failed = r.take(seq, head); failed != nil || !ok {
			if failed == nil && seq <= head {
				// The log has no such row: it was trimmed meanwhile, and the stream goes on behind it.
				r.streaming = false
				land(0)
				return time.Millisecond
			}
			break
		}
		crashpoint.Reached(crashpoint.Publishing)
		future, err := r.c.JS.PublishMsgAsync(r.message(e, s.Token), jetstream.WithExpectLastSequence(seq-1))
		if err != nil {
			failed = err
			break
		}
		flying = append(flying, flight{seq, future})
		r.next = seq + 1
		land(inFlight)
	}
	land(0)
	if failed != nil {
		// What is on its way has landed; now find out how far the stream is.
		r.streaming = false
		return r.later("events cannot be published", failed)
	}
	return 0
}

// purge deletes from the stream what the log no longer has, once it is worth it.
func (r *Relay) purge(s Status) {
	r.mu.Lock()
	freed, trimmed := r.freed, r.status.Trimmed
	if freed >= 4<<20 {
		r.freed = 0
	}
	r.mu.Unlock()
	if freed < 4<<20 {
		return
	}
	var reply wire.StreamReply
	if err := r.ask(wire.RoutePurge, wire.StreamRequest{Publisher: r.c.ID.String(), Token: s.Token, Before: trimmed + 1}, &reply); err != nil {
		r.c.Log.Debug("a stream was not purged", "object", r.c.ID.String(), "error", err)
	}
}
