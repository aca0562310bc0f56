package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}})
}

// TestScripts runs the command as a user does. "dev [args]" starts `weir dev` on free ports and waits for its word that
// it is ready; "stop" ends it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"dev": func(ts *testscript.TestScript, neg bool, args []string) {
			exe, err := exec.LookPath("weir")
			ts.Check(err)
			c := exec.Command(exe, append([]string{"dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
			c.Dir = ts.Getenv("WORK")
			c.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("WORK"), "TMPDIR=" + ts.Getenv("TMPDIR")}
			out, err := c.StdoutPipe()
			ts.Check(err)
			ts.Check(c.Start())
			ts.Defer(func() { _ = c.Process.Kill(); _ = c.Wait() })
			line, err := bufio.NewReader(out).ReadString('\n')
			ts.Check(err)
			if !strings.Contains(line, "is ready at http://") {
				ts.Fatalf("weir dev said %q", line)
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
			ts.Setenv("URL", strings.Fields(line[strings.Index(line, "http://"):])[0])
			started = c
		},
		"page": func(ts *testscript.TestScript, neg bool, args []string) {
			r, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(ts.Getenv("URL"), "/")+args[0], nil)
			ts.Check(err)
			r.Header.Set("Accept", "text/html")
			resp, err := http.DefaultClient.Do(r)
			ts.Check(err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			ts.Check(err)
			_, err = ts.Stdout().Write(text)
			ts.Check(err)
		},
		"stop": func(ts *testscript.TestScript, neg bool, args []string) {
			ts.Check(started.Process.Signal(os.Interrupt))
			ts.Check(started.Wait())
		},
	}})
}

var started *exec.Cmd
