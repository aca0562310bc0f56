package bus

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/singleflight"

	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Client asks hosts and routers.
type Client struct {
	NATS     *nats.Conn
	Subjects wire.Subjects

	asking singleflight.Group // for the token
	mu     sync.Mutex         // guards token
	token  string             // of the host that owns the partitions; "" when it must be asked for
}

// NewClient makes a client for an app over a connection.
func NewClient(nc *nats.Conn, app string) *Client {
	return &Client{NATS: nc, Subjects: wire.SubjectsOf(app)}
}

// Call makes one call of a method. req.WaitMS is set from ctx's deadline.
func (c *Client) Call(ctx context.Context, req wire.CallRequest) (json.RawMessage, error) {
	id, err := objectid.Parse(req.To)
	if err != nil {
		return nil, wire.AsError(err)
	}
	var reply wire.CallReply
	for {
		reply = wire.CallReply{}
		req.WaitMS = remaining(ctx)
		if err := c.toOwner(ctx, func(token string) string { return c.Subjects.Call(id.Partition(), token) }, req.To, req, &reply); err != nil {
			return nil, err
		}
		if !reply.Busy {
			break
		}
		if err := pause(ctx, 5*time.Millisecond, 50*time.Millisecond); err != nil {
			return nil, wire.Errorf(wire.Overloaded, "%s has as many calls waiting as it takes, and had no room for this one in time: try again later", req.To)
		}
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	return reply.Results, nil
}

// Edge sends edge operations to the host of the publisher.
func (c *Client) Edge(ctx context.Context, req wire.EdgeRequest) (wire.EdgeReply, error) {
	return c.edge(ctx, req, func(id objectid.ID, req wire.EdgeRequest, reply *wire.EdgeReply) error {
		return c.toOwner(ctx, func(token string) string { return c.Subjects.Edge(id.Partition(), token) }, req.To, req, reply)
	})
}

// RouteEdge sends them by way of a router, which authorises them first.
func (c *Client) RouteEdge(ctx context.Context, req wire.EdgeRequest) (wire.EdgeReply, error) {
	return c.edge(ctx, req, func(_ objectid.ID, req wire.EdgeRequest, reply *wire.EdgeReply) error {
		return c.Route(ctx, wire.RouteEdge, req, reply)
	})
}

func (c *Client) edge(ctx context.Context, req wire.EdgeRequest, send func(objectid.ID, wire.EdgeRequest, *wire.EdgeReply) error) (wire.EdgeReply, error) {
	id, err := objectid.Parse(req.To)
	if err != nil {
		return wire.EdgeReply{}, wire.AsError(err)
	}
	for {
		var reply wire.EdgeReply
		req.WaitMS = remaining(ctx)
		if err := send(id, req, &reply); err != nil {
			return reply, err
		}
		if reply.Busy {
			if err := pause(ctx, 5*time.Millisecond, 50*time.Millisecond); err != nil {
				return reply, wire.Errorf(wire.Overloaded, "%s has as many calls waiting as it takes: try again later", req.To)
			}
			continue
		}
		if reply.Error != nil {
			return reply, reply.Error
		}
		if reply.Answer != nil {
			if err := reply.Answer.Set.Unpack(); err != nil {
				return reply, wire.AsError(err)
			}
		}
		return reply, nil
	}
}

// Route asks a router.
func (c *Client) Route(ctx context.Context, op string, req, reply any) error {
	for {
		sent, err := c.request(ctx, c.Subjects.Route(op), req, reply)
		if err == nil || sent {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond, 100*time.Millisecond); err != nil {
			return wire.Errorf(wire.Unavailable, "no router answers: is weir-router running?")
		}
	}
}

// askWithin is how long an answer of the host may take before it is asked again.
const askWithin = 2 * time.Second

// Owner gives the token under which the host of the partitions takes requests. Who asks at the same time asks together.
func (c *Client) Owner(ctx context.Context) (string, error) {
	if token := c.known(); token != "" {
		return token, nil
	}
	asked := c.asking.DoChan("", func() (any, error) {
		if token := c.known(); token != "" {
			return token, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		defer cancel()
		var reply wire.OwnerReply
		if _, err := c.request(ctx, c.Subjects.Owner(), struct{}{}, &reply); err != nil {
			return "", err
		}
		c.mu.Lock()
		c.token = reply.Token
		c.mu.Unlock()
		return reply.Token, nil
	})
	select {
	case r := <-asked:
		return r.Val.(string), r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *Client) known() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

func (c *Client) forget(token string) {
	c.mu.Lock()
	if c.token == token {
		c.token = ""
	}
	c.mu.Unlock()
}

// toOwner sends a request to the host, again for as long as none took it.
func (c *Client) toOwner(ctx context.Context, subject func(string) string, to string, req, reply any) error {
	for {
		token, err := c.Owner(ctx)
		if err == nil {
			var sent bool
			if sent, err = c.request(ctx, subject(token), req, reply); err == nil {
				return nil
			}
			if sent {
				return wire.Errorf(wire.OutcomeUnknown, "%s did not answer in time; the call may have run", to)
			}
			c.forget(token)
		}
		if err := pause(ctx, 20*time.Millisecond, 100*time.Millisecond); err != nil {
			return wire.Errorf(wire.Unavailable, "no host answers for %s: is weir-host running, for an app of this name?", to)
		}
	}
}

// request sends one request. sent is false when certainly nobody took it.
func (c *Client) request(ctx context.Context, subject string, req, reply any) (sent bool, err error) {
	data, err := wire.Encode(req)
	if err != nil {
		return true, wire.Errorf(wire.Internal, "%v", err)
	}
	m, err := c.NATS.RequestWithContext(ctx, subject, data)
	switch {
	case err == nil:
		if err := json.Unmarshal(m.Data, reply); err != nil {
			return true, wire.Errorf(wire.Internal, "an answer on %s: %v", subject, err)
		}
		return true, nil
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting):
		return false, err
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrMaxPayload):
		return true, wire.Errorf(wire.Unavailable, "NATS: %v", err)
	}
	return true, wire.Errorf(wire.OutcomeUnknown, "no answer in time; it may have been done (%v)", err)
}

func remaining(ctx context.Context) int64 {
	if deadline, ok := ctx.Deadline(); ok {
		return max(0, time.Until(deadline).Milliseconds())
	}
	return 30_000
}

// pause waits a random time between low and high, or fails when ctx ends before.
func pause(ctx context.Context, low, high time.Duration) error {
	t := time.NewTimer(low + rand.N(high-low))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
