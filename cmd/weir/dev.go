package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/luavm"
	"weir/pkg/settings"
	"weir/services/host/hostd"
	"weir/services/standalone"
)

type devCommand struct {
	App     string   `arg:"" optional:"" default:"." env:"WEIR_APP" help:"The app's folder."`
	Listen  string   `default:"127.0.0.1:8080" env:"WEIR_LISTEN" help:"Where the app is served."`
	Admin   string   `default:"127.0.0.1:9090" env:"WEIR_ADMIN" help:"Where health and metrics are served."`
	Data    string   `env:"WEIR_DATA" help:"The data folder; default: .weir in the app's."`
	Name    string   `env:"WEIR_APP_NAME" help:"The app's name; default: that of its folder."`
	Secrets string   `env:"WEIR_SECRETS_DIR" help:"A folder with the app's secrets as files."`
	Origins []string `env:"WEIR_ORIGINS" help:"Origins beside the app's own that may open websockets."`
	Proxies []string `env:"WEIR_TRUSTED_PROXIES" help:"Addresses or networks of proxies whose X-Forwarded-For is believed."`
	Log     string   `default:"info" env:"WEIR_LOG" help:"debug, info, warn or error."`
	settings.Limits
	settings.Clients
	settings.Heap
}

func (c *devCommand) Run(p *process) error {
	fail := func(err error) error { return exit{2, fmt.Errorf("weir dev: %w", err)} }
	log, err := settings.Log(c.Log, os.Stderr, false)
	if err == nil {
		err = errors.Join(c.Limits.Check(), c.Clients.Check())
	}
	if err != nil {
		return fail(err)
	}
	if c.Data == "" {
		c.Data = filepath.Join(c.App, ".weir")
	}
	secrets, err := settings.Secrets(os.LookupEnv, c.Secrets)
	if err != nil {
		return fail(err)
	}
	a, err := app.Load(c.App, app.Options{Name: c.Name, Secrets: secrets, Library: lualib.Open(log)})
	var mistakes app.Mistakes
	if errors.As(err, &mistakes) {
		return exit{2, err} // file:line: message, as weir check prints it
	}
	if err != nil {
		return fail(err)
	}
	for _, w := range a.Warnings {
		log.Warn(w.String())
	}
	luavm.WatchHeap(settings.HeapLimit(c.HeapBytes))
	listen, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fail(fmt.Errorf("cannot serve on %s: %w (choose another address with --listen)", c.Listen, err))
	}
	admin, err := net.Listen("tcp", c.Admin)
	if err != nil {
		return fail(errors.Join(fmt.Errorf("cannot serve health on %s: %w (choose another address with --admin)", c.Admin, err), listen.Close()))
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: c.Data, Log: log, Listen: listen, Origins: c.Origins, Port: true, Explain: true, Clients: c.Clients,
		Proxies: c.Proxies, Limits: hostd.LimitsOf(c.Limits)})
	if err != nil {
		return fail(errors.Join(err, listen.Close(), admin.Close()))
	}
	health := &http.Server{Handler: s.Admin()}
	go func() { _ = health.Serve(admin) }()
	fmt.Fprintf(p.stdout, "weir: %s is ready at http://%s/ (health at http://%s/healthz)\n", a.Name, listen.Addr(), admin.Addr())
	err = s.Run(ctx)
	if err := errors.Join(err, s.Close(), health.Close()); err != nil {
		return exit{1, fmt.Errorf("weir dev: %w", err)}
	}
	return nil
}
