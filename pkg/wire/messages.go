package wire

import (
	"encoding/json"

	"weir/pkg/edge"
)

// OwnerReply answers on Subjects.Owner: the token under which this host takes the partitions From to To.
type OwnerReply struct {
	Host  string `json:"host"`
	Token string `json:"token"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

// CallRequest is one call of an object's method.
type CallRequest struct {
	To     string          `json:"to"` // Class/name
	Method string          `json:"method"`
	Args   json.RawMessage `json:"args,omitempty"`  // an array of positions
	Chain  []string        `json:"chain,omitempty"` // the objects whose calls wait for this one, outermost first
	WaitMS int64           `json:"wait"`            // how long the caller still waits, queueing included
	RunMS  int64           `json:"run"`             // how long the call may run
}

// CallReply answers it. Busy: the mailbox was full, nothing was taken.
type CallReply struct {
	Results json.RawMessage `json:"results,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	Busy    bool            `json:"busy,omitempty"`
}

// EdgeRequest carries operations of one peer to one publisher. A gateway sends those of many sockets at once.
type EdgeRequest struct {
	To         string         `json:"to"`
	Operations []edge.Request `json:"ops"`
	Chain      []string       `json:"chain,omitempty"`
	WaitMS     int64          `json:"wait"`
}

// EdgeReply answers it. Errors has an entry per operation, nil where it was done. Answer is absent if no answer could
// be given at all.
type EdgeReply struct {
	Answer *edge.Answer `json:"answer,omitempty"`
	Errors []*Error     `json:"errors,omitempty"`
	Error  *Error       `json:"error,omitempty"`
	Busy   bool         `json:"busy,omitempty"`
}

// ReceiptBatch is what a host tells the host of some publishers, about once a second.
type ReceiptBatch struct {
	Receipts []edge.Receipt `json:"receipts"`
}

// EndBatch asks followers for missing receipts: each end is judged like an event without a row.
type EndBatch struct {
	Ends []End `json:"ends"`
}

// End is the end of a publisher's log, for one follower.
type End struct {
	Follower string     `json:"follower"`
	Owner    string     `json:"owner"`
	Version  uint64     `json:"version"`
	Event    edge.Event `json:"event"`
}

// StreamRequest asks a router for a publisher's stream.
type StreamRequest struct {
	Publisher string `json:"publisher"`
	Token     string `json:"token"`
	First     uint64 `json:"first,omitempty"`  // of a new stream: its first sequence
	Make      bool   `json:"make,omitempty"`   // make it if it is missing
	Before    uint64 `json:"before,omitempty"` // of a purge: delete what is older
}

// StreamsRequest asks a router for the names of all streams of the app's publishers, or for the deletion of some.
type StreamsRequest struct {
	Delete []string `json:"delete,omitempty"`
}

// StreamsReply answers it.
type StreamsReply struct {
	Names []string `json:"names,omitempty"`
	Error *Error   `json:"error,omitempty"`
}

// BucketRequest asks a router for a key-value bucket of the app; a StreamReply answers it.
type BucketRequest struct {
	Name string `json:"name"`
}

// KeysRequest asks a router for the keys of a bucket that start with Prefix and come after Cursor, Limit at most.
type KeysRequest struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit"`
}

// KeysReply answers it, in the order of the keys. More: there are further ones.
type KeysReply struct {
	Keys  []string `json:"keys"`
	More  bool     `json:"more,omitempty"`
	Error *Error   `json:"error,omitempty"`
}

// StreamReply answers it. Missing: NATS answered that there is none.
type StreamReply struct {
	Last    uint64 `json:"last"`
	Missing bool   `json:"missing,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// ConsumerRequest asks a router for the consumer of one follower's edge-set version.
type ConsumerRequest struct {
	Publisher string   `json:"publisher"`
	Token     string   `json:"token"`
	Follower  string   `json:"follower"`
	Version   uint64   `json:"version"`
	Topics    []string `json:"topics"`
	Start     uint64   `json:"start"`
}

// ConsumerReply answers it. Missing: the stream is not there.
type ConsumerReply struct {
	Missing bool   `json:"missing,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// EdgeRow is one edge as followers() and `weir edges` show it.
type EdgeRow struct {
	Follower  string          `json:"follower"`
	Topic     string          `json:"topic"`
	Transport string          `json:"transport"`
	Filter    json.RawMessage `json:"filter,omitempty"`
	Confirmed uint64          `json:"confirmed"`
	Lag       uint64          `json:"lag"`
	Attempts  int             `json:"attempts,omitempty"`
	NextTry   int64           `json:"next_try,omitempty"` // Unix milliseconds
	Error     string          `json:"error,omitempty"`    // of the last attempt
}

// DroppedRow is an edge that was given up.
type DroppedRow struct {
	Follower string          `json:"follower"`
	Topic    string          `json:"topic"`
	Seq      uint64          `json:"seq"`
	Event    json.RawMessage `json:"event,omitempty"`
	Attempts int             `json:"attempts"`
	Error    string          `json:"error"`
	At       int64           `json:"at"`
}

// EdgesReply is what the platform's own method "weir:edges" gives for `weir edges`.
type EdgesReply struct {
	Head    uint64       `json:"head"`
	Edges   []EdgeRow    `json:"edges"`
	Dropped []DroppedRow `json:"dropped"`
	Error   *Error       `json:"error,omitempty"`
}
