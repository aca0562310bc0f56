// Package browser runs the auction in real browsers.
package browser

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/services/standalone"
	"weir/test/testkit"
)

// TestAuction runs auction.mjs: two browsers see each other's bids, one that was offline catches up, and a closed tab
// frees its edges.
func TestAuction(t *testing.T) {
	if _, err := os.Stat("/usr/bin/chromium"); err != nil {
		t.Skip("no chromium: `make test` installs it where it may (Debian: apt-get install chromium)")
	}
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		t.Skip("no playwright-core: run `npm install` in test/browser")
	}
	log := testkit.Logger(t)
	a, err := app.Load("../../examples/auction", app.Options{Library: lualib.Open(log)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(t.TempDir(), "data"), Log: log, Listen: l})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	defer func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	// What `weir edges` shows, for the page's script.
	edges := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := s.Client().Call(r.Context(), wire.CallRequest{To: strings.TrimPrefix(r.URL.Path, "/"), Method: hostd.MethodEdges})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var results []json.RawMessage
		_ = json.Unmarshal(data, &results)
		_, _ = w.Write(results[0])
	}))
	defer edges.Close()
	limit, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	out, err := exec.CommandContext(limit, "node", "auction.mjs", "http://"+l.Addr().String()+"/", edges.URL+"/Hall/main").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "content") {
		t.Fatalf("%v\n%s", err, out)
	}
}
