package edge

import "weir/pkg/value"

// rules are the functions that a world runs, and what its hosts do around them. A control replaces one by a function
// that tampers with what goes in or comes out.
type rules struct {
	decide         func(Cursor, uint64, Delivery, int64) Verdict
	take           func(Cursor, uint64, Answer, bool) (Cursor, uint64, Heard, bool)
	hear           func(*Feed, Event) Verdict
	takeFeed       func(*Feed, Answer, bool) Heard
	takes          func(Edge, Event) bool // slicing
	follow         func(*Publisher, Request, value.Filter) []Change
	remove         func(*Publisher, Request) []Change
	removeIdentity func(*Publisher, string) []Change
	restore        func(p *Publisher, peer, owner, identity string, version, confirmed uint64, e Edge)
	answer         func(*Publisher, Request, uint64, []Change, Rows) (Answer, error)
	received       func(*Publisher, Receipt) bool
	trimTo         func(*Publisher, uint64) uint64
	host           glue
}

func newRules() *rules {
	return &rules{
		decide:         Decide,
		take:           Cursor.Take,
		hear:           (*Feed).Hear,
		takeFeed:       (*Feed).Take,
		takes:          func(e Edge, v Event) bool { return e.Takes(v.Seq, v.Data) },
		follow:         (*Publisher).Follow,
		remove:         (*Publisher).Remove,
		removeIdentity: (*Publisher).RemoveIdentity,
		restore:        (*Publisher).Restore,
		answer:         (*Publisher).Answer,
		received:       (*Publisher).Received,
		trimTo:         (*Publisher).TrimTo,
	}
}

// glue are a host's own rules, broken when true.
type glue struct {
	cursorApart       bool // the cursor commits after the handler's writes
	receiptEarly      bool // a receipt leaves before the barrier
	answerEarly       bool
	relayEarly        bool
	numberEarly       bool // the relay's headers name the edge number of a commit that is not durable
	ackFloor          bool // JetStream's ack floor is a receipt
	sequenceUnchecked bool // a publish names no expected sequence
	tokenKept         bool // by a restored file
	socketsGoOn       bool // after a restore, instead of starting at the head
	attemptsForgotten bool // at every opening
	attemptsLate      bool // counted only after the handler
	ownerUnchecked    bool // edges of an earlier life are taken for one's own
	noEnds            bool // missing receipts are not asked for
	deltaWhole        bool // a gateway takes what changed for its whole set
	eventsNotHeld     bool // a gateway hears on while a follow is on its way
	poisonStays       bool // not a rule: handlers that kill do so for ever
}
