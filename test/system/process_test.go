package system

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"

	"weir/test/testkit"
)

const processApp = `
-- main.lua --
local key = secret "session-key"
local A = object "A" {
    add = function(state)
        local n = (state.store:get("n") or 0) + 1
        state.store:set("n", n)
        return n
    end,
    fail = function(state) error("on purpose") end,
}
on "fetch" (function(request)
    if request.path == "/add" then return { body = tostring(A("named-nobody-knows"):add()) } end
    if request.path == "/remote" then return { body = request.remote } end
    if request.path == "/fail" then error("detail") end
end)
`

// process is the command, as a user runs it.
type process struct {
	t                 *testing.T
	bin, app, data    string
	cmd               *exec.Cmd
	out               *bufio.Reader
	errs              *bytes.Buffer
	url, ready, admin string
}

func newProcess(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := &process{t: t, bin: filepath.Join(dir, "weir"), app: filepath.Join(dir, "app"), data: filepath.Join(dir, "data")}
	testkit.WriteApp(t, p.app, txtar.Parse([]byte(processApp)))
	p.admin = testkit.FreeAddr(t)
	return p
}

func (p *process) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.bin, args...)
	cmd.Env = append(append(os.Environ(), "WEIR_SECRET_SESSION_KEY=a-secret-of-thirty-two-bytes-now"), env...)
	return cmd
}

// dev gives the command line of the standalone mode.
func (p *process) dev(more ...string) []string {
	return append(append([]string{"dev", "--listen", "127.0.0.1:0", "--admin", p.admin, "--data", p.data}, more...), p.app)
}

