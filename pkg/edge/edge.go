package edge

import (
	"strconv"
	"strings"

	"weir/pkg/objectid"
	"weir/pkg/value"
)

// Event is what travels: one row of a publisher's log with the header that lets a receiver judge it.
type Event struct {
	Publisher   objectid.ID       `json:"p"`
	Incarnation string            `json:"i"`
	Seq         uint64            `json:"s"`
	At          int64             `json:"t"`           // Unix milliseconds of the call that published it
	Topic       string            `json:"c,omitempty"` // "" when there is no row: the end of the log, sent to ask for a receipt
	Data        []byte            `json:"d,omitempty"` // JSON
	Number      uint64            `json:"e"`           // the publisher's edge number as of the row, or later
	Last        map[string]uint64 `json:"l,omitempty"` // per topic, the last event before this one
}

// ID is the same at every delivery of the event, and no other event has it.
func (e Event) ID() string {
	return e.Publisher.String() + "#" + e.Incarnation + "-" + strconv.FormatUint(e.Seq, 10)
}

// Key names an edge within a peer's set: a follower has one per topic, a gateway one per connection and topic.
type Key struct {
	Conn  string `json:"k,omitempty"`
	Topic string `json:"c"`
}

// Edge is one approved follow. It takes events of its topic after Start that match Filter.
type Edge struct {
	Key
	Start  uint64       `json:"s"`
	Since  uint64       `json:"v"` // the version of its last follow that changed something; attempts and drops name it
	Filter value.Filter `json:"-"`

	FilterJSON []byte `json:"f,omitempty"` // Filter as it travels
}

// Takes says whether the edge wants the event.
func (e Edge) Takes(seq uint64, data []byte) bool {
	return seq > e.Start && (e.Filter.Empty() || e.Filter.Match(data))
}

// Set is all that one peer, a follower or a gateway, has with one publisher, under a version that only grows.
type Set struct {
	Version uint64 `json:"v"`
	Owner   string `json:"o,omitempty"` // the incarnation of the follower whose it is; "" for a gateway
	Edges   []Edge `json:"e,omitempty"`
}

// Wants says whether a follower's set takes the event.
func (s Set) Wants(topic string, seq uint64, data []byte) bool {
	for _, e := range s.Edges {
		if e.Topic == topic {
			return e.Takes(seq, data)
		}
	}
	return false
}

// Since gives the version of the last changing follow of a follower's topic, 0 without an edge.
func (s Set) Since(topic string) uint64 {
	for _, e := range s.Edges {
		if e.Topic == topic {
			return e.Since
		}
	}
	return 0
}

// Topics gives the topics of a follower's set.
func (s Set) Topics() []string {
	topics := make([]string, len(s.Edges))
	for i, e := range s.Edges {
		topics[i] = e.Topic
	}
	return topics
}

// Unpack parses the filters of a set that came over the wire or out of a file.
func (s *Set) Unpack() error {
	for i := range s.Edges {
		f, err := value.ParseFilter(s.Edges[i].FilterJSON)
		if err != nil {
			return err
		}
		s.Edges[i].Filter = f
	}
	return nil
}

// Kinds of a Request: the one question, and the operations that are answered like it.
const (
	Ask      = "ask"
	Follow   = "follow"
	Unfollow = "unfollow"
	Drop     = "drop"   // give an edge up after its last failed attempt
	Close    = "close"  // a connection has ended
	Gone     = "gone"   // a gateway has ended
	Disown   = "disown" // the edges of an earlier life of the follower
)

// AnyOwner stands for the owner in the drop of a follower that cannot be opened, so that nobody knows its life: the
// edge is then named by Version instead of Since.
const AnyOwner = "*"

// Request is what a peer sends to a publisher.
type Request struct {
	Kind        string `json:"kind"`
	Peer        string `json:"peer"` // a follower's id, or a gateway's, which has no '/'
	ID          uint64 `json:"id"`
	Owner       string `json:"owner,omitempty"` // the follower's incarnation; of a disown, that of the edges it disowns
	Incarnation string `json:"inc,omitempty"`   // the peer's incarnation of the publisher
	Have        uint64 `json:"have,omitempty"`  // and its position in it: never a receipt
	Number      uint64 `json:"number,omitempty"`
	Version     uint64 `json:"version,omitempty"`
	Key         Key    `json:"key,omitzero"`
	Identity    string `json:"identity,omitempty"` // of a connection: whose it is
	FilterJSON  []byte `json:"filter,omitempty"`
	Failed      bool   `json:"failed,omitempty"` // a follow while attempts are counted
	Seq         uint64 `json:"seq,omitempty"`    // of a drop: the event given up
	Since       uint64 `json:"since,omitempty"`  // of a drop: its edge
	Attempts    int    `json:"attempts,omitempty"`
	Error       string `json:"error,omitempty"` // of a drop: the last failure
}

// Answer is the publisher's answer: the peer's whole set, and for a follower every event after Have that it wants.
type Answer struct {
	Publisher   objectid.ID `json:"p"`
	ID          uint64      `json:"id"`
	Incarnation string      `json:"i"`
	Have        uint64      `json:"have"`
	Head        uint64      `json:"head"` // complete up to here
	Number      uint64      `json:"e"`
	Applied     uint64      `json:"applied,omitempty"` // the cursor that the peer's receipts named
	Parent      string      `json:"parent,omitempty"`
	Fork        uint64      `json:"fork,omitempty"` // a cursor of Parent counts up to here
	Base        uint64      `json:"base,omitempty"` // not 0: Set has only what changed since this version, which a gateway has
	Set         Set         `json:"set"`
	Removed     []Key       `json:"removed,omitempty"` // with Base: the edges that went
	Rows        []Event     `json:"rows,omitempty"`
	More        bool        `json:"more,omitempty"` // rows after Head were left out for size: ask again
}

// Receipt says that a follower durably has everything of an incarnation through Have, its cursor being at Applied.
type Receipt struct {
	Publisher   objectid.ID `json:"p"`
	Peer        string      `json:"peer"`
	Owner       string      `json:"owner"`
	Incarnation string      `json:"inc"`
	Have        uint64      `json:"have"`
	Applied     uint64      `json:"applied"`
	Attempts    int         `json:"attempts,omitempty"` // failed ones of the event that stands next, for those who ask
	Next        int64       `json:"next,omitempty"`     // when it is tried again, Unix milliseconds
	Error       string      `json:"error,omitempty"`    // the last failure, cut short
}

// IsFollower tells a follower's id from a gateway's.
func IsFollower(peer string) bool { return strings.Contains(peer, "/") }
