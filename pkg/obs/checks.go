package obs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStarting is what is said before a service serves.
var ErrStarting = errors.New("the service starts")

// Starting is the check of a service that does not serve yet.
func Starting(context.Context) error { return ErrStarting }

// NATS checks that the connection stands.
func NATS(nc *nats.Conn) Check {
	return func(context.Context) error {
		if !nc.IsConnected() {
			return fmt.Errorf("NATS is away (%s)", nc.Status())
		}
		return nil
	}
}

// JetStream checks that JetStream answers.
func JetStream(nc *nats.Conn) Check {
	return func(ctx context.Context) error {
		js, err := jetstream.New(nc)
		if err == nil {
			_, err = js.AccountInfo(ctx)
		}
		if err != nil {
			return fmt.Errorf("JetStream: %w", err)
		}
		return nil
	}
}

// Writable checks that files can be written in a folder.
func Writable(dir string) Check {
	return func(context.Context) error {
		path := filepath.Join(dir, "ready")
		if err := os.WriteFile(path, []byte("ok\n"), 0o600); err != nil {
			return fmt.Errorf("the data folder cannot be written: %w", err)
		}
		return os.Remove(path)
	}
}
