package deploy

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/nats-io/nats.go"
	"golang.org/x/tools/txtar"

	"weir/pkg/bus"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/test/testkit"
)

// more is what the app has besides: each way in which a service uses NATS is used.
const more = `
local box = kv "box"
object "Keeper" {
    keep = function(state, v) box:set("kept", v) end,
    kept = function(state) return { value = box:get("kept"), keys = box:list{}, } end,
    drop = function(state) box:delete("kept") end,
}
object "Ear" {}
local Feed = connection "Feed" {
    open = function(conn) conn:follow(Source("a"), "tick") conn:send("open") end,
    event = "forward",
}
on "fetch" (function(request)
    if request.path == "/ws" then return request:upgrade(Feed, {}, objects "Ear" "e") end
    box:set("page", request.path)
    Source("a"):bump(1)
    local page, list = box:get("page"), box:list{ prefix = "pa" }
    box:delete("page")
    return { body = { page = page, keys = list.items } }
end)
`

// cluster is NATS with the base's configuration, and the services with its environment.
type cluster struct {
	t     *testing.T
	dir   string
	m     manifests
	addrs map[string]string // where each is reached: nats, admin of services, "http"
	procs map[string]*exec.Cmd
	log   *os.File
}

func password(_, key string) string { return "pw0" + key }

