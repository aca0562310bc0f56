package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mount mounts a file system of size bytes at dir, until the test ends.
func mount(t *testing.T, dir string, size int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("mounting is not allowed here: %v", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
}

func unmount(t *testing.T, dir string) {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Errorf("unmount %s: %v", dir, err)
	}
}

// fill takes all the room that is left below dir, and gives what makes room again.
func fill(t *testing.T, dir string) (room func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 64<<10); ; {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			if len(piece) == 512 {
				break
			}
			piece = piece[:len(piece)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// stable are the codes that a call may fail with when the disk does: none that a retry or a backup would be tried for
// in vain.
var stable = []string{"database full", "outcome unknown", "unavailable"}

func checkCode(t *testing.T, what string, err error) {
	t.Helper()
	for _, c := range stable {
		if strings.HasPrefix(err.Error(), c+": ") {
			return
		}
	}
	t.Errorf("%s: not one of the codes %q: %v", what, stable, err)
}

// TestFullDisk lets the disk of the data folder run full: writes fail with a code, reads go on, and when there is room
// again everything works, and nothing that was answered is lost. With apart, the message server has a disk of its own.
// spec: OBJ-6, LOG-2, SQL-5, OPS-1
func TestFullDisk(t *testing.T) {
	t.Run("of the host", func(t *testing.T) {
		c := newCluster(t)
		mount(t, c.data, 24<<20)
		c.begin()
		fullDisk(t, c)
		c.stop("gateway", "router", "host")
	})
	t.Run("of weir dev", func(t *testing.T) {
		c := newCluster(t)
		mount(t, c.data, 64<<20)
		c.start("dev")
		c.ready("dev")
		c.runFile()
		fullDisk(t, c)
		c.stop("dev")
	})
}

func fullDisk(t *testing.T, c *cluster) {
	l := newLedger(t, c.client(), "")
	l.follow("k")
	ctx := context.Background()
	for i := range sources {
		if err := l.bump(ctx, fmt.Sprintf("s%d", i), true, ""); err != nil {
			t.Fatal(err)
		}
	}
	l.check("before", 60*time.Second)
	room := fill(t, c.data)
	pad := strings.Repeat("x", 32<<10)
	failed := map[string]int{}
	for range 400 { // what room the files had is used up
		n := 0
		for i := range sources {
			within, cancel := context.WithTimeout(ctx, 10*time.Second)
			if err := l.bump(within, fmt.Sprintf("s%d", i), true, pad); err != nil {
				n++
				failed[err.Error()[:min(len(err.Error()), 160)]]++
				checkCode(t, "a write on a full disk", err)
			}
			cancel()
		}
		if n == sources && len(failed) > 0 && sum(failed) > 3*sources {
			break
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(failed)), func(text string) bool { return strings.HasPrefix(text, "database full: ") }) {
		t.Errorf("no write was told that the disk is full: %v", failed)
	}
	_, err := ask(l.client, "Source/new", "bump", 1)
	if err != nil {
		checkCode(t, "a new object on a full disk", err)
	}
	c.lives()
	for i := range sources {
		if _, err := ask(l.client, fmt.Sprintf("Source/s%d", i), "weight"); err != nil {
			t.Errorf("a read of s%d on a full disk: %v", i, err)
		}
	}
	t.Logf("a full disk: writes failed %v, a new object: %v", failed, err)
	room()
	for _, name := range []string{"s0", "s1", "s2"} {
		until(t, 60*time.Second, name+" can be written when there is room again", func() string {
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := l.bump(within, name, true, ""); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	l.follow("late")
	stop := l.load()
	l.more(30)
	stop()
	l.check("there is room again", 150*time.Second)
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestReadOnly: a data folder that cannot be written is refused at the start, with its name; one whose objects turn
// read-only under a running host fails the calls of those it cannot open, with a code, while those that are open go
// on; and writable again everything works.
// spec: OBJ-6, LOG-2, OPS-1
func TestReadOnly(t *testing.T) {
	c := newCluster(t)
	mount(t, c.data, 32<<20)
	c.env = []string{"WEIR_LIMIT_IDLE=500ms"}
	c.begin()
	l := newLedger(t, c.client(), "")
	l.follow("k")
	bump := func(source string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return l.bump(ctx, source, true, "")
	}
	for i := range sources {
		if err := bump(fmt.Sprintf("s%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	c.stop("host")
	if err := unix.Mount("", c.data, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if text, refused := c.tries("host"); !refused || !strings.Contains(text, "data folder") || !strings.Contains(text, "read-only") {
		t.Errorf("the start on a read-only folder: %s", text)
	} else {
		t.Logf("the start is refused: %s", strings.TrimSpace(text))
	}
	if err := unix.Mount("", c.data, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	c.start("host")
	c.ready("host")
	l.check("writable again, after a start", 60*time.Second)

	objects := filepath.Join(c.data, "objects")
	if err := errors.Join(unix.Mount(objects, objects, "", unix.MS_BIND, ""), unix.Mount("", objects, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
	mounted := true
	t.Cleanup(func() {
		if mounted {
			unmount(t, objects)
		}
	})
	c.asleep() // what was open when the folder turned read-only goes on; from here nothing can be opened
	for _, name := range []string{"s0", "new"} {
		if err := bump(name); err == nil {
			t.Errorf("Source/%s was written on a read-only disk", name)
		} else {
			checkCode(t, "a write of "+name+" on a read-only disk", err)
			t.Logf("Source/%s: %v", name, err)
		}
		c.lives()
	}
	mounted = false
	unmount(t, objects)
	for _, name := range []string{"s0", "s1", "new"} {
		if err := bump(name); err != nil {
			t.Errorf("writable again: Source/%s: %v", name, err)
		}
	}
	l.check("writable again", 150*time.Second)
	c.stop("gateway", "router", "host")
}
