package examples

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

func visitChat(t *testing.T, test func(house)) {
	testkit.Bubble(t, readApp(t, "chat"), hostd.Limits{}, func(t *testing.T, s *testkit.System) { test(house{t, s}) })
}

// arrive opens a socket under a name, as a page of chat or guild does.
func (h house) arrive(name string) *testkit.Socket {
	h.Helper()
	status, _, body, err := h.HTTP("POST", "/api/enter", `{"name":"`+name+`"}`)
	if err != nil || status != 200 {
		h.Fatalf("enter: %d %s %v", status, body, err)
	}
	c, err := h.Connect("/live?token=" + read[struct{ Token string }](h, body).Token)
	if err != nil {
		h.Fatal(err)
	}
	h.next(c, `"type":"welcome"`)
	return c
}

// ask sends a request and gives its answer.
func (h house) ask(c *testkit.Socket, id int, fields string) string {
	h.Helper()
	h.send(c, fmt.Sprintf(`{"id":%d,%s}`, id, fields))
	return h.next(c, fmt.Sprintf(`"re":%d`, id))
}

// must is ask, for what is not refused.
func (h house) must(c *testkit.Socket, id int, fields string) string {
	h.Helper()
	answer := h.ask(c, id, fields)
	if !strings.Contains(answer, `"ok":true`) {
		h.Fatalf("%s: %s", fields, answer)
	}
	return answer
}

func (h house) refused(c *testkit.Socket, id int, fields, why string) {
	h.Helper()
	if answer := h.ask(c, id, fields); !strings.Contains(answer, why) || !strings.Contains(answer, `"ok":false`) {
		h.Fatalf("%s: %s, want %q", fields, answer, why)
	}
}

// nothing reads until no frame comes any more, and fails at one that contains a text.
func (h house) nothing(c *testkit.Socket, text string) {
	h.Helper()
	for range 20 {
		frame, err := c.Next()
		if err != nil {
			return
		}
		if strings.Contains(frame, text) {
			h.Fatalf("got %s", frame)
		}
	}
}

type message struct {
	N         int
	Who, Text string
}

func texts(messages []message) (s string) {
	for _, m := range messages {
		s += fmt.Sprintf("%d %s: %s\n", m.N, m.Who, m.Text)
	}
	return s
}

// spec: EDGE-1, EDGE-2, EDGE-8, CONN-6, LOG-1
func TestChatOnlyMembersHearAndARemovedOneNoMore(t *testing.T) {
	visitChat(t, func(h house) {
		ada, ben, eve := h.arrive("ada"), h.arrive("ben"), h.arrive("eve")
		defer ada.Close()
		defer ben.Close()
		defer eve.Close()
		h.must(ada, 1, `"op":"open","room":"tea"`)
		h.next(ben, `"room":"tea"`) // the list of rooms is live
		h.must(ada, 2, `"op":"enter","room":"tea"`)

		// Without joining, nothing of a room is to be had.
		h.refused(eve, 1, `"op":"enter","room":"tea"`, "follow refused: Room/tea:message")
		h.refused(eve, 2, `"op":"since","room":"tea","n":0`, "join this room first")
		h.refused(eve, 3, `"op":"say","room":"tea","text":"hello"`, "join this room first")
		h.refused(eve, 4, `"op":"join","room":"nowhere"`, "there is no such room")
		h.refused(eve, 5, `"op":"open","room":"tea"`, "there is a room of this name already")

		h.must(ben, 1, `"op":"join","room":"tea"`)
		here := h.must(ben, 2, `"op":"enter","room":"tea"`)
		if !strings.Contains(here, `"names":["ada","ben"]`) || !strings.Contains(here, `"owner":"ada"`) {
			h.Fatalf("ben entered to %s", here)
		}

		var want string
		for i := range 20 {
			c, who := ada, "ada"
			if i%2 == 1 {
				c, who = ben, "ben"
			}
			h.send(c, fmt.Sprintf(`{"op":"say","room":"tea","text":"line %d","id":%d}`, i, 10+i))
			time.Sleep(20 * time.Millisecond)
			want += fmt.Sprintf("%d %s: line %d\n", i+1, who, i)
		}
		for _, c := range []*testkit.Socket{ada, ben} {
			var got []message
			for len(got) < 20 {
				got = append(got, read[struct{ Message message }](h, h.next(c, `"type":"message"`)).Message)
			}
			if texts(got) != want {
				h.Fatalf("heard\n%s, want\n%s", texts(got), want)
			}
		}

		h.refused(ben, 40, `"op":"remove","room":"tea","who":"ada"`, "only the owner")
		h.must(ada, 41, `"op":"remove","room":"tea","who":"ben"`)
		h.must(ada, 42, `"op":"say","room":"tea","text":"among ourselves"`)
		h.next(ben, `"removed":"ben"`) // the lobby tells him; the room itself no longer does
		h.nothing(ben, "among ourselves")
		h.nothing(eve, "among ourselves")
		h.refused(ben, 43, `"op":"join","room":"tea"`, "the owner has removed you")
		h.refused(ben, 44, `"op":"enter","room":"tea"`, "follow refused")
		h.refused(ben, 45, `"op":"since","room":"tea","n":0`, "join this room first")
		if here := h.MustCall("Room/tea", "here", `"ada"`); here != `{"names":["ada"],"owner":"ada"}` {
			h.Fatalf("here: %s", here)
		}
	})
}

