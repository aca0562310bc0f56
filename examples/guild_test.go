package examples

import (
	"strings"
	"testing"
	"time"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

func visitGuild(t *testing.T, test func(house)) {
	testkit.Bubble(t, readApp(t, "guild"), hostd.Limits{}, func(t *testing.T, s *testkit.System) { test(house{t, s}) })
}

type mailbox struct {
	Unread, Devices int
	Watching        string
	Notes           []struct {
		Who, Tag, Text string
		Away, Unread   int
	}
}

func (h house) mailbox(name string) mailbox {
	h.Helper()
	return read[mailbox](h, h.MustCall("Account/"+name, "inbox"))
}

// spec: EDGE-7, EDGE-9, EDGE-12, CONN-5, LOG-1
func TestGuildTellsEveryDeviceOfAnAccountAndNobodyElse(t *testing.T) {
	visitGuild(t, func(h house) {
		phone, desk, eve := h.arrive("ada"), h.arrive("ada"), h.arrive("eve")
		defer phone.Close()
		defer desk.Close()
		defer eve.Close()
		h.must(phone, 1, `"op":"watch","tag":"quest"`)
		h.next(desk, `"watching":"quest"`) // the other device knows at once
		if in := h.mailbox("ada"); in.Devices != 2 || in.Watching != "quest" {
			h.Fatalf("ada's account: %+v", in)
		}
		h.refused(eve, 1, `"op":"spy","name":"ada"`, "follow refused: Account/ada:events")

		h.must(eve, 2, `"op":"post","tag":"trade","text":"a lantern"`)
		h.must(eve, 3, `"op":"post","tag":"quest","text":"the old mill"`)
		for _, device := range []*testkit.Socket{phone, desk} {
			note := h.next(device, `"kind":"note"`)
			if !strings.Contains(note, `"text":"the old mill"`) || !strings.Contains(note, `"unread":1}}`) ||
				!strings.Contains(note, `"from":{"id":"Account/ada","class":"Account","name":"ada"}`) {
				h.Fatalf("a device heard %s", note)
			}
		}
		h.nothing(eve, `"kind":"note"`)

		// Reading on one device is reading on both; one that goes leaves the other its edge.
		h.must(desk, 2, `"op":"read"`)
		if got := h.next(phone, `"kind":"read"`); !strings.Contains(got, `"unread":0`) {
			h.Fatalf("the phone heard %s", got)
		}
		desk.Close()
		h.next(phone, `"devices":1`)
		h.must(eve, 4, `"op":"post","tag":"quest","text":"the ford"`)
		h.next(phone, `"text":"the ford"`)

		// The filter's new tag takes the place of the old one.
		h.must(phone, 5, `"op":"watch","tag":"trade"`)
		h.must(eve, 5, `"op":"post","tag":"quest","text":"the tower"`)
		h.must(eve, 6, `"op":"post","tag":"trade","text":"a rope"`)
		h.next(phone, `"text":"a rope"`)
		h.must(phone, 6, `"op":"watch"`)
		h.must(eve, 7, `"op":"post","tag":"trade","text":"a saddle"`)
		time.Sleep(time.Second)
		if in := h.mailbox("ada"); len(in.Notes) != 3 || in.Notes[0].Text != "a rope" || in.Watching != "" {
			h.Fatalf("ada's account: %+v", in)
		}
	})
}

// Each device shows the board by an edge of its own, with a filter of its own.
func TestGuildDevicesFilterTheBoardForThemselves(t *testing.T) {
	visitGuild(t, func(h house) {
		phone, desk := h.arrive("ada"), h.arrive("ada")
		defer phone.Close()
		defer desk.Close()
		h.must(phone, 1, `"op":"show","tag":"trade"`)
		h.must(desk, 1, `"op":"show","tag":"meet"`)
		h.must(desk, 2, `"op":"show"`)
		h.refused(desk, 3, `"op":"show","tag":"gossip"`, "there is no such tag")
		h.MustCall("Board/main", "post", `"eve"`, `"meet"`, `"at the inn"`)
		h.MustCall("Board/main", "post", `"eve"`, `"trade"`, `"a lantern"`)
		if got := h.next(phone, `"topic":"post"`); !strings.Contains(got, "a lantern") {
			h.Fatalf("the phone shows %s", got)
		}
		for _, text := range []string{"at the inn", "a lantern"} {
			if got := h.next(desk, `"topic":"post"`); !strings.Contains(got, text) {
				h.Fatalf("the desk shows %s, want %s", got, text)
			}
		}
		if got := h.must(phone, 2, `"op":"show","tag":"meet"`); !strings.Contains(got, "at the inn") || strings.Contains(got, "lantern") {
			h.Fatalf("the latest of a tag: %s", got)
		}
	})
}

// spec: DLV-1, DLV-5, EDGE-7
func TestGuildKeepsUnreadWhileAway(t *testing.T) {
	visitGuild(t, func(h house) {
		ada := h.arrive("ada")
		h.must(ada, 1, `"op":"watch","tag":"quest"`)
		ada.Close()
		time.Sleep(10 * time.Minute) // the account sleeps
		h.MustCall("Board/main", "post", `"eve"`, `"quest"`, `"the old mill"`)
		h.MustCall("Board/main", "post", `"eve"`, `"meet"`, `"at the inn"`)
		h.Restart()
		h.MustCall("Board/main", "post", `"eve"`, `"quest"`, `"the ford"`)
		h.MustCall("Board/main", "post", `"ada"`, `"quest"`, `"her own"`)
		time.Sleep(time.Second)
		in := h.mailbox("ada")
		if in.Unread != 2 || in.Devices != 0 || len(in.Notes) != 2 || in.Notes[0].Text != "the ford" ||
			in.Notes[1].Text != "the old mill" || in.Notes[0].Away != 1 || in.Notes[1].Away != 1 {
			h.Fatalf("ada's account kept %+v", in)
		}
		ada = h.arrive("ada")
		defer ada.Close()
		h.must(ada, 1, `"op":"read"`)
		if in := h.mailbox("ada"); in.Unread != 0 || in.Devices != 1 {
			h.Fatalf("back again: %+v", in)
		}
		if _, err := h.Connect("/live?token=forged"); err == nil || !strings.HasPrefix(err.Error(), "401") {
			h.Fatalf("a forged token: %v", err)
		}
	})
}
