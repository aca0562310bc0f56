package testkit

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"weir/services/host/hostd"
)

func (r *runner) step(text string, not bool) {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "call":
		r.call(rest, not)
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			r.fatal("%v", err)
		}
		time.Sleep(d)
	case "sleep":
		time.Sleep(6 * time.Minute)
	case "restart":
		r.s.Restart()
	case "nats":
		between := os.RemoveAll
		if rest != "empty" {
			between = nil
		}
		if err := r.s.RestartNATS(between); err != nil {
			r.fatal("%v", err)
		}
		time.Sleep(time.Millisecond) // until every client has seen it
	case "connect":
		name, path, _ := strings.Cut(rest, " ")
		c, err := r.s.Connect(strings.TrimSpace(path))
		if !r.fails(err, not) {
			r.sockets[name] = c
		}
	case "http":
		f := strings.SplitN(rest, " ", 3)
		body := ""
		if len(f) == 3 {
			body = f[2]
		}
		status, header, got, err := r.s.Request(f[0], f[1], body, r.header)
		r.header = http.Header{}
		if err != nil {
			r.fatal("%v", err)
		}
		for _, line := range r.expect("~=") {
			if line[0] == '=' {
				var b strings.Builder
				_ = header.Write(&b)
				r.match("(?m)"+strings.TrimSpace(line[1:]), strings.ReplaceAll(b.String(), "\r", ""))
			} else {
				r.match(line[1:], fmt.Sprintf("%d %s", status, got))
			}
		}
	case "header":
		name, value, _ := strings.Cut(rest, ":")
		r.header.Add(name, strings.TrimSpace(value))
	case "go":
		name, rest, _ := strings.Cut(rest, " ")
		id, f := r.parse(rest)
		c := make(chan answer, 1)
		r.calls[name] = c
		go func() {
			out, err := r.s.Call(id, f[0], f[1:]...)
			c <- answer{out, err}
		}()
	case "done":
		c := r.calls[rest]
		if c == nil {
			r.fatal("no call %q", rest)
		}
		a := <-c
		r.check(a.out, a.err, not)
	case "edges":
		out, err := r.s.Call(rest, hostd.MethodEdges)
		if err != nil {
			r.fatal("%v", err)
		}
		for _, line := range r.expect("~") {
			r.match(line[1:], out[0])
		}
	case "send", "recv", "quiet", "closed", "close", "raw":
		r.socket(word, rest)
	default:
		r.fatal("no such step")
	}
}

func (r *runner) call(rest string, not bool) {
	r.t.Helper()
	id, f := r.parse(rest)
	out, err := r.s.Call(id, f[0], f[1:]...)
	r.check(out, err, not)
}

// splitJSON splits a line at spaces outside of JSON strings, arrays and objects.
func splitJSON(s string) (out []string) {
	depth, quoted, escaped, from := 0, false, false, -1
	for i, c := range s {
		if from < 0 {
			if c == ' ' {
				continue
			}
			from = i
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ' ' && depth == 0:
			out = append(out, s[from:i])
			from = -1
		}
	}
	if from >= 0 {
		out = append(out, s[from:])
	}
	return out
}

func (r *runner) socket(word, rest string) {
	r.t.Helper()
	name, arg, _ := strings.Cut(rest, " ")
	arg = strings.TrimSpace(arg)
	c := r.sockets[name]
	if c == nil {
		r.fatal("no socket %q", name)
	}
	switch word {
	case "send":
		_ = c.Send(arg) // the peer may have closed it meanwhile: what comes back tells
	case "raw":
		kind, text, _ := strings.Cut(arg, " ")
		_ = c.Raw(kind, text)
	case "recv":
		got, err := c.Next()
		if err != nil {
			r.fatal("%v", err)
		}
		if pattern, ok := strings.CutPrefix(arg, "~"); ok {
			r.match(pattern, got)
		} else if got != arg {
			r.fatal("got  %s\nwant %s", got, arg)
		}
	case "quiet":
		if got, err := c.Next(); err == nil {
			r.fatal("got %s", got)
		}
	case "closed":
		code, pattern, _ := strings.Cut(arg, " ")
		var err error
		for err == nil {
			if _, err = c.Next(); err != nil && err.Error() == "no frame" {
				r.fatal("the socket is open")
			}
		}
		r.match(`close `+code+`\b`, err.Error())
		r.match(pattern, err.Error())
	case "close":
		c.Close()
		delete(r.sockets, name)
	}
}
