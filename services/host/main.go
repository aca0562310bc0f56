// Command weir-host runs the objects of an app.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"weir/pkg/luavm"
	"weir/pkg/obs"
	"weir/pkg/service"
	"weir/pkg/settings"
	"weir/services/host/hostd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var flags struct {
		service.Flags
		Data string `default:"./data" env:"WEIR_DATA" help:"The data folder."`
		settings.Limits
		settings.Heap
	}
	os.Exit(service.Run(ctx, "host", os.Args[1:], os.Environ(), os.Stdout, os.Stderr, &flags, func() service.Flags { return flags.Flags }, func(ctx context.Context, s *service.Service) error {
		folder, err := hostd.OpenFolder(flags.Data)
		if err != nil {
			return err
		}
		luavm.WatchHeap(settings.HeapLimit(flags.HeapBytes))
		h, err := hostd.Open(ctx, hostd.Config{App: s.App, NATS: s.NATS, Folder: folder, Log: s.Log, Limits: hostd.LimitsOf(flags.Limits), Metrics: s.Metrics})
		if err != nil {
			return errors.Join(err, folder.Close())
		}
		s.Ready("", obs.Writable(flags.Data))
		return errors.Join(h.Run(ctx), h.Close(), folder.Close())
	}))
}
