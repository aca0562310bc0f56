package wire

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"weir/pkg/edge"
	"weir/pkg/objectid"
)

// Headers of an event's message; its data is the message's.
const (
	headerFrom  = "Weir-From"
	headerInc   = "Weir-Inc"
	headerSeq   = "Weir-Seq"
	headerAt    = "Weir-At"
	headerTopic = "Weir-Topic"
	headerEdge  = "Weir-Edge"
	headerLast  = "Weir-Last"
)

// PutEvent writes an event into a message.
func PutEvent(m *nats.Msg, e edge.Event) {
	m.Header = nats.Header{
		headerFrom:  {url.PathEscape(e.Publisher.String())},
		headerInc:   {e.Incarnation},
		headerSeq:   {strconv.FormatUint(e.Seq, 10)},
		headerAt:    {strconv.FormatInt(e.At, 10)},
		headerTopic: {e.Topic},
		headerEdge:  {strconv.FormatUint(e.Number, 10)},
	}
	if len(e.Last) > 0 {
		var b strings.Builder
		for i, topic := range slices.Sorted(maps.Keys(e.Last)) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(topic)
			b.WriteByte('=')
			b.WriteString(strconv.FormatUint(e.Last[topic], 10))
		}
		m.Header[headerLast] = []string{b.String()}
	}
	m.Data = e.Data
}

// GetEvent reads the event of a message.
func GetEvent(m *nats.Msg) (edge.Event, error) {
	var e edge.Event
	from, err := url.PathUnescape(m.Header.Get(headerFrom))
	if err != nil {
		return e, fmt.Errorf("wire: event on %s: header %s: %w", m.Subject, headerFrom, err)
	}
	id, err := objectid.Parse(from)
	if err != nil {
		return e, fmt.Errorf("wire: event on %s: %w", m.Subject, err)
	}
	e.Publisher, e.Incarnation, e.Topic, e.Data = id, m.Header.Get(headerInc), m.Header.Get(headerTopic), m.Data
	for _, f := range []struct {
		key string
		to  *uint64
	}{{headerSeq, &e.Seq}, {headerEdge, &e.Number}} {
		if *f.to, err = strconv.ParseUint(m.Header.Get(f.key), 10, 64); err != nil {
			return e, fmt.Errorf("wire: event of %s: header %s: %w", id, f.key, err)
		}
	}
	if e.At, err = strconv.ParseInt(m.Header.Get(headerAt), 10, 64); err != nil {
		return e, fmt.Errorf("wire: event of %s: header %s: %w", id, headerAt, err)
	}
	if last := m.Header.Get(headerLast); last != "" {
		e.Last = map[string]uint64{}
		for part := range strings.SplitSeq(last, ",") {
			topic, number, _ := strings.Cut(part, "=")
			if e.Last[topic], err = strconv.ParseUint(number, 10, 64); err != nil {
				return e, fmt.Errorf("wire: event of %s: header %s: %w", id, headerLast, err)
			}
		}
	}
	return e, nil
}
