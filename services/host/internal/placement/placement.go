// Package placement keeps the record that says which host owns an app's objects. With local durability all partitions
// belong to one data folder: the record names its id, and a host with another folder is refused. The folder's own lock
// sees to it that one process at a time uses it.
package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/pkg/wire"
)

// Record is the owner of all partitions, in the app's bucket under Key.
type Record struct {
	Folder string `json:"folder"` // id of the data folder
	Host   string `json:"host"`   // where it runs, for people
	Token  string `json:"token"`  // under which it takes calls
}

// Key is the record's.
const Key = "owner"

// ErrOther is the error of a claim that another data folder has.
var ErrOther = errors.New("another data folder owns the objects")

// Claim writes the record, or finds out that it cannot. It must be made again when NATS comes back: it may have lost
// the record.
func Claim(ctx context.Context, js jetstream.JetStream, app string, mine Record) error {
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: wire.Bucket(app), Description: "Weir: who owns the objects of " + app})
	if err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	data, err := wire.Encode(mine)
	if err != nil {
		return err
	}
	if _, err = kv.Create(ctx, Key, data); !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	entry, err := kv.Get(ctx, Key)
	if err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	var now Record
	if err := json.Unmarshal(entry.Value(), &now); err != nil {
		return fmt.Errorf("placement: the record %s of bucket %s: %w", Key, wire.Bucket(app), err)
	}
	if now.Folder != mine.Folder {
		return fmt.Errorf("%w: folder %s on %s; this one is %s. Objects live in one data folder: start the host with that one, or, if it is gone for good, delete the key %q of the bucket %s",
			ErrOther, now.Folder, now.Host, mine.Folder, Key, wire.Bucket(app))
	}
	if _, err := kv.Update(ctx, Key, data, entry.Revision()); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	return nil
}

// ClaimUntil tries until it succeeds, another folder has the objects, or ctx ends.
func ClaimUntil(ctx context.Context, js jetstream.JetStream, app string, mine Record, log *slog.Logger) error {
	for n := 0; ; n++ {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := Claim(try, js, app, mine)
		cancel()
		if err == nil || errors.Is(err, ErrOther) {
			return err
		}
		if n == 2 {
			log.Warn("NATS with JetStream does not answer; the host waits for it", "error", err)
		}
		t := time.NewTimer(min(5*time.Second, 250*time.Millisecond<<min(n, 5)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
