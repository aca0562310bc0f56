// Command weir-router authorises follows of an app, and keeps its streams and consumers.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"weir/pkg/service"
	"weir/services/router/routerd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var flags struct{ service.Flags }
	os.Exit(service.Run(ctx, "router", os.Args[1:], os.Environ(), os.Stdout, os.Stderr, &flags, func() service.Flags { return flags.Flags }, func(ctx context.Context, s *service.Service) error {
		r, err := routerd.Open(ctx, routerd.Config{App: s.App, NATS: s.NATS, Log: s.Log})
		if err != nil {
			return err
		}
		s.Ready("")
		return errors.Join(r.Run(ctx), r.Close())
	}))
}
