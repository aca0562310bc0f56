package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"weir/pkg/bus"
	"weir/pkg/failure"
	"weir/pkg/objectid"
	"weir/pkg/settings"
	"weir/pkg/value"
	"weir/pkg/wire"
	"weir/services/standalone"
)

// running is how a command finds a running app.
type running struct {
	Data string `env:"WEIR_DATA" help:"The data folder of a running weir dev; default: .weir here."`
	NATS string `name:"nats" env:"WEIR_NATS_URL" help:"The NATS of running services, instead."`
	Name string `env:"WEIR_APP_NAME" help:"The app's name, with --nats."`
}

func (r running) connect() (*nats.Conn, *bus.Client, error) {
	url, name, token := r.NATS, r.Name, ""
	if url == "" {
		if r.Data == "" {
			r.Data = ".weir"
		}
		b, err := os.ReadFile(filepath.Join(r.Data, "run.json"))
		if err != nil {
			return nil, nil, fmt.Errorf("no app runs in the data folder %s (%w): start it with `weir dev`, or name its folder with --data", r.Data, err)
		}
		var f standalone.RunFile
		if err := json.Unmarshal(b, &f); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", filepath.Join(r.Data, "run.json"), err)
		}
		url, name, token = f.NATS, f.App, f.Token
	}
	if name == "" {
		return nil, nil, errors.New("with --nats give the app's name with --name")
	}
	log, err := settings.Log("error", os.Stderr, false)
	if err != nil {
		return nil, nil, err
	}
	nc, err := bus.Connect(url, "weir command", log, nats.Token(token), nats.RetryOnFailedConnect(false), nats.Timeout(5*time.Second))
	if err != nil {
		return nil, nil, fmt.Errorf("NATS at %s: %w: does the app run, and NATS at that address?", url, err)
	}
	return nc, bus.NewClient(nc, name), nil
}

type callCommand struct {
	Object string   `arg:"" help:"The object, as Class/name."`
	Method string   `arg:"" help:"Its method."`
	Args   []string `arg:"" optional:"" passthrough:"" help:"Arguments, each a JSON value."`
	running
}

// Run calls a method and prints one JSON result per line.
func (c *callCommand) Run(p *process) error {
	id, err := objectid.Parse(c.Object)
	if err != nil {
		return exit{2, fmt.Errorf("weir call: %w", err)}
	}
	if !objectid.ValidWord(c.Method) {
		return exit{2, fmt.Errorf("weir call: %q cannot be the name of a method", c.Method)}
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		data, err := value.Canonical([]byte(a), fmt.Sprintf("argument %d", i+1), value.MaxArguments)
		if err != nil {
			return exit{2, fmt.Errorf("weir call: %w (arguments are JSON: text needs quotes, '\"ada\"')", err)}
		}
		args[i] = string(data)
	}
	results, err := c.call(p.ctx, id, c.Method, "["+strings.Join(args, ",")+"]")
	if err != nil {
		return err
	}
	for _, r := range results {
		fmt.Fprintln(p.stdout, string(r))
	}
	return nil
}

func (r running) call(ctx context.Context, id objectid.ID, method, args string) ([]json.RawMessage, error) {
	nc, client, err := r.connect()
	if err != nil {
		return nil, exit{2, fmt.Errorf("weir: %w", err)}
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	data, err := client.Call(ctx, wire.CallRequest{To: id.String(), Method: method, Args: json.RawMessage(args)})
	if err != nil {
		return nil, exit{1, errors.New(failure.Of(err).Terminal())}
	}
	var results []json.RawMessage
	if err := json.Unmarshal(data, &results); err != nil {
		return nil, exit{1, err}
	}
	return results, nil
}