// replace replaces what must be there.
func replace(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("no %q in %q", from, text)
	}
	return strings.ReplaceAll(text, from, to)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), m: read(t), addrs: map[string]string{}, procs: map[string]*exec.Cmd{}}
	archive, err := txtar.ParseFile("../crash/app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive.Files[0].Data = append(archive.Files[0].Data, more...)
	testkit.WriteApp(t, filepath.Join(c.dir, "app"), archive)
	for name, pkg := range map[string]string{"nats": "github.com/nats-io/nats-server/v2", "host": "weir/services/host", "router": "weir/services/router", "gateway": "weir/services/gateway"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(c.dir, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if c.log, err = os.Create(filepath.Join(c.dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range c.procs {
			c.kill(name)
		}
		if t.Failed() {
			text := c.logged()
			t.Logf("the end of the log:\n%s", text[max(0, len(text)-6000):])
		}
		_ = c.log.Close()
	})
	for _, name := range []string{"nats", "monitor", "host", "router", "gateway", "http"} {
		c.addrs[name] = testkit.FreeAddr(t)
	}
	conf := c.m.configs["nats-config"].Data["nats.conf"]
	conf = replace(t, conf, `"0.0.0.0:4222"`, fmt.Sprintf("%q", c.addrs["nats"]))
	conf = replace(t, conf, `"0.0.0.0:8222"`, fmt.Sprintf("%q", c.addrs["monitor"]))
	conf = replace(t, conf, "store_dir: /data", fmt.Sprintf("store_dir: %q", filepath.Join(c.dir, "store")))
	if err := os.WriteFile(filepath.Join(c.dir, "nats.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start("nats", "--config", filepath.Join(c.dir, "nats.conf"))
	for _, name := range []string{"host", "router", "gateway"} {
		c.start(name)
	}
	for _, name := range []string{"host", "router", "gateway"} {
		c.ready(name)
	}
	return c
}

// start starts a process with the environment of its pod, but for the places of what it has and serves.
func (c *cluster) start(name string, args ...string) {
	c.t.Helper()
	env := c.m.env(c.t, name, password)
	for variable, value := range map[string]string{"WEIR_APP": filepath.Join(c.dir, "app"), "WEIR_SECRETS_DIR": c.dir, "WEIR_DATA": filepath.Join(c.dir, "data"),
		"TMPDIR": c.dir, "WEIR_ADMIN": c.addrs[name], "WEIR_LISTEN": c.addrs["http"]} {
		if _, ok := env[variable]; ok {
			env[variable] = value
		}
	}
	cmd := exec.Command(filepath.Join(c.dir, name), args...)
	for variable, value := range env {
		if variable == "WEIR_NATS_URL" {
			value = replace(c.t, value, "@nats:4222", "@"+c.addrs["nats"])
		}
		cmd.Env = append(cmd.Env, variable+"="+value)
	}
	cmd.Stdout, cmd.Stderr = c.log, c.log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.procs[name] = cmd
}

func (c *cluster) kill(name string) {
	_ = c.procs[name].Process.Kill()
	_ = c.procs[name].Wait()
	delete(c.procs, name)
}

func (c *cluster) logged() string {
	text, _ := os.ReadFile(c.log.Name())
	return string(text)
}

// until tries until it succeeds.
func until(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, body)
	}
	return string(body), err
}

func (c *cluster) ready(name string) {
	c.t.Helper()
	until(c.t, name, func(ctx context.Context) error {
		_, err := get(ctx, "http://"+c.addrs[name]+"/readyz")
		return err
	})
}

// connect connects as a user; what NATS refuses it comes out of refusals.
func (c *cluster) connect(user string) (nc *nats.Conn, refusals chan error) {
	c.t.Helper()
	refusals = make(chan error, 100)
	inbox := "_INBOX"
	if user != "operator" {
		inbox += "_" + user
	}
	nc, err := nats.Connect(fmt.Sprintf("nats://%s:%s@%s", user, password("", user), c.addrs["nats"]), nats.NoReconnect(), nats.Timeout(30*time.Second), nats.CustomInboxPrefix(inbox),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return nc, refusals
}

func call(ctx context.Context, client *bus.Client, id, method, args string) (string, error) {
	out, err := client.Call(ctx, wire.CallRequest{To: id, Method: method, Args: json.RawMessage(args)})
	return string(out), err
}

// TestUsers: with the users of the base everything works, and NATS refuses the services nothing.
func TestUsers(t *testing.T) {
	c := newCluster(t)
	nc, _ := c.connect("operator")
	client := bus.NewClient(nc, "app")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must := func(id, method, args string) string {
		t.Helper()
		out, err := call(ctx, client, id, method, args)
		if err != nil {
			t.Fatalf("%s:%s: %v", id, method, err)
		}
		return out
	}
	must("Sink/s", "watch", `["a"]`)
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+c.addrs["http"]+"/ws", http.Header{"Origin": {"http://" + c.addrs["http"]}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	defer resp.Body.Close()
	if _, data, err := ws.ReadMessage(); err != nil || string(data) != `"open"` {
		t.Fatalf("%q %v", data, err)
	}
	// The gateway calls Source, which publishes: Sink has it durably, the browser live.
	if body, err := get(ctx, "http://"+c.addrs["http"]+"/hello"); err != nil || !strings.Contains(body, `"page":"/hello"`) || !strings.Contains(body, `"key":"page"`) {
		t.Fatalf("%q %v", body, err)
	}
	if _, data, err := ws.ReadMessage(); err != nil || !strings.Contains(string(data), `"topic":"tick"`) {
		t.Errorf("%q %v", data, err)
	}
	seen := func(sink, key string) {
		t.Helper()
		until(t, "an event at "+sink, func(ctx context.Context) error {
			out, err := call(ctx, client, sink, "seen", `["a",0]`)
			if err == nil && !strings.Contains(out, `"key":`+key) {
				err = errors.New(out)
			}
			return err
		})
	}
	seen("Sink/s", "1")
	// A consumer's name holds only a hash of a long one: the host looks the consumer up. A host that starts again finds
	// its record.
	long := "Sink/" + strings.Repeat("L", 60)
	must(long, "watch", `["a"]`)
	c.kill("host")
	c.start("host")
	c.ready("host")
	must("Source/a", "bump", `[2]`)
	seen("Sink/s", "2")
	seen(long, "2")
	must("Keeper/k", "keep", `["x"]`)
	if out := must("Keeper/k", "kept", `[]`); !strings.Contains(out, `"value":"x"`) || !strings.Contains(out, `"kept"`) {
		t.Error(out)
	}
	must("Keeper/k", "drop", `[]`)
	c.assets(ctx, t)
	if text := c.logged(); strings.Contains(strings.ToLower(text), "permissions violation") {
		t.Error("NATS refused a service something that it does")
	}

	c.refusals(t)
}

// assets asks the router, as the host does, for each thing that it makes and deletes.
func (c *cluster) assets(ctx context.Context, t *testing.T) {
	nc, _ := c.connect("host")
	client := bus.NewClient(nc, "app")
	stream := wire.StreamRequest{Publisher: "Source/z", Token: "z", First: 1, Make: true, Before: 1}
	consumer := wire.ConsumerRequest{Publisher: "Source/z", Token: "z", Follower: "Sink/z", Version: 1, Start: 1, Topics: []string{"tick"}}
	for _, x := range []struct {
		op  string
		req any
	}{{wire.RouteStream, stream}, {wire.RouteConsumer, consumer}, {wire.RoutePurge, stream}, {wire.RouteUnconsume, consumer}, {wire.RouteDelete, stream}} {
		var reply struct {
			Error   *wire.Error `json:"error"`
			Missing bool        `json:"missing"`
		}
		if err := client.Route(ctx, x.op, x.req, &reply); err != nil || reply.Error != nil || reply.Missing {
			t.Errorf("%s: %v %+v", x.op, err, reply)
		}
	}
}

// refusals tries what each user must not do.
func (c *cluster) refusals(t *testing.T) {
	s := wire.SubjectsOf("app")
	source, err := objectid.Parse("Source/a")
	if err != nil {
		t.Fatal(err)
	}
	event, stream := s.Event(source, wire.CoreToken, "tick"), wire.Stream("app", source, "x")
	owner := "KV_" + wire.Bucket("app")
	for _, x := range []struct{ user, publish, subscribe []string }{
		{[]string{"gateway", "operator"}, []string{event, s.Deliver(1), s.Owner() + ".x", s.Receipts(1, "t"), s.Ends(1, "t"), s.Route(wire.RouteStream), s.Route(wire.RouteDelete),
			s.Route(wire.RoutePurge), s.Route(wire.RouteConsumer), s.Route(wire.RouteUnconsume), "$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.UPDATE." + stream,
			"$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.MSG.GET." + stream, "$JS.API.STREAM.MSG.DELETE." + stream,
			"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.CONSUMER.CREATE." + stream + ".c", "$JS.API.CONSUMER.CREATE." + stream + ".c." + event,
			"$JS.API.CONSUMER.DURABLE.CREATE." + stream + ".c", "$JS.API.CONSUMER.MSG.NEXT." + stream + ".c", "$JS.API.CONSUMER.DELETE." + stream + ".c",
			"$JS.API.DIRECT.GET." + stream, "$JS.API.CONSUMER.CREATE." + owner + ".c.$KV." + wire.Bucket("app") + ".>", "$JS.ACK.x", "_INBOX.x.y",
			"$KV." + wire.Bucket("app") + ".owner", "$JS.API.DIRECT.GET." + owner + ".$KV." + wire.Bucket("app") + ".owner"},
			[]string{">", "weir.>", "_INBOX_host.>", "_INBOX_router.>", s.Owner(), s.Calls("t"), s.Edges("t"), s.AllReceipts("t"), s.AllEnds("t"), s.Deliver(1), s.Gateways(), s.Route("*"), "$JS.>", "$KV.>", "$SYS.>"}},
		{[]string{"router"}, []string{event, s.Call(1, "t"), s.Deliver(1), s.Receipts(1, "t"), s.Ends(1, "t"), "$KV." + wire.Bucket("app") + ".owner",
			"$JS.API.STREAM.DELETE." + owner, "$JS.API.STREAM.PURGE." + owner, "$JS.API.STREAM.UPDATE." + owner, "$JS.API.CONSUMER.CREATE." + owner + ".c",
			"$JS.API.STREAM.MSG.GET." + stream, "$JS.ACK.x", "_INBOX.x.y"},
			[]string{">", "weir.>", "_INBOX_host.>", "_INBOX_gateway.>", s.AllEvents(source), s.Owner(), s.Calls("t"), s.Deliver(1), "$JS.>", "$KV.>"}},
		{[]string{"host"}, []string{s.Deliver(1), s.Gateways(), "$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.PURGE." + stream,
			"$JS.API.STREAM.DELETE." + owner, "$JS.API.CONSUMER.CREATE." + stream + ".c", "$JS.API.CONSUMER.CREATE." + stream + ".c." + event,
			"$JS.API.STREAM.MSG.GET." + stream, "_INBOX.x.y"},
			[]string{">", "weir.>", s.AllEvents(source), s.Route("*"), "$JS.>", "$KV.>"}},
	} {
		for _, user := range x.user {
			nc, refusals := c.connect(user)
			next := func() error {
				t.Helper()
				select {
				case err := <-refusals:
					return err
				case <-time.After(time.Minute):
					t.Fatalf("%s: NATS does not refuse what nobody may", user)
					return nil
				}
			}
			refused := func(what, subject string) {
				t.Helper()
				if err := nc.Flush(); err != nil {
					t.Fatal(err)
				}
				// What is allowed is followed by what never is, so that there is no waiting for what does not come.
				if err := errors.Join(nc.Publish("nobody.may", nil), nc.Flush()); err != nil {
					t.Fatal(err)
				}
				first := next()
				if strings.Contains(first.Error(), `"nobody.may"`) {
					t.Errorf("%s may %s %s", user, what, subject)
					return
				}
				if !errors.Is(first, nats.ErrPermissionViolation) || !strings.Contains(first.Error(), `"`+subject+`"`) {
					t.Errorf("%s: %s %s: %v", user, what, subject, first)
				}
				next()
			}
			for _, subject := range x.publish {
				if err := nc.Publish(subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				refused("publish", subject)
			}
			for _, subject := range x.subscribe {
				if _, err := nc.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				refused("subscribe to", subject)
			}
		}
	}
	if _, err := nats.Connect("nats://" + c.addrs["nats"]); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a user: %v", err)
	}
}
