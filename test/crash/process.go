package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"weir/pkg/bus"
	"weir/pkg/wire"
	"weir/services/standalone"
)

// process is one `weir dev`.
type process struct {
	t      testing.TB
	bin    string
	app    string
	data   string
	cmd    *exec.Cmd
	nc     *nats.Conn
	client *bus.Client
	log    *os.File
	env    []string // beside the test's own
}

// start starts it and waits for its word that it is ready.
func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.bin, "dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", p.data, p.app)
	p.cmd.Stderr, p.cmd.Env = p.log, append(os.Environ(), p.env...)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	started := p.cmd.Process
	p.t.Cleanup(func() { _ = started.Kill() }) // should the test fail before it does
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "ready") {
		_ = p.cmd.Wait()
		text, _ := os.ReadFile(p.log.Name())
		p.t.Fatalf("weir dev did not start: %q %v\n%s", line, err, text)
	}
	b, err := os.ReadFile(filepath.Join(p.data, "run.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var f standalone.RunFile
	if err := json.Unmarshal(b, &f); err != nil {
		p.t.Fatal(err)
	}
	if p.nc, err = nats.Connect(f.NATS, nats.Token(f.Token), nats.NoReconnect(), nats.Timeout(30*time.Second)); err != nil {
		p.t.Fatal(err)
	}
	p.client = bus.NewClient(p.nc, f.App)
}

// kill ends it without a word.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.nc.Close()
}

// stop ends it as an operator does.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
	p.nc.Close()
}

// call calls a method; args are Go values.
func call(ctx context.Context, c *bus.Client, id, method string, args ...any) (json.RawMessage, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	if args == nil {
		data = []byte("[]")
	}
	out, err := c.Call(ctx, wire.CallRequest{To: id, Method: method, Args: data})
	if err != nil {
		return nil, err
	}
	var results []json.RawMessage
	if err := json.Unmarshal(out, &results); err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0], nil
}

// keys reads a list page by page.
func keys(ctx context.Context, c *bus.Client, id, method string, args ...any) ([]int, error) {
	var all []int
	for after := 0; ; {
		data, err := call(ctx, c, id, method, append(args[:len(args):len(args)], after)...)
		if err != nil {
			return nil, fmt.Errorf("%s:%s: %w", id, method, err)
		}
		var rows []struct{ ID, Key int }
		if err := json.Unmarshal(data, &rows); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return all, nil
		}
		for _, r := range rows {
			all = append(all, r.Key)
			after = r.ID
		}
	}
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
