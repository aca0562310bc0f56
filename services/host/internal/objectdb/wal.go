package objectdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"weir/pkg/wire"

	"golang.org/x/sys/unix"
)

// walFile is the descriptor through which commits are made durable. It lives and dies with its connection: a stale
// one has no links, and syncing it succeeds without effect.
type walFile struct {
	mu   sync.Mutex // guards the fields; held over the sync, which is all this is for
	path string
	file *os.File
	dirs []string // folders whose entries are not known to be durable
}

// prepareFolders makes the folders of an object's file.
func (w *walFile) prepareFolders(path string) error {
	w.path = path + "-wal"
	dir := filepath.Dir(path)
	w.dirs = []string{dir}
	if _, err := os.Stat(path); err != nil {
		// A new file: its folder and the class's may be new, too, or made by an object that never synced them.
		w.dirs = append(w.dirs, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir)))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		var at *os.PathError
		if errors.As(err, &at) {
			err = at.Err // not where
		}
		return fmt.Errorf("objectdb: %w", wire.Errorf(wire.Unavailable, "the object's folder cannot be made: %v", err))
	}
	return nil
}

// Sync makes every commit that came before it durable, with the entries of new folders and files. It may run beside
// the next transaction. An error means that nobody knows what is durable: the DB must be thrown away.
func (db *DB) Sync() error {
	w := &db.wal
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.path == "" {
		return nil
	}
	if w.file == nil {
		f, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			return nil // nothing was written since the file was opened
		}
		if err != nil {
			return fmt.Errorf("objectdb: sync %s: %w", db.id, err)
		}
		w.file = f
	}
	if err := unix.Fdatasync(int(w.file.Fd())); err != nil {
		return fmt.Errorf("objectdb: sync %s: %w", db.id, err)
	}
	for len(w.dirs) > 0 {
		if err := syncFolder(w.dirs[len(w.dirs)-1]); err != nil {
			return fmt.Errorf("objectdb: sync %s: %w", db.id, err)
		}
		w.dirs = w.dirs[:len(w.dirs)-1]
	}
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (w *walFile) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path = ""
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// Checkpoint copies a WAL that has grown back into the database. Call it between transactions.
func (db *DB) Checkpoint() error {
	if db.o.Memory || db.commits < 32 {
		return nil // not worth a look
	}
	db.commits = 0
	info, err := os.Stat(db.path + "-wal")
	if err != nil || info.Size() < db.o.CheckpointSize {
		return nil
	}
	if err := db.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return db.broken("checkpoint", err)
	}
	return nil
}

// setPages bounds the database: its own limit, and room for an undelivered log of some bytes.
func (db *DB) setPages(log int64) error {
	const page = 4096
	pages := (db.o.MaxBytes + log*5/4) / page
	// Moved in steps, since a log that grows and shrinks would else cost a statement per call.
	if pages = (pages + 255) &^ 255; pages == db.pages {
		return nil
	}
	s, _, err := db.conn.PrepareTransient(fmt.Sprintf("PRAGMA max_page_count=%d", pages))
	if err != nil {
		return db.broken("begin", err)
	}
	defer s.Finalize()
	if _, err = s.Step(); err == nil {
		db.pages = pages
	}
	return err
}
