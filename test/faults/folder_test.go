package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWakeList breaks the list of sleeping objects that have work, after a kill: either the start is refused and names
// the file, which stays as it is, or the work is done: an alarm rings, and an undelivered event comes, without
// anybody's touching the objects. Without the file it is done in any case.
// spec: LOG-2, ALRM-1, DLV-5
func TestWakeList(t *testing.T) {
	for i, d := range []struct {
		what  string
		spoil func(t *testing.T, path string)
	}{
		{"untouched", func(*testing.T, string) {}},
		{"a text", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("no list\n", 2000))) }},
		{"cut to half", func(t *testing.T, path string) { b := read(t, path); write(t, path, b[:len(b)/2]) }},
		{"empty", func(t *testing.T, path string) { write(t, path, nil) }},
		{"missing", func(t *testing.T, path string) { os.Remove(path) }},
	} {
		t.Run(d.what, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			c := newCluster(t)
			c.begin()
			client := c.client()
			event, alarm := fmt.Sprintf("mark-event%d", i), fmt.Sprintf("mark-alarm%d", i)
			armed := time.Now()
			for _, f := range [][]any{{"Sink/k", "watch", event}, {"Source/" + alarm, "later", 8, "20s"}, {"Source/" + event, "later", 7, "5s"}} {
				if _, err := ask(client, f[0].(string), f[1].(string), f[2:]...); err != nil {
					t.Fatal(err)
				}
			}
			c.kill("nats") // what the first alarm publishes is undelivered, and the second is armed
			if since := time.Since(armed); since > 4*time.Second {
				t.Skipf("NATS is gone after %v only: the event may have come already", since)
			}
			until(t, 60*time.Second, "an event is undelivered", func() string {
				_, metrics := c.get("host", "/metrics")
				for line := range strings.Lines(metrics) {
					if strings.HasPrefix(line, "weir_publishers_with_undelivered{") && !strings.HasSuffix(line, " 0\n") {
						return ""
					}
				}
				return "none"
			})
			c.kill("host")
			path := filepath.Join(c.data, "wake.db")
			d.spoil(t, path)
			if d.what != "untouched" {
				os.Remove(path + "-wal")
			}
			spoiled, _ := os.ReadFile(path)
			c.start("nats")
			if text, refused := c.tries("host"); refused {
				if !strings.Contains(text, "wake.db") {
					t.Errorf("the refusal does not name the file: %s", text)
				}
				if now := read(t, path); string(now) != string(spoiled) {
					t.Error("the damaged file was changed")
				}
				t.Logf("refused: %s", strings.TrimSpace(text))
				os.Remove(path)
				c.start("host")
				c.ready("host")
			}
			for mark, want := range map[string]string{"came " + event: "7", "rang " + alarm: "8"} {
				until(t, 90*time.Second, "the work of the list is done: "+mark, func() string {
					if got, err := ask(client, "Reader/r", "mark", mark); err != nil || got != want {
						return fmt.Sprint(got, " ", err)
					}
					return ""
				})
			}
			t.Logf("the wake list %s: the alarm rang, the event came", d.what)
		})
	}
}

// TestNoObjects takes the folder of the objects away, as a disk that was not mounted: an object that was there must not
// begin anew as if it had never been, and with the folder back nothing is missing.
// spec: OBJ-7, LOG-2
func TestNoObjects(t *testing.T) {
	c := newCluster(t)
	c.begin()
	l := newLedger(t, c.client(), "")
	l.follow("k")
	stop := l.load()
	l.more(30)
	stop()
	l.check("before", 60*time.Second)
	c.stop("host")
	objects := filepath.Join(c.data, "objects")
	if err := os.Rename(objects, objects+".away"); err != nil {
		t.Fatal(err)
	}
	if text, refused := c.tries("host"); refused {
		t.Logf("without the folder the start is refused: %s", text)
	} else {
		out, err := ask(l.client, "Source/s0", "weight")
		if err == nil {
			t.Errorf("the folder of the objects is gone, and Source/s0 answers %s", out)
		}
		t.Logf("without the folder: %s %v", out, err)
		c.kill("host")
	}
	if err := os.RemoveAll(objects); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(objects+".away", objects); err != nil {
		t.Fatal(err)
	}
	c.start("host")
	c.ready("host")
	stop = l.load()
	l.more(30)
	stop()
	l.check("the folder is back", 150*time.Second)
}

// TestSmallFiles breaks the files beside the objects: weir dev starts and has everything, or it is refused with the name
// of what is wrong; put right, it works.
// spec: OPS-1, OPS-5
func TestSmallFiles(t *testing.T) {
	c := newCluster(t)
	c.start("dev")
	c.ready("dev")
	weir := func(args ...string) (string, error) {
		out, err := exec.Command(filepath.Join(c.bin, "weir"), append([]string{"call", "--data", c.data}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if out, err := weir("Source/s0", "bump", "1"); err != nil {
		t.Fatal(out, err)
	}
	const want = `{"bytes":0,"n":1}`
	run := filepath.Join(c.data, "run.json")
	good := read(t, run)
	for _, text := range []string{"", "{", "no json", `{"app":"app","nats":"nats://127.0.0.1:1","token":"x","pid":1}`} {
		write(t, run, []byte(text))
		out, err := weir("Source/s0", "weight")
		if err == nil || !strings.Contains(out, "run.json") && !strings.Contains(out, c.data) && !strings.Contains(out, "127.0.0.1:1") || strings.Contains(out, "panic") {
			t.Errorf("a call with run.json %q: %v %s", text, err, out)
		}
	}
	write(t, run, good)
	if out, err := weir("Source/s0", "weight"); err != nil || out != want {
		t.Errorf("run.json put right: %s %v", out, err)
	}
	for _, f := range []struct{ name, text string }{{"run.json", "no json"}, {"lock", "no pid\x00\xff"}, {"lock", ""}, {"id", ""}, {"id", "no id\nat all\x00"}} {
		t.Run(fmt.Sprintf("%s %q", f.name, f.text), func(t *testing.T) {
			c := c.of(t)
			if c.procs["dev"] != nil {
				c.kill("dev")
			}
			path := filepath.Join(c.data, f.name)
			before := read(t, path)
			write(t, path, []byte(f.text))
			text, refused := c.tries("dev")
			if refused {
				if !strings.Contains(text, "folder") || strings.Contains(text, "panic") {
					t.Errorf("the refusal does not say what is wrong: %s", text)
				}
				t.Logf("refused: %s", strings.TrimSpace(text))
				write(t, path, before)
				c.start("dev")
				c.ready("dev")
			}
			if out, err := weir("Source/s0", "weight"); err != nil || out != want {
				t.Errorf("afterwards: %s %v", out, err)
			}
			t.Logf("%s %q: everything is there", f.name, f.text)
		})
	}
}
