package object

import (
	"context"
	"errors"
	"strings"
	"time"

	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// sweepEvery is the time between two looks for streams that nobody needs.
const sweepEvery = 10 * time.Minute

// sweepStreams deletes streams that no publisher uses: those of before a loss, which NATS had when an older state of it
// came back, and those whose deletion did not arrive. This host has all objects of the app.
func (r *Registry) sweepStreams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var found wire.StreamsReply
	if err := r.c.Client.Route(ctx, wire.RouteStreams, wire.StreamsRequest{}, &found); err != nil || found.Error != nil {
		return // next time
	}
	orphans := r.orphans(ctx, found.Names)
	if len(orphans) == 0 {
		return
	}
	var reply wire.StreamsReply
	if err := r.c.Client.Route(ctx, wire.RouteStreams, wire.StreamsRequest{Delete: orphans}, &reply); err == nil && reply.Error == nil {
		r.c.Log.Info("streams that no publisher uses were deleted", "streams", len(orphans))
	}
}

// orphans are the streams that are neither an awake publisher's nor one's that will wake for what it has to send.
func (r *Registry) orphans(ctx context.Context, names []string) (orphans []string) {
	owners := map[string]objectid.ID{} // by what the names of its streams begin with
	sends := map[objectid.ID]bool{}
	for id, e := range r.c.Wake.All() {
		if e.Events {
			owners[wire.Stream(r.c.App.Name, id, "")], sends[id] = id, true
		}
	}
	r.mu.Lock()
	for id := range r.objects {
		owners[wire.Stream(r.c.App.Name, id, "")] = id
	}
	r.mu.Unlock()
	for _, name := range names {
		prefix := name[:strings.LastIndexByte(name, '=')+1]
		id, ok := owners[prefix]
		if !ok {
			orphans = append(orphans, name)
			continue
		}
		token := ""
		var answer func() error
		r.mu.Lock()
		if o := r.objects[id]; o != nil { // queued under the lock: who is not in the registry must not wake
			answer = o.question(ctx, func(a *activation, done func(error)) {
				if a.relay != nil {
					token = a.db.Token
					done(nil)
					return
				}
				// It was left from before the last start. What is published next makes another.
				e := a.small(func() error {
					if a.db.Token != "" {
						a.db.SetToken("")
					}
					return nil
				})
				a.out.leave(func(barrier error) { done(errors.Join(e, barrier)) })
			})
		}
		r.mu.Unlock()
		if answer == nil {
			if !sends[id] { // it fell asleep meanwhile
				orphans = append(orphans, name)
			} // else it will wake
			continue
		}
		if answer() == nil && name != prefix+token {
			orphans = append(orphans, name)
		}
	}
	return orphans
}
