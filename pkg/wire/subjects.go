package wire

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/pkg/objectid"
)

// Subjects makes the subjects of one app. All start with "weir.<app>.".
type Subjects struct{ prefix string }

// SubjectsOf gives the subjects of an app by its name.
func SubjectsOf(app string) Subjects { return Subjects{"weir." + objectid.Escape(app) + "."} }

// Owner is where one asks which token the host of a partition has (OwnerReply).
func (s Subjects) Owner() string { return s.prefix + "owner" }

// Call is where the host that owns partition p under token takes calls (CallRequest).
func (s Subjects) Call(p int, token string) string {
	return s.prefix + "call." + strconv.Itoa(p) + "." + token
}

// Calls is all of Call for one token.
func (s Subjects) Calls(token string) string { return s.prefix + "call.*." + token }

// Edge is where that host takes edge operations (EdgeRequest).
func (s Subjects) Edge(p int, token string) string {
	return s.prefix + "edge." + strconv.Itoa(p) + "." + token
}

// Edges is all of Edge for one token.
func (s Subjects) Edges(token string) string { return s.prefix + "edge.*." + token }

// Receipts is where that host takes receipts (ReceiptBatch) for its publishers.
func (s Subjects) Receipts(p int, token string) string {
	return s.prefix + "rcpt." + strconv.Itoa(p) + "." + token
}

// AllReceipts is all of Receipts for one token.
func (s Subjects) AllReceipts(token string) string { return s.prefix + "rcpt.*." + token }

// Ends is where that host takes the ends of logs (EndBatch) for its followers.
func (s Subjects) Ends(p int, token string) string {
	return s.prefix + "end." + strconv.Itoa(p) + "." + token
}

// AllEnds is all of Ends for one token.
func (s Subjects) AllEnds(token string) string { return s.prefix + "end.*." + token }

// Deliver is the deliver subject of the consumers whose followers live in partition p. It is literal: a wildcard
// subscription does not wake a push consumer.
func (s Subjects) Deliver(p int) string { return s.prefix + "dlv." + strconv.Itoa(p) }

// Gateways is where gateways tell their ids, every GatewayEvery, while they live.
func (s Subjects) Gateways() string { return s.prefix + "gateways" }

// A gateway that was silent for GatewaySilence is gone.
const (
	GatewayEvery   = 10 * time.Second
	GatewaySilence = 35 * time.Second
)

// Route is where routers take operation op.
func (s Subjects) Route(op string) string { return s.prefix + "route." + op }

// Operations of the router.
const (
	RouteEdge      = "edge"      // EdgeRequest: a follow or unfollow, authorised and passed on
	RouteStream    = "stream"    // StreamRequest: make a stream, or look it up
	RouteDelete    = "delete"    // StreamRequest: delete a stream
	RoutePurge     = "purge"     // StreamRequest: delete a stream's head
	RouteBucket    = "bucket"    // BucketRequest: make a bucket of an app, or find it standing
	RouteKeys      = "keys"      // KeysRequest: list keys of a bucket
	RouteStreams   = "streams"   // StreamsRequest: list the streams of publishers, or delete some
	RouteUnconsume = "unconsume" // ConsumerRequest: delete a consumer
	RouteConsumer  = "consumer"  // ConsumerRequest: make a consumer, or find it standing
)

// CoreToken stands in an event's subject in place of a stream's token when it is published without a stream.
const CoreToken = "0"

// Event is the subject of a publisher's event on a topic, under the token of its stream.
func (s Subjects) Event(id objectid.ID, token, topic string) string {
	return s.prefix + "evt." + id.Token() + "." + token + "." + objectid.Escape(topic)
}

// StreamSubjects is every subject of a publisher's stream.
func (s Subjects) StreamSubjects(id objectid.ID, token string) string {
	return s.prefix + "evt." + id.Token() + "." + token + ".*"
}

// AllEvents is every event of a publisher, whatever carries it.
func (s Subjects) AllEvents(id objectid.ID) string { return s.prefix + "evt." + id.Token() + ".*.*" }

// Streams is every subject of every publisher's stream.
func (s Subjects) Streams() string { return s.prefix + "evt.>" }

// Stream names a publisher's stream.
func Stream(app string, id objectid.ID, token string) string {
	return StreamPrefix(app) + objectid.Escape(id.String()) + "=" + token
}

// StreamPrefix is what the names of all streams of an app's publishers begin with.
func StreamPrefix(app string) string { return "WEIR_" + shorten(objectid.Escape(app), 40) + "=" }

func shorten(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Consumer names the consumer of a follower's edge-set version.
func Consumer(follower string, version uint64) string {
	return objectid.Escape(follower) + "=" + strconv.FormatUint(version, 10)
}

// ParseConsumer takes a consumer's name apart. follower is "" when the name holds only a hash of it: then the
// consumer's metadata has it, under MetaFollower.
func ParseConsumer(name string) (follower string, version uint64, err error) {
	token, number, ok := strings.Cut(name, "=")
	version, bad := strconv.ParseUint(number, 10, 64)
	if !ok || bad != nil {
		return "", 0, fmt.Errorf("wire: %q is not a consumer of ours", name)
	}
	follower, _ = objectid.Unescape(token)
	return follower, version, nil
}

// MetaFollower is the metadata key of a consumer under which its follower's id stands.
const MetaFollower = "weir-follower"

// Bucket names the key-value bucket in which an app's services keep who owns what.
func Bucket(app string) string { return "WEIR_" + shorten(objectid.Escape(app), 40) }

// AppBucket names one of the app's own buckets: kv "name".
func AppBucket(app, name string) string { return Bucket(app) + "_kv_" + objectid.Escape(name) }

// BucketKey is a key of a bucket as JetStream takes it: the hexadecimal text of its bytes, which keeps their order.
func BucketKey(key string) string { return hex.EncodeToString([]byte(key)) }
