package examples

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

// readApp reads an example's folder as it is deployed.
func readApp(t *testing.T, dir string) *txtar.Archive {
	t.Helper()
	files, root := &txtar.Archive{}, os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(name, ".") {
				return fs.SkipDir // a data folder
			}
			return nil
		}
		data, err := fs.ReadFile(root, name)
		files.Files = append(files.Files, txtar.File{Name: name, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// house drives the auction house as its pages do.
type house struct {
	*testing.T
	*testkit.System
}

type facts struct {
	Lot, Leader, Outbid               string
	Step, Round, Price, Next, Bids    int
	Opened, Ends, Closed, Reopens, At int64
}

type inbox struct {
	Unread int
	Notes  []struct {
		Kind, Lot, Who       string
		Amount, Away, Unread int
	}
	Watching []string
}

func visit(t *testing.T, test func(house)) {
	testkit.Bubble(t, readApp(t, "auction"), hostd.Limits{}, func(t *testing.T, s *testkit.System) { test(house{t, s}) })
}

func read[T any](h house, data string) (v T) {
	h.Helper()
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		h.Fatalf("%s: %v", data, err)
	}
	return v
}

// lot is what the lot's page shows.
func (h house) lot(id string) facts {
	h.Helper()
	return read[struct{ Facts facts }](h, h.MustCall("Auction/"+id, "look")).Facts
}

func (h house) inbox(name string) inbox {
	h.Helper()
	return read[inbox](h, h.MustCall("Account/"+name, "inbox"))
}

// enter logs a bidder in and takes a seat in front of a lot.
func (h house) enter(name, lot string) *testkit.Socket {
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
	h.send(c, `{"op":"enter","lot":"`+lot+`","id":1}`)
	h.next(c, `"re":1`)
	return c
}

func (h house) send(c *testkit.Socket, frame string) {
	h.Helper()
	if err := c.Send(frame); err != nil {
		h.Fatal(err)
	}
}

// next gives the next frame that contains a text.
func (h house) next(c *testkit.Socket, text string) string {
	h.Helper()
	for {
		frame, err := c.Next()
		if err != nil {
			h.Fatalf("waiting for a frame with %s: %v", text, err)
		}
		if strings.Contains(frame, text) {
			return frame
		}
	}
}

// heard gives the facts of the next event of a topic.
func (h house) heard(c *testkit.Socket, topic string) facts {
	h.Helper()
	return read[struct{ Data facts }](h, h.next(c, `"topic":"`+topic+`"`)).Data
}

// spec: CONN-2, CONN-4, CONN-6, EDGE-2, EDGE-12, LOG-1, OBJ-6, HTTP-5
func TestAuctionBidsReachEverySeatLive(t *testing.T) {
	visit(t, func(h house) {
		ada, ben := h.enter("ada", "heron"), h.enter("ben", "heron")
		defer ada.Close()
		defer ben.Close()
		window, err := h.Connect("/live")
		if err != nil {
			h.Fatal(err)
		}
		defer window.Close()
		time.Sleep(time.Second)

		h.send(ada, `{"op":"bid","lot":"heron","amount":60,"id":2}`)
		for _, seat := range []*testkit.Socket{ada, ben} {
			if f := h.heard(seat, "bid"); f.Leader != "ada" || f.Price != 60 || f.Next != 65 || f.Bids != 1 {
				h.Fatalf("heard %+v", f)
			}
		}
		// A visitor's window shows the board, in the platform's envelope.
		if f := h.heard(window, "board"); f.Leader != "ada" || f.Price != 60 {
			h.Fatalf("the window shows %+v", f)
		}

		for frame, refusal := range map[string]string{
			`{"op":"bid","lot":"heron","amount":64,"id":3}`:   "too low: the next bid is £65 or more",
			`{"op":"bid","lot":"heron","amount":65.5,"id":3}`: "a bid is a whole number of pounds, at most £1,000,000",
			`{"op":"bid","lot":"nowhere","amount":9,"id":3}`:  "there is no such lot",
		} {
			h.send(ben, frame)
			if got := h.next(ben, `"re":3`); !strings.Contains(got, `"error":"`+refusal+`"`) || !strings.Contains(got, `"ok":false`) {
				h.Fatalf("%s: %s", frame, got)
			}
		}
		h.send(ada, `{"op":"bid","lot":"heron","amount":90,"id":4}`)
		h.next(ada, "the highest bid is yours already")
		if f := h.lot("heron"); f.Bids != 1 || f.Step != 2 {
			h.Fatalf("refused bids left %+v", f)
		}

		// Ben outbids Ada: her other tabs would hear of it too, Ben's do not.
		h.send(ben, `{"op":"bid","lot":"heron","amount":65,"id":5}`)
		h.next(ada, `"kind":"outbid"`)
		for {
			frame, err := ben.Next()
			if err != nil {
				break
			}
			if strings.Contains(frame, `"kind":"outbid"`) {
				h.Fatalf("ben got %s", frame)
			}
		}
	})
}

// spec: ALRM-1, DLV-1, DLV-5, EDGE-7, LOG-7
func TestAuctionEndsAndReopensWhileNobodyLooks(t *testing.T) {
	visit(t, func(h house) {
		ada := h.enter("ada", "heron")
		h.send(ada, `{"op":"bid","lot":"heron","amount":60,"id":2}`)
		h.next(ada, `"re":2`)
		ada.Close() // the tab
		time.Sleep(time.Second)

		for _, bid := range []string{`["ben",65]`, `["cleo",70]`} {
			a := read[[]json.RawMessage](h, bid)
			h.MustCall("Account/"+strings.Trim(string(a[0]), `"`), "bid", `"heron"`, string(a[1]))
		}
		time.Sleep(time.Second)
		// Cleo's bid outbid Ben, not Ada: the filter keeps it from her.
		if in := h.inbox("ada"); in.Unread != 1 || in.Notes[0].Kind != "outbid" || in.Notes[0].Who != "ben" || in.Notes[0].Away != 1 {
			h.Fatalf("ada was outbid while away: %+v", in)
		}

		end := time.UnixMilli(h.lot("heron").Ends)
		h.Restart() // an alarm survives it
		time.Sleep(time.Until(end) - 50*time.Millisecond)
		if f := h.lot("heron"); f.Closed != 0 {
			h.Fatalf("closed early: %+v", f)
		}
		time.Sleep(2 * time.Second)
		f := h.lot("heron")
		if f.Closed < f.Ends || f.Leader != "cleo" || f.Price != 70 {
			h.Fatalf("closed as %+v", f)
		}
		if _, err := h.Call("Auction/heron", "bid", `"ben"`, "100"); err == nil || err.Error() != "the hammer has fallen; a new round opens shortly" {
			h.Fatalf("a late bid: %v", err)
		}
		for name, kind := range map[string]string{"ada": "lost", "ben": "lost", "cleo": "won"} {
			if n := h.inbox(name).Notes[0]; n.Kind != kind || n.Who != "cleo" || n.Amount != 70 || n.Away != 1 {
				h.Fatalf("%s was told %+v", name, n)
			}
		}

		// Back again: the bell shows both, and the next round opens by itself.
		ada = h.enter("ada", "heron")
		defer ada.Close()
		if in := h.inbox("ada"); in.Unread != 2 || len(in.Notes) != 2 || len(in.Watching) != 1 {
			h.Fatalf("ada came back to %+v", in)
		}
		h.send(ada, `{"op":"read","id":3}`)
		if got := h.next(ada, `"kind":"read"`); !strings.Contains(got, `"unread":0`) {
			h.Fatalf("after reading: %s", got)
		}
		time.Sleep(20 * time.Second)
		if next := h.heard(ada, "opened"); next.Round != 2 || next.Bids != 0 || next.Next != 60 || next.Leader != "" {
			h.Fatalf("reopened as %+v", next)
		}
		h.send(ada, `{"op":"guest","lot":"heron","id":4}`)
		if f := h.heard(ada, "bid"); f.Leader != "Guest Iris" || f.Price != 60 || f.Round != 2 {
			h.Fatalf("in the new round: %+v", f)
		}
	})
}

// A bid in the last seconds leaves time for an answer.
func TestAuctionLateBidExtends(t *testing.T) {
	visit(t, func(h house) {
		end := time.UnixMilli(h.lot("chair").Ends)
		time.Sleep(time.Until(end) - 3*time.Second)
		h.MustCall("Auction/chair", "bid", `"ada"`, "40")
		time.Sleep(5 * time.Second) // past the first end
		if f := h.lot("chair"); f.Closed != 0 || f.Ends < end.UnixMilli()+6900 {
			h.Fatalf("no grace: %+v", f)
		}
		time.Sleep(6 * time.Second)
		if f := h.lot("chair"); f.Closed == 0 {
			h.Fatalf("still open: %+v", f)
		}
	})
}

// spec: HTTP-4, HTTP-5
func TestAuctionRefusesForgedTokensAndBadNames(t *testing.T) {
	visit(t, func(h house) {
		if _, err := h.Connect("/live?token=forged"); err == nil || !strings.HasPrefix(err.Error(), "401") {
			h.Fatalf("a forged token: %v", err)
		}
		for _, name := range []string{``, `   `, `Guest Iris`, `a\u0007b`, strings.Repeat("x", 41)} {
			if status, _, body, _ := h.HTTP("POST", "/api/enter", `{"name":"`+name+`"}`); status != 422 {
				h.Fatalf("name %q: %d %s", name, status, body)
			}
		}
		if status, _, _, _ := h.HTTP("GET", "/api/lots/nowhere", ""); status != 404 {
			h.Fatalf("an unknown lot: %d", status)
		}
		if status, _, body, _ := h.HTTP("GET", "/", ""); status != 200 || !strings.Contains(body, "<title>") {
			h.Fatalf("the page: %d %s", status, body)
		}
		if _, err := h.Call("Auction/nowhere", "look"); err == nil || !strings.Contains(err.Error(), "there is no lot") {
			h.Fatalf("an unknown lot: %v", err)
		}
	})
}