// spec: CONN-6, CONN-11, OBJ-6
func TestChatCatchesUpAfterAnAbsence(t *testing.T) {
	visitChat(t, func(h house) {
		ada, ben := h.arrive("ada"), h.arrive("ben")
		defer ada.Close()
		h.must(ada, 1, `"op":"open","room":"tea"`)
		h.must(ada, 2, `"op":"enter","room":"tea"`)
		h.must(ben, 1, `"op":"join","room":"tea"`)
		h.must(ben, 2, `"op":"enter","room":"tea"`)
		h.must(ada, 3, `"op":"say","room":"tea","text":"first"`)
		h.next(ben, `"text":"first"`)
		ben.Close()
		time.Sleep(6 * time.Second)
		if here := h.next(ada, `"type":"here"`); !strings.Contains(here, `"names":["ada"`) {
			h.Fatalf("after ben has gone: %s", here)
		}
		if here := h.MustCall("Room/tea", "here", `"ada"`); here != `{"names":["ada"],"owner":"ada"}` {
			h.Fatalf("here: %s", here)
		}

		var want string
		for i := range 150 { // more than one answer holds
			h.MustCall("Room/tea", "say", `"ada"`, fmt.Sprintf(`"missed %d"`, i))
			want += fmt.Sprintf("%d ada: missed %d\n", i+2, i)
		}
		h.Restart()

		ben = h.arrive("ben")
		defer ben.Close()
		answer := h.must(ben, 1, `"op":"enter","room":"tea","n":1`)
		got := read[struct{ Data struct{ Messages []message } }](h, answer).Data.Messages
		for id := 2; ; id++ {
			answer := h.must(ben, id, fmt.Sprintf(`"op":"since","room":"tea","n":%d`, got[len(got)-1].N))
			more := read[struct{ Data []message }](h, answer).Data
			if len(more) == 0 {
				break
			}
			got = append(got, more...)
		}
		if texts(got) != want {
			h.Fatalf("caught up with\n%s", texts(got))
		}
		h.MustCall("Room/tea", "say", `"ada"`, `"live again"`)
		h.next(ben, `"text":"live again"`)
	})
}

func TestChatRefusesWhatIsNoNameTokenOrMessage(t *testing.T) {
	visitChat(t, func(h house) {
		if _, err := h.Connect("/live?token=forged"); err == nil || !strings.HasPrefix(err.Error(), "401") {
			h.Fatalf("a forged token: %v", err)
		}
		if status, _, body, _ := h.HTTP("POST", "/api/enter", `{"name":"  "}`); status != 422 {
			h.Fatalf("no name: %d %s", status, body)
		}
		if status, _, body, _ := h.HTTP("GET", "/", ""); status != 200 || !strings.Contains(body, "<title>") {
			h.Fatalf("the page: %d %s", status, body)
		}
		ada := h.arrive("ada")
		defer ada.Close()
		h.refused(ada, 1, `"op":"open","room":"Tea Room"`, "a room's name has 1 to 24")
		h.must(ada, 2, `"op":"open","room":"tea"`)
		h.refused(ada, 3, `"op":"say","room":"tea","text":"  "`, "a message needs a text")
		h.refused(ada, 4, `"op":"say","room":"tea","text":"`+strings.Repeat("x", 2001)+`"`, "at most 2000 bytes")
		h.refused(ada, 5, `"op":"remove","room":"tea","who":"ada"`, "the owner of a room stays")
	})
}
