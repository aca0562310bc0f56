// Package assets makes and deletes the streams and consumers that relays ask for. Every operation may be asked for
// twice, and late: names are never used again, and a consumer is never changed. It is safe for concurrent use.
package assets

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Keeper does it for one app.
type Keeper struct {
	app      string
	subjects wire.Subjects
	js       jetstream.JetStream
	making   chan struct{} // making streams gets slower with their number: two at a time
}

// New makes a keeper.
func New(app string, subjects wire.Subjects, js jetstream.JetStream) *Keeper {
	return &Keeper{app, subjects, js, make(chan struct{}, 2)}
}

// maxConsumers of a stream: a positive number, since without one the server allows only a thousand.
const maxConsumers = 1 << 20

const (
	ackWait    = 15 * time.Second
	maxPending = 64 // order is the receiver's check, so that a round trip does not bound an edge
	timeout    = 5 * time.Second
)

func (k *Keeper) name(publisher, token string) (string, objectid.ID, *wire.Error) {
	id, err := objectid.Parse(publisher)
	if err != nil {
		return "", id, wire.AsError(err)
	}
	return wire.Stream(k.app, id, token), id, nil
}

func unavailable(err error) *wire.Error { return wire.Errorf(wire.Unavailable, "JetStream: %v", err) }

// Stream finds a publisher's stream, or makes it.
func (k *Keeper) Stream(ctx context.Context, req wire.StreamRequest) wire.StreamReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, id, bad := k.name(req.Publisher, req.Token)
	if bad != nil {
		return wire.StreamReply{Error: bad}
	}
	if req.Make {
		select {
		case k.making <- struct{}{}:
			defer func() { <-k.making }()
		case <-ctx.Done():
			return wire.StreamReply{Error: unavailable(ctx.Err())}
		}
		_, err := k.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{k.subjects.StreamSubjects(id, req.Token)},
			FirstSeq: req.First, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: 1, MaxConsumers: maxConsumers})
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return wire.StreamReply{Error: unavailable(err)}
		}
	}
	s, err := k.js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return wire.StreamReply{Missing: true}
	case err != nil:
		return wire.StreamReply{Error: unavailable(err)}
	}
	return wire.StreamReply{Last: s.CachedInfo().State.LastSeq}
}

// Delete deletes a stream; without one there is nothing to do.
func (k *Keeper) Delete(ctx context.Context, req wire.StreamRequest) wire.StreamReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, _, bad := k.name(req.Publisher, req.Token)
	if bad != nil {
		return wire.StreamReply{Error: bad}
	}
	if err := k.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return wire.StreamReply{Error: unavailable(err)}
	}
	return wire.StreamReply{}
}

// Streams lists the streams of the app's publishers, or deletes some of them.
func (k *Keeper) Streams(ctx context.Context, req wire.StreamsRequest) (reply wire.StreamsReply) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, name := range req.Delete {
		if !strings.HasPrefix(name, wire.StreamPrefix(k.app)) {
			return wire.StreamsReply{Error: wire.Errorf(wire.BadName, "%q is no publisher's stream", name)}
		}
		if err := k.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return wire.StreamsReply{Error: unavailable(err)}
		}
	}
	if len(req.Delete) > 0 {
		return reply
	}
	list := k.js.StreamNames(ctx, jetstream.WithStreamListSubject(k.subjects.Streams()))
	for name := range list.Name() {
		if strings.HasPrefix(name, wire.StreamPrefix(k.app)) {
			reply.Names = append(reply.Names, name)
		}
	}
	if err := list.Err(); err != nil {
		return wire.StreamsReply{Error: unavailable(err)}
	}
	return reply
}

// Purge deletes the messages of a stream before a sequence.
func (k *Keeper) Purge(ctx context.Context, req wire.StreamRequest) wire.StreamReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, _, bad := k.name(req.Publisher, req.Token)
	if bad != nil {
		return wire.StreamReply{Error: bad}
	}
	s, err := k.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return wire.StreamReply{Missing: true}
	}
	// Never beyond the last message: that would lift the stream's last sequence.
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSequence(min(req.Before, s.CachedInfo().State.LastSeq+1)))
	}
	if err != nil {
		return wire.StreamReply{Error: unavailable(err)}
	}
	return wire.StreamReply{Last: s.CachedInfo().State.LastSeq}
}

