package system

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"weir/services/gateway/gatewayd"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

// Other hosts' pages connect if they are named, and nothing that only looks like one of them.
// spec: CONN-14
func TestAllowedOrigins(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		nc, err := s.Standalone.Connect("gateway 2")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		g, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, NATS: nc, Log: s.Log, Origins: []string{"https://www.friend.test", "http://localhost:3000"}})
		if err != nil {
			t.Fatal(err)
		}
		l := testkit.NewPipe()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { _ = g.Run(ctx, l); close(done) }()
		for origin, want := range map[string]bool{
			"https://www.friend.test": true, "http://localhost:3000": true, "http://app.test": true,
			"http://www.friend.test": false, "https://friend.test": false, "https://www.friend.test.evil.test": false, "https://evil.test/https://www.friend.test": false,
			"https://www.friend.test:444": false, "http://localhost": false, "http://app.test@evil.test": false, "app.test": false, "file://": false,
		} {
			c, err := testkit.DialSocket(l, "/ws", http.Header{"Origin": {origin}})
			if (err == nil) != want {
				t.Errorf("origin %q: %v", origin, err)
			}
			if err == nil {
				c.Close()
			}
		}
		cancel()
		<-done
	})
}

// What only holds the name of the own host, or says two things at once, is another's page: 403, and no websocket.
// spec: CONN-14
func TestStrangeOrigins(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const handshake = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
		const host, own, evil = "Host: app.test\r\n", "Origin: http://app.test\r\n", "Origin: http://evil.test\r\n"
		for lines, want := range map[string]string{
			host:                            "101",
			host + own:                      "101",
			host + "Origin:\r\n":            "403",
			host + "Origin:  \r\n":          "403",
			host + own + own:                "403",
			host + own + evil:               "403",
			host + evil + own:               "403",
			host + "Origin:\r\n" + own:      "403",
			host + own + "Origin:\r\n":      "403",
			host + own + "oRIGIN: null\r\n": "403",
			"Host:\r\nOrigin: null\r\n":     "403",
			"Host:\r\nOrigin:\r\n":          "403",
			"Host:\r\nOrigin: app.test\r\n": "403",
			"Host:\r\n" + evil:              "403",
			host + evil + "X-Forwarded-Host: evil.test\r\n":                             "403",
			host + evil + "Forwarded: host=evil.test\r\nX-Original-Host: evil.test\r\n": "403",
		} {
			got := exchange(t, s.Listener(), []string{"GET"}, handshake+lines+"\r\n")
			if len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("%q: %q, want %s", lines, got, want)
			}
		}
		for _, origin := range []string{
			"http://app.test@evil.example", "http://app.test:80@evil.example", "http://app.test%40evil.example", "http://evil.example/app.test", "http://evil.example//app.test", "http://evil.example/@app.test",
			"http://evil.example?app.test", "http://evil.example?@app.test", "http://evil.example#app.test", "http://evil.example#@app.test", "http://evil.example;app.test", "http://evil.example,app.test",
			`http://evil.example\@app.test`, `http://app.test\@evil.example`, `http:\\app.test`, "http:app.test", "http:/app.test", "//evil.example/app.test", "/app.test", "app.test",
			"http://app.test, http://evil.example", "http://evil.example, http://app.test", "http://evil.example http://app.test", "http://app.test http://evil.example",
			"http://app.test.", "http://.app.test", "http://app.test:", "http://app.test:0", "http://app\u0131.test", "http://\uff41pp.test", "http://\u0430pp.test", "http://app%2etest", "http://[app.test]",
		} {
			got := exchange(t, s.Listener(), []string{"GET"}, handshake+host+"Origin: "+origin+"\r\n\r\n")
			if len(got) != 1 || !strings.HasPrefix(got[0], "403") {
				t.Errorf("%q: %q", origin, got)
			}
		}
	})
}
