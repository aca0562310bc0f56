package testkit

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
)

// Script runs a script against the real standalone system in virtual time. A script is a txtar archive: its files are
// the app, its comment (what stands before the first file) is what is done, line by line:
//
//	# spec: LOG-2                       a comment
//	call Class/name method JSON…        call a method; each result must equal the next "> JSON" line
//	> {"ok":true}
//	! call Class/name method JSON…      the call must fail; its error must match the next "~ regexp" line
//	~ ^no such method:
//	go NAME Class/name method JSON…     start a call and do not wait for it
//	done NAME                           wait for it (! > = and ~ as with call)
//	wait 10s                            virtual time passes
//	restart                             the system stops as by SIGTERM and starts again
//	nats restart | nats empty           the message server restarts, with its store or without
//	sleep                               more than the idle time passes, so that every object sleeps
//	connect NAME /path                  open a websocket (! and ~ as with call)
//	send NAME JSON                      send a frame
//	raw NAME binary|text …|big          send a frame that is no JSON text
//	recv NAME JSON                      the next frame must equal this; "recv NAME ~ regexp" must match
//	quiet NAME                          there must be no further frame
//	closed NAME CODE [regexp]           the socket must have been closed with this code
//	close NAME                          close it
//	header Name: value                  a header of the next http request only
//	http METHOD /path [body]            the answer's "status body" must match the next "~ regexp" lines, its header,
//	                                    one "Name: value" in each line, the "= regexp" lines
//	edges Class/name                    the answer of weir edges (JSON) must match the "~ regexp" lines that follow
//	limit NAME value                    before the start: a limit (mailbox, awake, budget, database, log, idle, run)
//
// Lines starting with "=" after a call give a regexp that the result must match instead of ">".
func Script(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	limits, lines := scriptLimits(t, file, string(archive.Comment))
	Bubble(t, archive, limits, func(t *testing.T, s *System) {
		r := &runner{t: t, s: s, file: file, lines: lines, sockets: map[string]*Socket{}, calls: map[string]chan answer{}, header: http.Header{}}
		defer func() {
			for _, c := range r.sockets {
				c.Close()
			}
		}()
		r.run()
	})
}

// Scripts runs every script of a folder as a subtest.
func Scripts(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts match %s (%v)", pattern, err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), filepath.Ext(f)), func(t *testing.T) { Script(t, f) })
	}
}

func scriptLimits(t *testing.T, file, comment string) (l hostd.Limits, lines []string) {
	sc := bufio.NewScanner(strings.NewReader(comment))
	sc.Buffer(nil, 4<<20)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimRight(sc.Text(), " \t")
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "limit" {
			i, _ := strconv.ParseInt(f[2], 10, 64)
			d, _ := time.ParseDuration(f[2])
			switch f[1] {
			case "mailbox":
				l.Mailbox = int(i)
			case "awake":
				l.Awake = int(i)
			case "budget":
				l.Budget = i
			case "database":
				l.Database = i
			case "log":
				l.Log = i
			case "idle":
				l.Idle = d
			case "run":
				l.Run = d
			default:
				t.Fatalf("%s:%d: no limit %q", file, n, f[1])
			}
			line = ""
		}
		lines = append(lines, line)
	}
	return l, lines
}

type runner struct {
	t       *testing.T
	s       *System
	file    string
	lines   []string
	at      int
	sockets map[string]*Socket
	calls   map[string]chan answer
	header  http.Header
}

// answer is what a call came to.
type answer struct {
	out []string
	err error
}

func (r *runner) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s:%d: %s\n    %s", r.file, r.at, fmt.Sprintf(format, args...), r.lines[r.at-1])
}

// expect gives the lines that follow and begin with one of the marks.
func (r *runner) expect(marks string) (out []string) {
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		if len(line) < 1 || !strings.ContainsRune(marks, rune(line[0])) {
			break
		}
		out = append(out, line)
		r.at++
	}
	return out
}

func (r *runner) match(pattern, got string) {
	r.t.Helper()
	re, err := regexp.Compile(strings.TrimSpace(pattern))
	if err != nil {
		r.fatal("%v", err)
	}
	if !re.MatchString(got) {
		r.fatal("got  %s\nwant a match of %s", got, pattern)
	}
}

// fails checks an error against the lines that follow.
func (r *runner) fails(err error, want bool) bool {
	r.t.Helper()
	if want {
		if err == nil {
			r.fatal("no error")
		}
		for _, line := range r.expect("~") {
			r.match(line[1:], err.Error())
		}
		return true
	}
	if err != nil {
		r.fatal("%v", err)
	}
	return false
}

func (r *runner) run() {
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		r.at++
		text, not := strings.CutPrefix(line, "! ")
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		r.step(text, not)
	}
}

// parse gives the object of a call, and its method and arguments.
func (r *runner) parse(rest string) (id string, f []string) {
	r.t.Helper()
	f = splitJSON(rest)
	if len(f) < 2 {
		r.fatal("call needs an object and a method")
	}
	id = f[0]
	if strings.HasPrefix(id, `"`) { // a name with spaces is written as a Go string
		unquoted, err := strconv.Unquote(id)
		if err != nil {
			r.fatal("%v", err)
		}
		id = unquoted
	}
	return id, f[1:]
}

// check compares what a call came to with the lines that follow.
func (r *runner) check(out []string, err error, not bool) {
	r.t.Helper()
	if r.fails(err, not) {
		return
	}
	for i, line := range r.expect(">=") {
		got := "(no result)"
		if i < len(out) {
			got = out[i]
		}
		if line[0] == '=' {
			r.match(line[1:], got)
		} else if want := strings.TrimSpace(line[1:]); got != want {
			r.fatal("got  %s\nwant %s", got, want)
		}
	}
}
