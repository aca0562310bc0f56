package bus

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/wire"
)

// KV is an app's key-value buckets in JetStream. It is safe for concurrent use. Routers make a bucket when it is first
// used; reading and writing goes to JetStream itself, outside any object's transaction.
type KV struct {
	client *Client
	app    string
	js     jetstream.JetStream

	mu      sync.Mutex // guards buckets
	buckets map[string]jetstream.KeyValue
}

// NewKV makes the buckets of a client's app.
func NewKV(c *Client, app string) (*KV, error) {
	js, err := jetstream.New(c.NATS)
	if err != nil {
		return nil, err
	}
	return &KV{client: c, app: app, js: js, buckets: map[string]jetstream.KeyValue{}}, nil
}

// bucket finds a bucket, or has it made.
func (k *KV) bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	k.mu.Lock()
	kv := k.buckets[name]
	k.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	var reply wire.StreamReply
	if err := k.client.Route(ctx, wire.RouteBucket, wire.BucketRequest{Name: name}, &reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	kv, err := k.js.KeyValue(ctx, wire.AppBucket(k.app, name))
	if err != nil {
		return nil, unavailable(err)
	}
	k.mu.Lock()
	k.buckets[name] = kv
	k.mu.Unlock()
	return kv, nil
}

// forget drops what is known of a bucket that JetStream no longer has.
func (k *KV) forget(name string) {
	k.mu.Lock()
	delete(k.buckets, name)
	k.mu.Unlock()
}

func unavailable(err error) error { return wire.Errorf(wire.Unavailable, "JetStream: %v", err) }

// use runs do on a bucket, once more if the bucket turns out to be lost.
func (k *KV) use(ctx context.Context, name string, do func(jetstream.KeyValue) error) error {
	for try := 0; ; try++ {
		kv, err := k.bucket(ctx, name)
		if err != nil {
			return err
		}
		if err = do(kv); err == nil {
			return nil
		}
		if lost := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound); !lost || try > 0 {
			return unavailable(err)
		}
		k.forget(name)
	}
}

// Get gives a value; ok is false when there is none.
func (k *KV) Get(ctx context.Context, name, key string) (data []byte, ok bool, err error) {
	err = k.use(ctx, name, func(kv jetstream.KeyValue) error {
		e, err := kv.Get(ctx, wire.BucketKey(key))
		if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted) {
			return nil
		}
		if err == nil {
			data, ok = e.Value(), true
		}
		return err
	})
	return data, ok, err
}

// Set stores a value.
func (k *KV) Set(ctx context.Context, name, key string, data []byte) error {
	return k.use(ctx, name, func(kv jetstream.KeyValue) error {
		_, err := kv.Put(ctx, wire.BucketKey(key), data)
		return err
	})
}

// Delete removes a key; it is no error without one.
func (k *KV) Delete(ctx context.Context, name, key string) error {
	return k.use(ctx, name, func(kv jetstream.KeyValue) error {
		err := kv.Purge(ctx, wire.BucketKey(key))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		return err
	})
}

// List gives up to limit keys after cursor that start with prefix, in order, and whether there are more. A router reads all
// keys of the bucket for it.
func (k *KV) List(ctx context.Context, name, prefix, cursor string, limit int) (keys []string, more bool, err error) {
	var reply wire.KeysReply
	if err := k.client.Route(ctx, wire.RouteKeys, wire.KeysRequest{Name: name, Prefix: prefix, Cursor: cursor, Limit: limit}, &reply); err != nil {
		return nil, false, err
	}
	if reply.Error != nil {
		return nil, false, reply.Error
	}
	return reply.Keys, reply.More, nil
}