// Bucket makes a key-value bucket of the app, or finds it standing.
func (k *Keeper) Bucket(ctx context.Context, req wire.BucketRequest) wire.StreamReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if req.Name == "" || len(req.Name) > 64 {
		return wire.StreamReply{Error: wire.Errorf(wire.BadName, "the name of a bucket has 1 to 64 bytes, not %d", len(req.Name))}
	}
	if _, err := k.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: wire.AppBucket(k.app, req.Name)}); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return wire.StreamReply{Error: unavailable(err)}
	}
	return wire.StreamReply{}
}

// Keys lists keys of a bucket. It reads all of them. A bucket that is not there has none.
func (k *Keeper) Keys(ctx context.Context, req wire.KeysRequest) wire.KeysReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kv, err := k.js.KeyValue(ctx, wire.AppBucket(k.app, req.Name))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return wire.KeysReply{}
	}
	if err != nil {
		return wire.KeysReply{Error: unavailable(err)}
	}
	list, err := kv.ListKeys(ctx)
	if err != nil {
		return wire.KeysReply{Error: unavailable(err)}
	}
	defer func() { _ = list.Stop() }()
	var reply wire.KeysReply
	for text := range list.Keys() {
		b, err := hex.DecodeString(text)
		if key := string(b); err == nil && strings.HasPrefix(key, req.Prefix) && (req.Cursor == "" || key > req.Cursor) {
			reply.Keys = append(reply.Keys, key)
		}
	}
	if err := ctx.Err(); err != nil { // the list may have ended early
		return wire.KeysReply{Error: wire.Errorf(wire.Timeout, "the bucket's keys did not come in time")}
	}
	slices.Sort(reply.Keys)
	if len(reply.Keys) > req.Limit {
		reply.Keys, reply.More = reply.Keys[:req.Limit], true
	}
	return reply
}

// Consumer makes the consumer of a follower's edge-set version, or finds it standing.
func (k *Keeper) Consumer(ctx context.Context, req wire.ConsumerRequest) wire.ConsumerReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, id, bad := k.name(req.Publisher, req.Token)
	if bad != nil {
		return wire.ConsumerReply{Error: bad}
	}
	follower, err := objectid.Parse(req.Follower)
	if err != nil {
		return wire.ConsumerReply{Error: wire.AsError(err)}
	}
	filters := make([]string, len(req.Topics))
	for i, topic := range req.Topics {
		filters[i] = k.subjects.Event(id, req.Token, topic)
	}
	_, err = k.js.CreatePushConsumer(ctx, name, jetstream.ConsumerConfig{Durable: wire.Consumer(req.Follower, req.Version),
		DeliverSubject: k.subjects.Deliver(follower.Partition()), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: maxPending, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: req.Start, FilterSubjects: filters,
		MemoryStorage: true, Replicas: 1, Metadata: map[string]string{wire.MetaFollower: req.Follower}})
	switch {
	case err == nil, errors.Is(err, jetstream.ErrConsumerExists):
		return wire.ConsumerReply{}
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return wire.ConsumerReply{Missing: true}
	}
	return wire.ConsumerReply{Error: unavailable(err)}
}

// Unconsume deletes a consumer; without one there is nothing to do.
func (k *Keeper) Unconsume(ctx context.Context, req wire.ConsumerRequest) wire.ConsumerReply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name, _, bad := k.name(req.Publisher, req.Token)
	if bad != nil {
		return wire.ConsumerReply{Error: bad}
	}
	err := k.js.DeleteConsumer(ctx, name, wire.Consumer(req.Follower, req.Version))
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return wire.ConsumerReply{Error: unavailable(err)}
	}
	return wire.ConsumerReply{}
}
