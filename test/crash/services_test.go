package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/bus"
	"weir/test/testkit"
)

// cluster is a NATS server and the three services, each a process of its own.
type cluster struct {
	t      *testing.T
	dir    string
	nats   string // address
	app    string // folder
	listen string // address of the gateway
	admins map[string]string
	procs  map[string]*exec.Cmd
	log    *os.File
}

// newCluster builds all programs. app is an app's folder, or empty for the one of app.txtar.
func newCluster(t *testing.T, app string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), nats: testkit.FreeAddr(t), app: app, listen: testkit.FreeAddr(t), admins: map[string]string{}, procs: map[string]*exec.Cmd{}}
	if app == "" {
		archive, err := txtar.ParseFile("app.txtar")
		if err != nil {
			t.Fatal(err)
		}
		c.app = filepath.Join(c.dir, "app")
		testkit.WriteApp(t, c.app, archive)
	}
	for name, pkg := range map[string]string{"nats-server": "github.com/nats-io/nats-server/v2", "host": "weir/services/host", "router": "weir/services/router", "gateway": "weir/services/gateway"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(c.dir, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	var err error
	if c.log, err = os.Create(filepath.Join(c.dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range c.procs {
			c.kill(name)
		}
		if t.Failed() {
			text, _ := os.ReadFile(c.log.Name())
			t.Logf("the end of the services' log:\n%s", text[max(0, len(text)-4000):])
		}
		_ = c.log.Close()
	})
	return c
}

// start starts a process: "nats", or a service ("router 2" is a second router).
func (c *cluster) start(name string, more ...string) {
	c.t.Helper()
	kind, _, _ := strings.Cut(name, " ")
	var cmd *exec.Cmd
	if kind == "nats" {
		_, port, _ := net.SplitHostPort(c.nats)
		cmd = exec.Command(filepath.Join(c.dir, "nats-server"), "-a", "127.0.0.1", "-p", port, "-js", "-sd", filepath.Join(c.dir, "store"))
	} else {
		c.admins[name] = testkit.FreeAddr(c.t)
		args := []string{"--nats", "nats://" + c.nats, "--admin", c.admins[name], "--log", "warn"}
		switch kind {
		case "host":
			args = append(args, "--data", filepath.Join(c.dir, "data"))
		case "gateway":
			args = append(args, "--listen", c.listen)
		}
		cmd = exec.Command(filepath.Join(c.dir, kind), append(append(args, more...), c.app)...)
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

// stop ends a process by SIGTERM, as Kubernetes does.
func (c *cluster) stop(name string) {
	c.t.Helper()
	if err := c.procs[name].Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.procs[name].Wait(); err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
	delete(c.procs, name)
}

func (c *cluster) get(name, path string) (int, string) {
	resp, err := http.Get("http://" + c.admins[name] + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// ready waits until the services say that they are.
func (c *cluster) ready(names ...string) {
	c.t.Helper()
	for _, name := range names {
		for deadline := time.Now().Add(60 * time.Second); ; {
			status, body := c.get(name, "/readyz")
			if status == http.StatusOK {
				break
			}
			if time.Now().After(deadline) {
				c.t.Fatalf("%s is not ready: %d %s", name, status, body)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

func (c *cluster) client() *bus.Client {
	c.t.Helper()
	nc, err := bus.Connect("nats://"+c.nats, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return bus.NewClient(nc, filepath.Base(c.app))
}

// TestServices runs the services as processes of their own, started in the wrong order, and kills each of them and NATS
// in turn under load, NATS also with the loss of all that it stored.
// spec: OPS-1, OPS-4, DLV-11
func TestServices(t *testing.T) {
	c := newCluster(t, "")
	for _, name := range []string{"gateway", "host", "router"} {
		c.start(name)
	}
	<-time.After(300 * time.Millisecond)
	if status, _ := c.get("host", "/readyz"); status == http.StatusOK {
		t.Error("a host without NATS says that it is ready")
	}
	c.start("nats")
	c.start("router 2")
	c.ready("gateway", "host", "router", "router 2")
	w, client := newWorld(t), c.client()
	for i := range sinks {
		w.follow(client, fmt.Sprintf("k%d", i))
	}
	for round, step := range []struct {
		what string
		do   func()
	}{
		{"host killed", func() { c.kill("host"); c.start("host") }},
		{"router killed", func() { c.kill("router"); c.start("router") }},
		{"NATS killed", func() { c.kill("nats"); c.start("nats") }},
		{"gateway killed", func() { c.kill("gateway"); c.start("gateway") }},
		{"NATS killed and emptied", c.emptyNATS},
		{"host and NATS killed", func() { c.kill("host"); c.kill("nats"); c.start("host"); c.start("nats") }},
		{"host stopped", func() { c.stop("host"); c.start("host") }},
		{"router stopped", func() { c.stop("router 2"); c.start("router 2") }},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { w.load(ctx, client); close(done) }()
		<-time.After(400 * time.Millisecond)
		step.do()
		c.ready("gateway", "host", "router", "router 2")
		w.follow(client, fmt.Sprintf("r%d", round))
		<-time.After(400 * time.Millisecond)
		cancel()
		<-done
		w.check(client, step.what)
	}
	for _, name := range []string{"gateway", "router", "router 2", "host"} {
		c.stop(name)
	}
}

// TestOtherFolder: the objects of an app live in one data folder; a host with another one is refused.
// spec: OPS-1
func TestOtherFolder(t *testing.T) {
	c := newCluster(t, "")
	c.start("nats")
	c.start("host")
	c.ready("host")
	for _, data := range []string{filepath.Join(c.dir, "data"), filepath.Join(c.dir, "other")} {
		out, err := exec.Command(filepath.Join(c.dir, "host"), "--nats", "nats://"+c.nats, "--admin", "127.0.0.1:0", "--data", data, filepath.Join(c.dir, "app")).CombinedOutput()
		var exit *exec.ExitError
		if err == nil {
			t.Fatalf("a second host started with %s", data)
		}
		if exit, _ = err.(*exec.ExitError); exit == nil || exit.ExitCode() != 2 || !strings.Contains(string(out), "data folder") { //nolint:errorlint // as os/exec gives it
			t.Errorf("%s: %v %s", data, err, out)
		}
	}
}

// TestAdmin: health, readiness and metrics; an unknown setting stops the start.
// spec: OPS-5
func TestAdmin(t *testing.T) {
	c := newCluster(t, "")
	c.start("nats")
	c.start("host")
	c.start("router")
	c.ready("host", "router")
	client := c.client()
	ctx, cancel := within(60 * time.Second)
	defer cancel()
	if _, err := call(ctx, client, "Source/a", "bump", 1); err != nil {
		t.Fatal(err)
	}
	if status, body := c.get("host", "/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d %s", status, body)
	}
	_, metrics := c.get("host", "/metrics")
	for _, line := range []string{`weir_calls_total{app="app",class="Source",outcome="ok",service="host"} 1`, `weir_call_seconds_count{app="app",class="Source",service="host"} 1`,
		`weir_barrier_seconds_count`, `weir_objects_awake{app="app",service="host"} 1`, `weir_mailbox_depth`, `weir_edges{`, `weir_oldest_undelivered_seconds`, `go_goroutines`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	if strings.Contains(metrics, "Source/a") {
		t.Error("an object's name is in the metrics")
	}
	c.kill("nats")
	deadline := time.Now().Add(60 * time.Second)
	for status := http.StatusOK; status != http.StatusServiceUnavailable; status, _ = c.get("host", "/readyz") {
		if time.Now().After(deadline) {
			t.Fatal("ready without NATS")
		}
		<-time.After(20 * time.Millisecond)
	}
	cmd := exec.Command(filepath.Join(c.dir, "router"), filepath.Join(c.dir, "app"))
	cmd.Env = append(os.Environ(), "WEIR_ADMN=127.0.0.1:1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unknown setting WEIR_ADMN") {
		t.Errorf("%v %s", err, out)
	}
	// Logs are JSON with fixed keys.
	text, err := os.Open(c.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	for s := bufio.NewScanner(text); s.Scan(); {
		if line := s.Text(); strings.Contains(line, `"service":"host"`) && !strings.Contains(line, `"app":"app"`) {
			t.Errorf("a log line without the app: %s", line)
		}
	}
}