// run runs to the end.
func (p *process) run(env []string, args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// start starts the standalone mode and waits for the line that says it is ready.
func (p *process) start(env []string, more ...string) {
	p.t.Helper()
	p.cmd, p.errs = p.command(env, p.dev(more...)...), &bytes.Buffer{}
	p.cmd.Stderr = p.errs
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.kill)
	p.out = bufio.NewReader(out)
	if p.ready, err = p.out.ReadString('\n'); err != nil {
		p.kill()
		p.t.Fatalf("%v\n%s", err, p.errs)
	}
	if p.url = regexp.MustCompile(`http://[^\s/]+`).FindString(p.ready); p.url == "" {
		p.t.Fatalf("no address in %q", p.ready)
	}
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

func (p *process) get(url string) (int, string) {
	p.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// A data folder belongs to one process; a second one is refused. After a kill the next one serves at once, with all
// that was answered.
// spec: OPS-1
func TestOneProcess(t *testing.T) {
	p := newProcess(t)
	p.start(nil)
	if _, body := p.get(p.url + "/add"); body != "1" {
		t.Errorf("the first: %s", body)
	}
	code, _, errs := p.run(nil, "dev", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", p.data, p.app)
	if code != 2 || !strings.Contains(errs, p.data) {
		t.Errorf("a second process: %d %s", code, errs)
	}
	if pid, err := os.ReadFile(filepath.Join(p.data, "lock")); err != nil || strings.TrimSpace(string(pid)) != fmt.Sprint(p.cmd.Process.Pid) {
		t.Errorf("lock: %q %v", pid, err)
	}
	if info, err := os.Stat(filepath.Join(p.data, "run.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("run.json: %v %v", info.Mode(), err)
	}
	if code, out, errs := p.run(nil, "call", "--data", p.data, "A/named-nobody-knows", "add"); code != 0 || out != "2\n" {
		t.Errorf("call: %d %s %s", code, out, errs)
	}
	for range 3 {
		p.kill()
		p.start(nil)
	}
	if _, body := p.get(p.url + "/add"); body != "3" {
		t.Errorf("after kills: %s", body)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("SIGTERM: %v, more on stdout: %q", err, rest)
	}
	p.cmd = nil
	if code, _, errs := p.run(nil, "call", "--data", p.data, "A/a", "add"); code == 0 || errs == "" {
		t.Errorf("call of what does not run: %d %s", code, errs)
	}
}

// Health, readiness and metrics have a port of their own, and are not to be had at the app's.
// spec: OPS-5
func TestAdminPort(t *testing.T) {
	p := newProcess(t)
	p.start(nil)
	p.get(p.url + "/add")
	p.get(p.url + "/fail")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/nosuch": 404} {
		if status, body := p.get("http://" + p.admin + path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := p.get(p.url + path); status != 404 {
			t.Errorf("%s at the app's port: %d %.100s", path, status, body)
		}
	}
	_, metrics := p.get("http://" + p.admin + "/metrics")
	labels := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "weir_") {
			if name, _, _ := strings.Cut(line, "{"); !strings.HasPrefix(line, "#") && !regexp.MustCompile(`^(go|process|promhttp)_`).MatchString(name) {
				t.Errorf("a metric of another name: %s", line)
			}
			continue
		}
		for _, l := range labels.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(" app class topic service outcome le quantile kind reason code method status ", " "+l[1]+" ") {
				t.Errorf("a label of another name: %s", line)
			}
		}
	}
	if strings.Contains(metrics, "named-nobody-knows") || !strings.Contains(metrics, "weir_") {
		t.Error("an object's name is in the metrics, or nothing is")
	}
	// Logs are structured, each record a line: a JSON object, or keys and values, and a failure's lines indented below.
	p.kill()
	for line := range strings.Lines(p.errs.String()) {
		var v map[string]any
		if !strings.HasPrefix(line, "  ") && json.Unmarshal([]byte(line), &v) != nil && !regexp.MustCompile(`^time=\S+ level=\S+ msg=`).MatchString(line) {
			t.Errorf("a line of the log: %s", line)
		}
	}
	if !strings.Contains(p.errs.String(), "detail") {
		t.Errorf("the handler's error is not in the log: %s", p.errs)
	}
}

// A setting that nothing reads, or one that cannot be read, stops the start with its name; secrets may be anything, and
// flags win.
// spec: OPS-5
func TestSettings(t *testing.T) {
	p := newProcess(t)
	for _, env := range []string{"WEIR_LISTN=x", "WEIR_LIMIT_NOSUCH=1", "WEIR_=x", "WEIR_SECRETS=x", "WEIR_LIMIT_CALL_TIME=soon", "WEIR_LIMIT_MAILBOX=many", "WEIR_LIMIT_AWAKE=-1", "WEIR_LOG=loud",
		"WEIR_TRUSTED_PROXIES=nonsense"} {
		name, _, _ := strings.Cut(env, "=")
		flag := "--" + map[string]string{"WEIR_LOG": "log", "WEIR_TRUSTED_PROXIES": "proxies"}[name]
		code, out, errs := p.runBriefly([]string{env}, p.dev()...)
		if code != 2 || !strings.Contains(errs, name) && (flag == "--" || !strings.Contains(errs, flag)) {
			t.Errorf("%s: %d %s %s", env, code, out, errs)
		}
	}
	for _, args := range [][]string{{"dev", "--nosuch"}, {"nosuch"}, {}, {"dev", "a", "b"}, {"dev", "--listen", "nonsense", "--admin", p.admin, "--data", p.data, p.app}, {"dev", filepath.Join(p.app, "nosuch")}} {
		if code, _, errs := p.runBriefly(nil, args...); code != 2 || errs == "" {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
	p.start([]string{"WEIR_SECRET_OF_ANOTHER=x", "WEIR_TRUSTED_PROXIES=10.0.0.0/8,127.0.0.1", "WEIR_ADMIN=127.0.0.1:1", "WEIR_LOG=debug"}, "--log", "error")
	r, _ := http.NewRequest(http.MethodGet, p.url+"/remote", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "203.0.113.9" {
		t.Errorf("a trusted proxy's word: %s", body)
	}
	if status, _ := p.get("http://" + p.admin + "/healthz"); status != 200 {
		t.Errorf("the flag does not win: %d", status)
	}
	p.kill()
	if strings.Contains(p.errs.String(), "a-secret-of-thirty-two") {
		t.Error("the secret is in the log")
	}
	// spec: HTTP-6
	cmd := p.command(nil, p.dev()...)
	cmd.Env = append(os.Environ(), "WEIR_LOG=info")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "session-key") {
		t.Errorf("without the secret: %v %s", err, out)
	}
}

// runBriefly is run for what should end by itself: if it becomes ready instead, it is killed.
func (p *process) runBriefly(env []string, args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	cmd := p.command(env, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if strings.Contains(line, "http://") {
		_ = cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), line, errs.String()
}

// A secret may be a file of the secrets folder, without its line's end; the environment's wins, and both are found.
// spec: HTTP-6
func TestSecretFiles(t *testing.T) {
	p := newProcess(t)
	app := "-- main.lua --\nlocal a, b = secret \"file-key\", secret \"session-key\"\non \"fetch\" (function() return { body = a:reveal() .. \"|\" .. b:reveal() } end)\n"
	testkit.WriteApp(t, p.app, txtar.Parse([]byte(app)))
	secrets := t.TempDir()
	if err := os.WriteFile(filepath.Join(secrets, "file-key"), []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(nil, "--secrets", secrets)
	if _, body := p.get(p.url + "/"); body != "from-a-file|a-secret-of-thirty-two-bytes-now" {
		t.Errorf("%q", body)
	}
}
