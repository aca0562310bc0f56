package system

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

// A request says once and plainly how long it is; one that does not is refused, and nothing of it is taken for a second
// request.
// spec: HTTP-1
func TestSmuggledLengths(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		hidden := "GET /hidden HTTP/1.1\r\nHost: app.test\r\n\r\n"
		for name, c := range map[string]struct{ head, body, want string }{
			"two lengths":           {"Content-Length: 0\r\nContent-Length: " + fmt.Sprint(len(hidden)), hidden, "400"},
			"a list of lengths":     {"Content-Length: 0, 0", hidden, "400"},
			"a negative length":     {"Content-Length: -1", hidden, "400"},
			"a signed length":       {"Content-Length: +0", hidden, "400"},
			"a length in hex":       {"Content-Length: 0x0", hidden, "400"},
			"a length too large":    {"Content-Length: 99999999999999999999", hidden, "400"},
			"an unknown encoding":   {"Transfer-Encoding: gzip", hidden, "501"},
			"encodings":             {"Transfer-Encoding: chunked, identity", "0\r\n\r\n" + hidden, "501"},
			"encoding twice":        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + hidden, "501"},
			"a space in a name":     {"Content-Length : 5", hidden, "400"},
			"no name":               {": x", hidden, "400"},
			"a NUL in a value":      {"X-A: a\x00b", hidden, "400"},
			"two hosts":             {"Host: evil.test", hidden, "400"},
			"a chunk's size no hex": {"Transfer-Encoding: chunked", "zz\r\n\r\n" + hidden, ""},
			"a chunk's size twice":  {"Transfer-Encoding: chunked", "1 1\r\nx\r\n0\r\n\r\n" + hidden, ""},
		} {
			got := exchange(t, s.Listener(), []string{"POST", "GET"}, "POST /one HTTP/1.1\r\nHost: app.test\r\n"+c.head+"\r\n\r\n"+c.body)
			if strings.Contains(strings.Join(got, " "), "/hidden") || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%s: %q", name, got)
			}
			if c.want == "" && len(got) > 0 && !strings.HasPrefix(got[0], "400") {
				t.Errorf("%s: the handler had a part of a body: %q", name, got)
			}
		}
		// Two that follow one another are two; a length beside the chunks does not count.
		for name, c := range map[string]struct {
			bytes string
			want  []string
		}{
			"pipelined": {"POST /one HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\n\r\nabcGET /two HTTP/1.1\r\nHost: app.test\r\n\r\n", []string{"200 POST /one 3 -", "200 GET /two 0 -"}},
			"chunks":    {"POST /one HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-A: trailer\r\n\r\nGET /two HTTP/1.1\r\nHost: app.test\r\n\r\n", []string{"200 POST /one 5 -", "200 GET /two 0 -"}},
		} {
			if got := exchange(t, s.Listener(), []string{"POST", "GET"}, c.bytes); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: %q", name, got)
			}
		}
		both := exchange(t, s.Listener(), []string{"POST", "GET"}, "POST /one HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+hidden)
		if len(both) > 0 && !strings.HasPrefix(both[0], "400") && both[0] != "200 POST /one 0 -" {
			t.Errorf("length and chunks: %q", both)
		}
	})
}

