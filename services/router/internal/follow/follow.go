// Package follow authorises follows: what the app's declarations alone can refuse is refused here, the rest is put to
// the publisher, whose policy or hook decides. It is safe for concurrent use.
package follow

import (
	"context"
	"time"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Authority authorises the follows of one app.
type Authority struct {
	app    *app.App
	client *bus.Client
}

// New makes an authority.
func New(a *app.App, client *bus.Client) *Authority { return &Authority{a, client} }

// Edge checks a peer's operations and passes them to the publisher's host.
func (f *Authority) Edge(ctx context.Context, req wire.EdgeRequest) wire.EdgeReply {
	if err := f.check(req); err != nil {
		return wire.EdgeReply{Error: err}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(req.WaitMS)*time.Millisecond)
	defer cancel()
	reply, err := f.client.Edge(ctx, req)
	if err != nil {
		return wire.EdgeReply{Error: wire.AsError(err)}
	}
	return reply
}

func (f *Authority) check(req wire.EdgeRequest) *wire.Error {
	id, err := objectid.Parse(req.To)
	if err != nil {
		return wire.AsError(err)
	}
	if f.app.Classes[id.Class] == nil {
		return wire.Errorf(wire.NoSuchClass, "the app %s declares no class %q; %s", f.app.Name, id.Class, f.app.ClassNames())
	}
	// A topic is the publisher's to refuse: a batch has the operations of many sockets, and one's mistake is its own.
	return nil
}
