// Package house runs an app from outside this repository, unchanged, as a black box: the classes of the page that Weir
// grew from. `make test HOUSE=path` names its folder.
package house

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// app is the running app.
type app struct {
	t    *testing.T
	base string
}

func start(t *testing.T) *app {
	t.Helper()
	dir := os.Getenv("HOUSE")
	if dir == "" {
		t.Skip("no app named: make test HOUSE=path")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir) // as it was given to make
	}
	if _, err := os.Stat(filepath.Join(dir, "main.lua")); err != nil {
		t.Fatalf("HOUSE: %v", err)
	}
	work := t.TempDir()
	bin := filepath.Join(work, "weir")
	if out, err := exec.Command("go", "build", "-o", bin, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, "dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", filepath.Join(work, "data"), dir)
	cmd.Env = append(os.Environ(), "WEIR_SECRET_SESSION_KEY=test-key-test-key-test-key-test-key")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weir dev: %v\n%s", err, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	at := strings.Index(line, "http://")
	return &app{t, strings.TrimSuffix(strings.Fields(line[at:])[0], "/")}
}

func (a *app) post(path string, body any) (int, string) {
	a.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := http.Post(a.base+path, "application/json", bytes.NewReader(data))
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// call calls a method and wants this answer.
func (a *app) call(want string, class, name, method string, args ...any) {
	a.t.Helper()
	if args == nil {
		args = []any{}
	}
	_, got := a.post("/call", map[string]any{"class": class, "name": name, "method": method, "args": args})
	if got != want {
		a.t.Errorf("%s/%s:%s: got %s, want %s", class, name, method, got, want)
	}
}

// await calls until the answer is this one.
func (a *app) await(want string, class, name, method string, args ...any) {
	a.t.Helper()
	if args == nil {
		args = []any{}
	}
	got := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if _, got = a.post("/call", map[string]any{"class": class, "name": name, "method": method, "args": args}); got == want {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	a.t.Errorf("%s/%s:%s: got %s, want %s", class, name, method, got, want)
}

func (a *app) login(user string) string {
	a.t.Helper()
	_, text := a.post("/login", map[string]any{"user": user})
	var out struct{ Token string }
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Token == "" {
		a.t.Fatalf("login: %s", text)
	}
	return out.Token
}

// socket is a websocket whose frames are compared.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

func (a *app) socket(path string) *socket {
	a.t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(a.base, "http")+path, nil)
	if err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
	resp.Body.Close()
	a.t.Cleanup(func() { ws.Close() })
	return &socket{a.t, ws}
}

func (s *socket) send(v any) {
	s.t.Helper()
	if err := s.ws.WriteJSON(v); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) want(frame string) {
	s.t.Helper()
	_ = s.ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, data, err := s.ws.ReadMessage()
	if err != nil || string(data) != frame {
		s.t.Errorf("got %s %v, want %s", data, err, frame)
	}
}

func TestHouse(t *testing.T) {
	a := start(t)
	resp, err := http.Get(a.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(page), "served from web/") {
		t.Errorf("the page: %s", page)
	}

	// A bid and its event are one; what raises leaves neither.
	ok := `{"result":{"ok":true}}`
	a.call(ok, "Auction", "lot", "bid", "ada", 5)
	if _, got := a.post("/call", map[string]any{"class": "Auction", "name": "lot", "method": "bid_and_fail", "args": []any{"ada", 6}}); !strings.Contains(got, "on purpose") {
		t.Errorf("bid_and_fail: %s", got)
	}
	a.call(`{"result":[{"amount":5,"user":"ada"}]}`, "Auction", "lot", "bids")
	if _, got := a.post("/call", map[string]any{"class": "Auction", "name": "lot", "method": "undeclared"}); !strings.Contains(got, "nosuch") {
		t.Errorf("undeclared: %s", got)
	}

	// Who may follow.
	a.call(`{}`, "Account", "ada", "watch_bids", "lot")
	a.call(`{"error":"follow refused: Auction/lot:bid"}`, "Account", "mallory", "watch_bids", "lot")
	a.call(`{"error":"follow refused: Auction/lot:events"}`, "Account", "ada", "watch_private", "lot")
	a.call(`{"error":"follow refused: Guild/g:activity"}`, "Account", "ada", "watch_guild", "g")
	a.call(`{}`, "Guild", "g", "join", "ada")
	a.call(`{}`, "Account", "ada", "watch_guild", "g")
	a.call(`{}`, "Account", "ada", "watch", "lot")
	a.call(`{}`, "Account", "bob", "watch_bids", "lot", map[string]any{"user": "carol"})

	// Sockets: the platform's envelope, and frames of the program's own.
	feed := a.socket("/feed?token=" + a.login("ada"))
	feed.send(map[string]any{"op": "watch", "id": "lot", "topic": "bid"})
	feed.want(`{"ok":true,"re":"watch"}`)
	feed.send(map[string]any{"op": "spy", "id": "bob"})
	feed.want(`{"ok":false,"re":"spy"}`)
	feed.send(map[string]any{"op": "state"})
	feed.want(`{"n":1,"re":"state","room":"lobby"}`)
	ticker := a.socket("/ticker?auction=lot&token=" + a.login("carol"))
	a.await(`{"result":[{"id":"Account/ada","topic":"bid","transport":"connection"},{"id":"Account/ada","topic":"bid","transport":"object"},`+
		`{"id":"Account/bob","topic":"bid","transport":"object"},{"id":"Account/carol","topic":"bid","transport":"connection"}]}`, "Auction", "lot", "watchers", "bid")
	a.call(ok, "Auction", "lot", "bid", "carol", 7)
	feed.want(`{"type":"event","topic":"bid","from":{"id":"Auction/lot","class":"Auction","name":"lot"},"data":{"amount":7,"user":"carol"}}`)
	ticker.want(`{"lot":"lot","tick":7,"who":"carol"}`)
	a.call(ok, "Auction", "lot", "bid", "ada", 8)
	ticker.want(`{"lot":"lot","tick":8,"who":"ada"}`)
	feed.want(`{"type":"event","topic":"bid","from":{"id":"Auction/lot","class":"Auction","name":"lot"},"data":{"amount":8,"user":"ada"}}`)
	a.await(`{"result":[{"amount":7,"source":"lot","user":"carol"},{"amount":8,"source":"lot","user":"ada"}]}`, "Account", "ada", "seen")
	a.await(`{"result":[{"amount":7,"source":"lot","user":"carol"}]}`, "Account", "bob", "seen")

	// The end by an alarm reaches the account, and by its personal stream the device.
	a.call(`{}`, "Auction", "lot", "close_in", "100ms")
	feed.want(`{"type":"event","topic":"events","from":{"id":"Account/ada","class":"Account","name":"ada"},"data":{"auction":"lot","kind":"closed"}}`)
	a.await(`{"result":[{"data":"{\"by\":\"alarm\"}"}]}`, "Account", "ada", "notifications")

	// An identity that is dropped loses its devices, too.
	a.call(`{}`, "Auction", "lot", "evict", "ada")
	a.await(`{"result":[{"id":"Account/bob","topic":"bid","transport":"object"},{"id":"Account/carol","topic":"bid","transport":"connection"}]}`, "Auction", "lot", "watchers", "bid")
	a.call(ok, "Auction", "lot", "bid", "carol", 9)
	ticker.want(`{"lot":"lot","tick":9,"who":"carol"}`)
	a.call(`{}`, "Guild", "g", "post", "hello")
	a.await(`{"result":[{"amount":7,"source":"lot","user":"carol"},{"amount":8,"source":"lot","user":"ada"},{"amount":0,"source":"Guild/g","user":"hello"}]}`, "Account", "ada", "seen")

	// Without a token there is no socket; a closed one frees its edge.
	if _, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(a.base, "http")+"/feed", nil); err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a socket without a token: %v %v", resp, err)
	}
	ticker.ws.Close()
	a.await(`{"result":[{"id":"Account/bob","topic":"bid","transport":"object"}]}`, "Auction", "lot", "watchers", "bid")
	if status, _ := a.post("/nowhere", map[string]any{}); status != http.StatusNotFound {
		t.Error(fmt.Sprint("an unknown route: ", status))
	}
}
