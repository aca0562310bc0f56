package hostd

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder is a data folder that this process holds. Its lock is the lease of everything in it.
type Folder struct {
	Dir  string
	ID   string
	lock *os.File
}

// OpenFolder makes or opens a data folder and locks it. A second process is refused with the first one's pid.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be made: %w", err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data folder cannot be used: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(path)
		_ = f.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another process (pid %s): stop it, or give this one its own with --data", dir, strings.TrimSpace(string(pid)))
	}
	d := &Folder{Dir: dir, lock: f}
	if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the data folder cannot be used: %w", err)
	}
	if d.ID, err = folderID(filepath.Join(dir, "id")); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the data folder cannot be used: %w", err)
	}
	return d, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func folderID(path string) (string, error) {
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	id := hex.EncodeToString(b)
	return id, writeDurably(path, id+"\n")
}

// writeDurably writes a small file whole or not at all.
func writeDurably(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Close gives the folder back.
func (d *Folder) Close() error { return d.lock.Close() }
