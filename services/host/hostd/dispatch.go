package hostd

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/host/internal/object"
)

// subscribe takes what is meant for this host's objects.
func (h *Host) subscribe() error {
	s := h.client.Subjects
	on := func(list *[]*nats.Subscription, subject string, handle nats.MsgHandler) error {
		sub, err := h.c.NATS.Subscribe(subject, handle)
		if err != nil {
			return err
		}
		*list = append(*list, sub)
		return sub.SetPendingLimits(-1, -1) // queues are bounded where they can be refused
	}
	for _, x := range []struct {
		subject string
		handle  nats.MsgHandler
	}{{s.Calls(h.token), h.call}, {s.Edges(h.token), h.edge}, {s.AllReceipts(h.token), h.receipts}, {s.AllEnds(h.token), h.ends},
		{s.Gateways(), func(m *nats.Msg) { h.objects.GatewayLives(string(m.Data)) }}} {
		if err := on(&h.subs, x.subject, x.handle); err != nil {
			return err
		}
	}
	for p := range objectid.Partitions {
		if err := on(&h.intake, s.Deliver(p), h.deliver); err != nil {
			return err
		}
	}
	// Last: who learns the token may use it.
	return on(&h.subs, s.Owner(), h.owner)
}

func (h *Host) respond(m *nats.Msg, reply any) {
	data, err := wire.Encode(reply)
	if err == nil {
		err = m.Respond(data)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		data, _ = wire.Encode(map[string]any{"error": wire.Errorf(wire.BadValue, "the answer has %d bytes, more than NATS takes (%d): raise its max_payload", len(data), h.c.NATS.MaxPayload())})
		err = m.Respond(data)
	}
	if err != nil {
		h.c.Log.Debug("an answer was not sent", "subject", m.Subject, "error", err)
	}
}

func (h *Host) owner(m *nats.Msg) {
	h.respond(m, wire.OwnerReply{Host: h.c.Folder.ID, Token: h.token, To: objectid.Partitions - 1})
}

func (h *Host) call(m *nats.Msg) {
	var req wire.CallRequest
	if err := json.Unmarshal(m.Data, &req); err != nil {
		h.respond(m, wire.CallReply{Error: wire.Errorf(wire.BadValue, "a call that cannot be read: %v", err)})
		return
	}
	h.objects.Call(req, func(r wire.CallReply) { h.respond(m, r) })
}

func (h *Host) edge(m *nats.Msg) {
	var req wire.EdgeRequest
	if err := json.Unmarshal(m.Data, &req); err != nil {
		h.respond(m, wire.EdgeReply{Error: wire.Errorf(wire.BadValue, "a request that cannot be read: %v", err)})
		return
	}
	h.objects.Edge(req, func(r wire.EdgeReply) { h.respond(m, r) })
}

func (h *Host) receipts(m *nats.Msg) {
	var batch wire.ReceiptBatch
	if err := json.Unmarshal(m.Data, &batch); err != nil {
		h.c.Log.Error("receipts that cannot be read", "error", err)
		return
	}
	h.objects.Receipts(batch.Receipts)
}

func (h *Host) ends(m *nats.Msg) {
	var batch wire.EndBatch
	if err := json.Unmarshal(m.Data, &batch); err != nil {
		h.c.Log.Error("ends of logs that cannot be read", "error", err)
		return
	}
	for _, e := range batch.Ends {
		follower, err := objectid.Parse(e.Follower)
		if err != nil {
			h.c.Log.Error("the end of a log for nobody", "error", err)
			continue
		}
		h.objects.Deliver(follower, &object.Incoming{Delivery: edge.Delivery{Event: e.Event, Version: e.Version, Owner: e.Owner}})
	}
}

// message is a delivery's, as the object answers it.
type message struct{ m *nats.Msg }

func (x message) Ack() error                { return x.m.Ack() }
func (x message) Nak(d time.Duration) error { return x.m.NakWithDelay(max(d, time.Millisecond)) }
func (x message) Term() error               { return x.m.Term() }
func (x message) InProgress() error         { return x.m.InProgress() }

// deliver takes an event that a consumer pushed. Stream, consumer and the number of deliveries come from the reply
// subject, the follower and the version of its edge set from the consumer's name.
func (h *Host) deliver(m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		h.c.Log.Debug("a delivery without metadata", "subject", m.Subject)
		return
	}
	name, version, err := wire.ParseConsumer(meta.Consumer)
	if err != nil {
		_ = m.Term()
		return
	}
	if name == "" {
		if name = h.lookUp(meta.Stream, meta.Consumer); name == "" {
			_ = m.NakWithDelay(time.Second)
			return
		}
	}
	follower, err := objectid.Parse(name)
	if err != nil {
		_ = m.Term()
		return
	}
	e, err := wire.GetEvent(m)
	if err != nil {
		h.c.Log.Error("an event that cannot be read", "error", err)
		_ = m.Term()
		return
	}
	h.objects.Deliver(follower, &object.Incoming{Delivery: edge.Delivery{Event: e, Version: version, Again: meta.NumDelivered > 1}, Message: message{m}})
}

// lookUp gives the follower of a consumer whose name holds only a hash of it: once, from the consumer's metadata.
func (h *Host) lookUp(stream, consumer string) string {
	if id, ok := h.names.Load(consumer); ok {
		return id.(string)
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c, err := h.js.PushConsumer(ctx, stream, consumer)
		if err != nil {
			h.c.Log.Debug("a consumer cannot be looked up", "error", err)
			return
		}
		h.names.Store(consumer, c.CachedInfo().Config.Metadata[wire.MetaFollower])
	}()
	return ""
}
