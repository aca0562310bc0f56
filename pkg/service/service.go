// Package service is what the three services' main programs share: flags and environment, the log, the app, the
// connection to NATS, the admin port, and a stop by signal.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/lualib"
	"weir/pkg/obs"
	"weir/pkg/settings"
)

// Flags are those of every service.
type Flags struct {
	App     string `arg:"" optional:"" default:"." env:"WEIR_APP" help:"The app's folder."`
	NATS    string `name:"nats" env:"WEIR_NATS_URL" default:"nats://127.0.0.1:4222" help:"The NATS servers, with JetStream."`
	Creds   string `env:"WEIR_NATS_CREDS" help:"A credentials file for NATS."`
	Name    string `env:"WEIR_APP_NAME" help:"The app's name; default: that of its folder."`
	Secrets string `env:"WEIR_SECRETS_DIR" help:"A folder with the app's secrets as files."`
	Admin   string `default:"127.0.0.1:9090" env:"WEIR_ADMIN" help:"Where health and metrics are served."`
	Log     string `default:"info" env:"WEIR_LOG" help:"debug, info, warn or error."`
}

// Service is a service that starts.
type Service struct {
	Name    string
	App     *app.App
	NATS    *nats.Conn
	Log     *slog.Logger
	Metrics *obs.Metrics
	Stdout  io.Writer

	checks atomic.Pointer[[]obs.Check]
}

// Ready tells that the service serves from now on, as long as the checks pass. It prints one line.
func (s *Service) Ready(what string, checks ...obs.Check) {
	all := append([]obs.Check{obs.NATS(s.NATS), obs.JetStream(s.NATS)}, checks...)
	s.checks.Store(&all)
	fmt.Fprintf(s.Stdout, "weir-%s: %s is ready%s\n", s.Name, s.App.Name, what)
}

// Run parses args into flags (a struct with Flags embedded, which get gives), starts what services share and calls
// serve, which works until its context ends. It gives the exit code: 2 for usage and start-up.
func Run(ctx context.Context, name string, args, env []string, stdout, stderr io.Writer, flags any, get func() Flags, serve func(context.Context, *Service) error) int {
	code, done := 0, false
	parser, err := kong.New(flags, kong.Name("weir-"+name), kong.Description("The "+name+" service of a Weir app."), kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { code, done = c, true }), kong.ExplicitGroups([]kong.Group{{Key: "limits", Title: "Limits:"}}))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if done {
		return code
	}
	if err == nil {
		err = settings.CheckEnvironment(env)
	}
	if err == nil {
		err = start(ctx, name, get(), stdout, serve)
	}
	var mistakes app.Mistakes
	switch {
	case err == nil:
		return 0
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, mistakes)
	default:
		fmt.Fprintf(stderr, "weir-%s: %v\n", name, err)
	}
	return 2
}

func start(ctx context.Context, name string, f Flags, stdout io.Writer, serve func(context.Context, *Service) error) error {
	log, err := settings.Log(f.Log, os.Stderr, true)
	if err != nil {
		return err
	}
	secrets, err := settings.Secrets(os.LookupEnv, f.Secrets)
	if err != nil {
		return err
	}
	s := &Service{Name: name, Log: log, Stdout: stdout}
	if s.App, err = app.Load(f.App, app.Options{Name: f.Name, Secrets: secrets, Library: lualib.Open(log)}); err != nil {
		return err
	}
	s.Log = log.With("app", s.App.Name, "service", name)
	s.Metrics = obs.New(s.App.Name, name)
	starting := []obs.Check{obs.Starting}
	s.checks.Store(&starting)
	l, err := net.Listen("tcp", f.Admin)
	if err != nil {
		return fmt.Errorf("cannot serve health on %s: %w (choose another address with --admin)", f.Admin, err)
	}
	admin := &http.Server{Handler: s.Metrics.Admin(func() []obs.Check { return *s.checks.Load() })}
	go func() { _ = admin.Serve(l) }()
	defer admin.Close()
	// Answers come below an inbox of the service's own, so that NATS can keep the others' users from reading them.
	options := []nats.Option{nats.CustomInboxPrefix("_INBOX_" + name)}
	if f.Creds != "" {
		options = append(options, nats.UserCredentials(f.Creds))
	}
	if s.NATS, err = bus.Connect(f.NATS, "weir "+name, s.Log, options...); err != nil {
		return fmt.Errorf("NATS at %s: %w", redacted(f.NATS), err)
	}
	defer s.NATS.Close()
	err = serve(ctx, s)
	if errors.Is(err, context.Canceled) {
		return nil // stopped before it served
	}
	return err
}

// redacted is a NATS address (or several) without its passwords.
func redacted(addresses string) string {
	list := strings.Split(addresses, ",")
	for i, a := range list {
		if u, err := url.Parse(a); err == nil {
			list[i] = u.Redacted()
		} else {
			list[i] = "an address that cannot be read"
		}
	}
	return strings.Join(list, ",")
}
