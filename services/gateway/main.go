// Command weir-gateway serves an app's pages, its fetch handler and its websockets.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"weir/pkg/luavm"
	"weir/pkg/service"
	"weir/pkg/settings"
	"weir/services/gateway/gatewayd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var flags struct {
		service.Flags
		settings.Clients
		settings.Heap
		Listen  string   `default:"127.0.0.1:8080" env:"WEIR_LISTEN" help:"Where the app is served."`
		Origins []string `env:"WEIR_ORIGINS" help:"Origins beside the app's own that may open websockets."`
		Proxies []string `env:"WEIR_TRUSTED_PROXIES" help:"Addresses or networks of proxies whose X-Forwarded-For is believed."`
	}
	os.Exit(service.Run(ctx, "gateway", os.Args[1:], os.Environ(), os.Stdout, os.Stderr, &flags, func() service.Flags { return flags.Flags }, func(ctx context.Context, s *service.Service) error {
		if err := flags.Clients.Check(); err != nil {
			return err
		}
		settings.RaiseDescriptors(0)
		luavm.WatchHeap(settings.HeapLimit(flags.HeapBytes))
		l, err := net.Listen("tcp", flags.Listen)
		if err != nil {
			return fmt.Errorf("cannot serve on %s: %w (choose another address with --listen)", flags.Listen, err)
		}
		g, err := gatewayd.Open(ctx, gatewayd.Config{App: s.App, NATS: s.NATS, Log: s.Log, Origins: flags.Origins, Proxies: flags.Proxies, Clients: flags.Clients, Metrics: s.Metrics})
		if err != nil {
			return errors.Join(err, l.Close())
		}
		s.Ready(" at http://" + l.Addr().String() + "/")
		return g.Run(ctx, l)
	}))
}
