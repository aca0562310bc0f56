package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/textproto"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// messages makes an empty one of each kind that comes off the wire.
var messages = map[string]func() any{
	"CallRequest":     func() any { return new(wire.CallRequest) },
	"CallReply":       func() any { return new(wire.CallReply) },
	"EdgeRequest":     func() any { return new(wire.EdgeRequest) },
	"EdgeReply":       func() any { return new(wire.EdgeReply) },
	"EdgesReply":      func() any { return new(wire.EdgesReply) },
	"EndBatch":        func() any { return new(wire.EndBatch) },
	"ReceiptBatch":    func() any { return new(wire.ReceiptBatch) },
	"OwnerReply":      func() any { return new(wire.OwnerReply) },
	"StreamRequest":   func() any { return new(wire.StreamRequest) },
	"StreamReply":     func() any { return new(wire.StreamReply) },
	"ConsumerRequest": func() any { return new(wire.ConsumerRequest) },
	"ConsumerReply":   func() any { return new(wire.ConsumerReply) },
	"BucketRequest":   func() any { return new(wire.BucketRequest) },
	"KeysRequest":     func() any { return new(wire.KeysRequest) },
	"KeysReply":       func() any { return new(wire.KeysReply) },
}

// A message that can be read at all is written and read back as the same message.
// spec: DLV-11
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{"to":"A/x","method":"bid","args":[1,null,{"a":"<&>"}],"chain":["B/y"],"wait":30000,"run":10000}`,
		`{"results":[1,"\u2028"],"busy":true,"error":{"code":"timeout","message":"x","raised":{"a":1},"trace":[{"at":"A/x:bid","line":3}]}}`,
		`{"to":"A/x","ops":[{"kind":"follow","peer":"B/y","id":1,"key":{"c":"bid"},"filter":"eyJhIjoxfQ=="}],"wait":1}`,
		`{"answer":{"p":{"Class":"A","Name":"x"},"id":1,"i":"i","head":3,"set":{"v":1,"e":[{"c":"bid","s":1,"v":1,"f":"e30="}]},"rows":[{"s":3,"c":"bid","d":"MQ==","l":{"bid":2}}]}}`,
		`{"ends":[{"follower":"B/y","owner":"o","version":3,"event":{"s":18446744073709551615}}]}`,
		`{"receipts":[{"peer":"B/y","have":1,"applied":1,"next":-1}]}`,
		`{"head":1,"edges":[{"filter":null}],"dropped":[{"event":"x"}]}`, `{"keys":["a",""],"more":true}`, `{"ops":[{}],"ops":null}`, `null`, `{}`, `[]`, `{"answer":{"set":{"e":[{}]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, empty := range messages {
			m, again := empty(), empty()
			if json.Unmarshal(data, m) != nil {
				continue
			}
			first, err := wire.Encode(m)
			if err != nil {
				t.Fatalf("%s: read, but not written: %v", name, err)
			}
			if err := json.Unmarshal(first, again); err != nil {
				t.Fatalf("%s: %s is not read back: %v", name, first, err)
			}
			if second, err := wire.Encode(again); err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%s: %s, %v after %s", name, second, err, first)
			}
		}
	})
}

// event makes a message with these header lines, "Name: value" each.
func event(subject, lines string, data []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	for line := range strings.SplitSeq(lines, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
			m.Header[name] = append(m.Header[name], strings.TrimSpace(value))
		}
	}
	m.Data = data
	return m
}

