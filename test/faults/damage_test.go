package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/pkg/objectid"
)

// file finds an object's file.
func (c *cluster) file(class, name string) string {
	c.t.Helper()
	path := filepath.Join(c.data, "objects", objectid.ID{Class: class, Name: name}.File())
	if _, err := os.Stat(path); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

var damages = []struct {
	what   string
	damage func(good []byte) []byte
}{
	{"overwritten in the middle", func(good []byte) []byte {
		b := bytes.Clone(good)
		copy(b[len(b)/4:3*len(b)/4], bytes.Repeat([]byte{0xa5}, len(b)))
		return b
	}},
	{"cut to half", func(good []byte) []byte { return good[:len(good)/2] }},
	{"a text", func([]byte) []byte { return []byte(strings.Repeat("this is no database\n", 1000)) }},
	{"with a broken header", func(good []byte) []byte {
		b := bytes.Clone(good)
		copy(b, bytes.Repeat([]byte{0}, 100))
		return b
	}},
}

// TestDamagedFile damages the file of a sleeping object: its calls fail with corrupt, the log says so, the file stays as
// it is, others go on, and with a good copy in its place the object works again, without a restart.
// spec: OBJ-6, LOG-2, DLV-9
func TestDamagedFile(t *testing.T) {
	c := newCluster(t)
	c.env = []string{"WEIR_LIMIT_IDLE=400ms"}
	c.begin()
	l := newLedger(t, c.client(), "")
	for i := range sources {
		for range 40 {
			if _, err := ask(l.client, fmt.Sprintf("Source/s%d", i), "bump", 0, strings.Repeat("x", 600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range damages {
		t.Run(d.what, func(t *testing.T) {
			c, l := c.of(t), l.of(t)
			c.ready("host")
			c.asleep()
			path := c.file("Source", "s0")
			good := read(t, path)
			for _, more := range []string{"-wal", "-shm", "-journal"} {
				if b, err := os.ReadFile(path + more); err == nil && len(b) > 0 {
					t.Fatalf("a sleeping object has a file %s", path+more)
				}
			}
			t.Cleanup(func() { // whatever came of it, the next damage begins with a good file
				if c.procs["host"] != nil {
					c.kill("host")
				}
				os.Remove(path + "-wal")
				write(t, path, good)
				c.start("host")
				c.ready("host")
			})
			bad := d.damage(good)
			write(t, path, bad)
			logged := len(c.log("host"))
			for _, method := range []string{"weight", "bump", "weight"} {
				var args []any
				if method == "bump" {
					args = []any{1}
				}
				out, err := ask(l.client, "Source/s0", method, args...)
				if err == nil || !strings.HasPrefix(err.Error(), "corrupt: ") {
					t.Errorf("%s of a file that is %s: %s %v", method, d.what, out, err)
				} else {
					t.Logf("%s: %v", method, err)
				}
				c.lives()
			}
			if text := c.log("host")[logged:]; !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
				return strings.Contains(line, `"ERROR"`) && strings.Contains(line, "Source/s0")
			}) {
				t.Errorf("no error in the log names the object: %s", text)
			}
			if _, err := ask(l.client, "Source/s1", "bump", 0, ""); err != nil {
				t.Errorf("another object: %v", err)
			}
			c.asleep()
			if !bytes.Equal(read(t, path), bad) {
				t.Error("the damaged file was changed")
			}
			write(t, path, good)
			until(t, 60*time.Second, "the object works again with a good copy, without a restart", func() string {
				out, err := ask(l.client, "Source/s0", "weight")
				if err != nil {
					return err.Error()
				}
				if out != `{"bytes":24000,"n":40}` {
					return "it has " + out
				}
				return ""
			})
			t.Logf("%s: corrupt, kept, and whole again with a good copy", d.what)
		})
	}
	c.stop("gateway", "router", "host")
}

// TestDamagedFollower: a follower whose file is damaged holds up nobody, and with a good copy in its place it gets
// everything.
// spec: DLV-5, DLV-7, DLV-9
func TestDamagedFollower(t *testing.T) {
	c := newCluster(t)
	c.env = []string{"WEIR_LIMIT_IDLE=400ms"}
	c.begin()
	l := newLedger(t, c.client(), "")
	l.follow("bad")
	l.follow("other")
	stop := l.load()
	l.more(30)
	stop()
	l.check("before", 60*time.Second)
	c.asleep()
	path := c.file("Sink", "bad")
	good := read(t, path)
	began := time.Now()
	write(t, path, damages[0].damage(good))
	stop = l.load()
	l.more(60)
	stop()
	c.lives()
	written := l.written("s0")
	until(t, 60*time.Second, "the other follower has everything", func() string {
		seen, err := keys(l.client, "Sink/other", "seen", "s0")
		if err != nil || len(seen) < len(written) {
			return fmt.Sprint(len(seen), " of ", len(written), " ", err)
		}
		return ""
	})
	c.asleep()
	write(t, path, good)
	if since := time.Since(began); since > 55*time.Second {
		t.Skipf("the good copy is there after %v only: the edge was, or is about to be, dropped", since)
	}
	l.check("a good copy in place", 60*time.Second)
	c.stop("gateway", "router", "host")
}

// of gives the same for a subtest.
func (c *cluster) of(t *testing.T) *cluster {
	sub := *c
	sub.t = t
	return &sub
}

func (l *ledger) of(t *testing.T) *ledger {
	return &ledger{t: t, client: l.client, gateway: l.gateway, answered: l.answered, from: l.from, codes: l.codes}
}
