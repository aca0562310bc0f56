package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/tools/txtar"

	"weir/pkg/bus"
	"weir/services/standalone"
	"weir/test/testkit"
)

var long = flag.Bool("long", false, "more rounds, and faults that take a minute to be noticed")

// programs builds all programs, once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return "", err
	}
	for name, pkg := range map[string]string{"nats-server": "github.com/nats-io/nats-server/v2", "weir": "weir/cmd/weir",
		"host": "weir/services/host", "router": "weir/services/router", "gateway": "weir/services/gateway"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w\n%s", err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// cluster is a NATS server and the three services, each a process of its own.
type cluster struct {
	t      *testing.T
	bin    string
	dir    string
	app    string
	nats   string // address of the NATS server
	data   string // the host's folder
	listen string // address of the gateway
	admins map[string]string
	links  map[string]*link // a service with one reaches NATS through it
	env    []string
	procs  map[string]*exec.Cmd
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &cluster{t: t, bin: bin, dir: dir, app: filepath.Join(dir, "app"), data: filepath.Join(dir, "data"), nats: testkit.FreeAddr(t), listen: testkit.FreeAddr(t),
		admins: map[string]string{}, links: map[string]*link{}, procs: map[string]*exec.Cmd{}}
	testkit.WriteApp(t, c.app, archive)
	t.Cleanup(func() {
		for name := range c.procs {
			c.kill(name)
		}
		if t.Failed() {
			for _, name := range []string{"host", "router", "gateway", "dev"} {
				if text := c.log(name); text != "" {
					t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-2500):])
				}
			}
		}
	})
	return c
}

// command gives the command line of "nats", "host", "router", "gateway" or "dev".
func (c *cluster) command(name string) *exec.Cmd {
	if name == "nats" {
		_, port, _ := net.SplitHostPort(c.nats)
		return exec.Command(filepath.Join(c.bin, "nats-server"), "-a", "127.0.0.1", "-p", port, "-js", "-sd", c.store())
	}
	c.admins[name] = testkit.FreeAddr(c.t)
	var args []string
	if name == "dev" {
		args = []string{"dev", "--data", c.data, "--listen", c.listen}
	} else {
		server := c.nats
		if l := c.links[name]; l != nil {
			server = l.addr()
		}
		args = []string{"--nats", "nats://" + server, "--log", "warn"}
		switch name {
		case "host":
			args = append(args, "--data", c.data)
		case "gateway":
			args = append(args, "--listen", c.listen)
		}
	}
	program := map[string]string{"dev": "weir"}[name]
	if program == "" {
		program = name
	}
	cmd := exec.Command(filepath.Join(c.bin, program), append(args, "--admin", c.admins[name], c.app)...)
	cmd.Env = append(os.Environ(), c.env...)
	return cmd
}

func (c *cluster) store() string { return filepath.Join(c.dir, "store") }

// start starts processes.
func (c *cluster) start(names ...string) {
	c.t.Helper()
	for _, name := range names {
		cmd := c.command(name)
		log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			c.t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		err = cmd.Start()
		log.Close()
		if err != nil {
			c.t.Fatal(err)
		}
		c.procs[name] = cmd
	}
}

// begin starts everything and waits until it is ready.
func (c *cluster) begin() {
	c.t.Helper()
	c.start("nats", "router", "host", "gateway")
	c.ready("router", "host", "gateway")
}

// log gives what a process wrote.
func (c *cluster) log(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.dir, name+".log"))
	return string(text)
}

func (c *cluster) kill(name string) {
	p := c.procs[name]
	_ = p.Process.Kill()
	_ = p.Wait()
	until(c.t, 60*time.Second, name+" has ended", func() string { // somebody else may have waited for it
		if p.Process.Signal(syscall.Signal(0)) == nil {
			return "it lives"
		}
		return ""
	})
	delete(c.procs, name)
}

func (c *cluster) stop(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := c.procs[name].Process.Signal(syscall.SIGTERM); err != nil {
			c.t.Fatal(err)
		}
		if err := c.procs[name].Wait(); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
		delete(c.procs, name)
	}
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

// ready waits until services say that they are.
func (c *cluster) ready(names ...string) {
	c.t.Helper()
	for _, name := range names {
		until(c.t, 60*time.Second, name+" is ready", func() string {
			if status, body := c.get(name, "/readyz"); status != http.StatusOK {
				return fmt.Sprint(status, " ", body)
			}
			return ""
		})
	}
}

func (c *cluster) connect() *nats.Conn {
	c.t.Helper()
	nc, err := bus.Connect("nats://"+c.nats, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return nc
}

// runFile tells where the message server of "dev" listens.
func (c *cluster) runFile() {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, "run.json"))
	var f standalone.RunFile
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.nats = f.Token + "@" + strings.TrimPrefix(f.NATS, "nats://")
}

func (c *cluster) client() *bus.Client { return bus.NewClient(c.connect(), "app") }