// An event that is read out of a message's headers is the one that is written into them; its publisher can be named.
// spec: DLV-4, DLV-12
func FuzzEvent(f *testing.F) {
	id := objectid.ID{Class: "A", Name: "a b/é\u00a0%=,"}
	subject := wire.SubjectsOf("app").Event(id, "token", "bid")
	for _, e := range []edge.Event{
		{Publisher: id, Incarnation: "i", Seq: 3, At: 5, Topic: "bid", Data: []byte(`{"a":1}`), Number: 4, Last: map[string]uint64{"bid": 2, "won": 1}},
		{Publisher: id, Incarnation: "i", Seq: 1<<64 - 1, At: -1, Topic: "bid", Data: []byte("null")},
	} {
		m := nats.NewMsg(subject)
		wire.PutEvent(m, e)
		var b strings.Builder
		for name, values := range m.Header {
			for _, v := range values {
				b.WriteString(name + ": " + v + "\n")
			}
		}
		f.Add(m.Subject, b.String(), m.Data)
		f.Add(m.Subject, strings.Replace(b.String(), "bid=2", "bid=2,bid=3,=1,won", 1), m.Data)
		f.Add(m.Subject, strings.Replace(b.String(), "Weir-Seq: 3", "Weir-Seq: -3", 1), []byte(nil))
		f.Add("weir.app.evt._41.x.0.bid", strings.Replace(b.String(), "A%2F", "A%2", 1), []byte("{"))
	}
	f.Add("", "", []byte(nil))
	f.Fuzz(func(t *testing.T, subject, lines string, data []byte) {
		e, err := wire.GetEvent(event(subject, lines, data))
		if err != nil {
			return
		}
		if err := e.Publisher.Validate(); err != nil {
			t.Fatalf("the publisher of %+v: %v", e, err)
		}
		m := nats.NewMsg(subject)
		wire.PutEvent(m, e)
		for name, values := range m.Header {
			for _, v := range values {
				if strings.ContainsAny(name+v, "\r\n") {
					t.Fatalf("a header of more than a line: %q: %q", name, v)
				}
			}
		}
		again, err := wire.GetEvent(m)
		if err != nil || len(e.Last) != len(again.Last) {
			t.Fatalf("%+v is read back as %+v, %v", e, again, err)
		}
		if len(e.Last) == 0 {
			again.Last = e.Last
		}
		if len(e.Data) == 0 {
			again.Data = e.Data
		}
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("%+v is read back as %+v", e, again)
		}
	})
}

// A consumer's name gives its follower and version, or is refused; distinct ones are distinct.
// spec: OBJ-3
func FuzzConsumer(f *testing.F) {
	for _, s := range []string{"", "x", "_41_2fx=3", "_41_2fx=03", "_41_2fx=+3", "_41_2fx=", "=3", "_41_2FX=3", "a=b=3", "_41_2fx=18446744073709551616", wire.Consumer("A/"+strings.Repeat("\x00", 128), 7)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		follower, version, err := wire.ParseConsumer(name)
		if err == nil && follower != "" {
			if f, v, err := wire.ParseConsumer(wire.Consumer(follower, version)); err != nil || v != version || f != "" && f != follower {
				t.Fatalf("%q is read as %q %d, and its name as %q %d, %v", name, follower, version, f, v, err)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "wire: ") {
			t.Fatalf("%q: %v", name, err)
		}
		made := wire.Consumer(name, 7)
		if strings.ContainsAny(made, " .*>/\\\t\r\n\x00") {
			t.Fatalf("no consumer's name: %q", made)
		}
		if follower, version, err := wire.ParseConsumer(made); err != nil || version != 7 || follower != "" && follower != name {
			t.Fatalf("%q is read as %q %d, %v", made, follower, version, err)
		}
	})
}

// Any text becomes an error with a code and says the same on the other side.
// spec: OBJ-6
func FuzzError(f *testing.F) {
	for _, s := range []string{"", "hello", "timeout", "timeout: x", "timeoutx: y", "outcome unknown: timeout: x", ": x", "internal: internal: x", "no such method: A has no method \"x\"", "\xff: x", "overloaded:\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := wire.AsError(errors.New(text))
		if e.Code == "" || !strings.HasPrefix(e.Error(), string(e.Code)) || !strings.Contains(e.Error(), text) {
			t.Fatalf("%q became %q of code %q", text, e, e.Code)
		}
		if r := e.Code.Retryable(); r != "yes" && r != "no" && r != "maybe" {
			t.Fatalf("%s is retryable: %q", e.Code, r)
		}
		if again := wire.AsError(e); again != e {
			t.Fatalf("%q became %q", e, again)
		}
		data, err := wire.Encode(e)
		var back wire.Error
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || back.Code != e.Code || back.Error() != strings.ToValidUTF8(e.Error(), "\ufffd") && back.Error() != string([]rune(e.Error())) {
			t.Fatalf("%q came as %q, %v", e, back.Error(), err)
		}
	})
}
