package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
	})
}

// Where a request can be read in two ways it is refused, or nothing that comes after it is taken: a proxy that reads it the
// other way passes on no request that it has not seen.
// spec: HTTP-1
func TestSmuggledRequests(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const hidden, post, chunked, end = "GET /hidden HTTP/1.1\r\nHost: app.test\r\n\r\n", "POST /one HTTP/1.1\r\nHost: app.test\r\n", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"
		const old = "POST /one HTTP/1.0\r\nHost: app.test\r\nConnection: keep-alive\r\n"
		length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
		chunk := func(body string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(body), body) }
		none, all, held := "200 POST /one 0 -", "200 GET /hidden 0 -", fmt.Sprintf("200 POST /one %d -", len(hidden))
		for name, c := range map[string]struct {
			bytes string
			want  []string // statuses, or whole answers
		}{
			// By the length it is one request; by the chunks a second one follows.
			"length over all":              {post + length(len(end+hidden)) + chunked + "\r\n" + end + hidden, []string{none}},
			"chunks before the length":     {post + chunked + length(len(end+hidden)) + "\r\n" + end + hidden, []string{none}},
			"the app keeps it alive":       {strings.Replace(post, "/one", "/one?connection=keep-alive", 1) + length(len(end+hidden)) + chunked + "\r\n" + end + hidden, []string{none}},
			"length over all, in HTTP/1.0": {old + length(len(end+hidden)) + chunked + "\r\n" + end + hidden, []string{fmt.Sprintf("200 POST /one %d -", len(end+hidden))}},
			// By the chunks it is one request; by the length a second one follows.
			"length over nothing":           {post + length(0) + chunked + "\r\n" + chunk(hidden) + end, []string{held}},
			"length over a chunk's head":    {post + length(4) + chunked + "\r\n" + chunk(hidden) + end, []string{held}},
			"length over it, in HTTP/1.0":   {old + length(4) + chunked + "\r\n" + chunk(hidden) + end, []string{"200 POST /one 4 -"}},
			"length over none, in HTTP/1.0": {old + length(0) + chunked + "\r\n" + chunk(hidden) + end, []string{none, "400"}},
			"no length, in HTTP/1.0":        {old + chunked + "\r\n" + chunk(hidden) + end, []string{none, "400"}},
			// What is almost the name, or the word.
			"a space before the colon": {post + length(0) + "Transfer-Encoding : chunked\r\n\r\n" + end + hidden, []string{"400"}},
			"a tab before the colon":   {post + length(0) + "Transfer-Encoding\t: chunked\r\n\r\n" + end + hidden, []string{"400"}},
			"xchunked":                 {post + length(0) + "Transfer-Encoding: xchunked\r\n\r\n" + end + hidden, []string{"501"}},
			"chunked, with more":       {post + length(0) + "Transfer-Encoding: chunked;x=1\r\n\r\n" + end + hidden, []string{"501"}},
			"chunked, in quotes":       {post + length(0) + "Transfer-Encoding: \"chunked\"\r\n\r\n" + end + hidden, []string{"501"}},
			"chunked, and identity":    {post + length(0) + chunked + "Transfer-Encoding: identity\r\n\r\n" + end + hidden, []string{"501"}},
			"no word":                  {post + length(0) + "Transfer-Encoding:\r\n\r\n" + end + hidden, []string{"501"}},
			"a vertical tab":           {post + length(0) + "Transfer-Encoding: \vchunked\r\n\r\n" + end + hidden, []string{"400"}},
			"a letter of another kind": {post + length(0) + "Transfer-Encoding: chun\u212aed\r\n\r\n" + end + hidden, []string{"501"}},
			"a tab, and in case":       {post + length(len(end+hidden)) + "transfer-ENCODING:\tChunKed \r\n\r\n" + end + hidden, []string{none}},
			"another name":             {post + length(len(hidden)) + "Transfer_Encoding: chunked\r\n\r\n" + hidden, []string{held}},
			// A line that begins with white space goes on with the value before it.
			"a folded value":       {post + "X-A: a\r\n b\r\n\tc\r\n\r\n", []string{"200 POST /one 0 a b c"}},
			"a folded first line":  {"POST /one HTTP/1.1\r\n X-A: b\r\nHost: app.test\r\n\r\n" + hidden, []string{"400"}},
			"a folded length":      {post + "Content-Length: 4\r\n 0\r\n\r\n" + hidden, []string{"400"}},
			"a length on a fold":   {post + "Content-Length:\r\n " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden, []string{held}},
			"an encoding folded":   {post + length(len(end+hidden)) + "Transfer-Encoding:\r\n chunked\r\n\r\n" + end + hidden, []string{none}},
			"an encoding, a value": {post + length(len(hidden)) + "X-A: a\r\n Transfer-Encoding: chunked\r\n\r\n" + hidden, []string{held[:len(held)-1] + "a Transfer-Encoding: chunked"}},
			// A line feed alone ends a line of a head, and none of a chunk; a carriage return alone ends nothing.
			"line feeds":                   {"POST /one HTTP/1.1\nHost: app.test\nX-A: a\n\n" + hidden, []string{"200 POST /one 0 a", all}},
			"a line feed before a length":  {post + "X-A: a\n" + length(len(hidden)) + "\r\n" + hidden, []string{held[:len(held)-1] + "a"}},
			"a return before a length":     {post + "X-A: a\rContent-Length: 3\r\n\r\n" + hidden, []string{"400"}},
			"a return that ends the head":  {post + "X-A: a\r\n\r" + hidden, []string{"400"}},
			"a line feed after a size":     {post + chunked + "\r\n3\nabc\r\n" + end + hidden, []string{"400"}},
			"a line feed in an extension":  {post + chunked + "\r\n3;\nx\r\nabc\r\n" + end + hidden, []string{"400"}},
			"a line feed after a chunk":    {post + chunked + "\r\n3\r\nabc\n" + end + hidden, []string{"400"}},
			"a line feed after all chunks": {post + chunked + "\r\n0\r\n\n" + hidden, []string{none}},
			"a size in C":                  {post + chunked + "\r\n0x3\r\nabc\r\n" + end + hidden, []string{"400"}},
			"a size below nothing":         {post + chunked + "\r\n-0\r\n\r\n" + hidden, []string{"400"}},
			"a size past 64 bits":          {post + chunked + "\r\n10000000000000000\r\n" + end + hidden, []string{"400"}},
			// What is plain: two that follow one another are two; after chunks nothing is taken.
			"two, by lengths": {post + length(3) + "\r\nabc" + hidden, []string{"200 POST /one 3 -", all}},
			"GET with a body": {"GET /one HTTP/1.1\r\nHost: app.test\r\n" + length(len(hidden)) + "\r\n" + hidden, []string{strings.Replace(held, "POST", "GET", 1)}},
			"chunks":          {post + chunked + "\r\n" + chunk("abc") + "2;x=y\r\nde\r\n0\r\nX-A: trailer\r\n\r\n" + hidden, []string{"200 POST /one 5 -"}},
		} {
			got := exchange(t, s.Listener(), []string{"POST", "GET"}, c.bytes)
			fits := len(got) == len(c.want)
			for i := range got {
				fits = fits && (got[i] == c.want[i] || len(c.want[i]) == 3 && strings.HasPrefix(got[i], c.want[i]))
			}
			if !fits {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	})
}

// A head that comes byte by byte has ten seconds, the first one of a connection and every other; until it begins there are
// two minutes. Meanwhile others are served.
// spec: HTTP-3
func TestSlowHead(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(rawApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const whole, head = "GET /one HTTP/1.1\r\nHost: app.test\r\n\r\n", "GET /slow HTTP/1.1\r\nHost: app.test\r\nX-A: "
		for name, c := range map[string]struct {
			before, head string
			every        time.Duration
			after        time.Duration // when the connection is closed
		}{
			"nothing":                   {"", "", time.Second, 10 * time.Second},
			"a line":                    {"", "GET /slow HTTP/1.1", time.Second, 10 * time.Second},
			"a byte a second":           {"", head, time.Second, 10 * time.Second},
			"a byte every 9 s":          {"", head, 9 * time.Second, 10 * time.Second},
			"ten bytes a second":        {"", head + strings.Repeat("x", 1000), 100 * time.Millisecond, 10 * time.Second},
			"headers without an end":    {"", head + strings.Repeat("x\r\nX-A: ", 1000), 10 * time.Millisecond, 10 * time.Second},
			"an upgrade":                {"", "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 500 * time.Millisecond, 10 * time.Second},
			"the second one":            {whole, head, time.Second, 13 * time.Second}, // it begins with its fourth byte
			"the second one, not begun": {whole, "GET", time.Second, 120 * time.Second},
			"no second one":             {whole, "", time.Second, 120 * time.Second},
		} {
			if got := drip(t, s.Listener(), c.before, c.head, c.every); got != c.after {
				t.Errorf("%s: closed after %v, want %v", name, got, c.after)
			}
		}
	})
}

// drip sends a request, reads its answer, sends a head byte by byte, and says how long after the answer the connection was
// closed, with 400 at most.
func drip(t *testing.T, l *testkit.Pipe, before, head string, every time.Duration) time.Duration {
	t.Helper()
	conn, err := l.Dial(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	if before != "" {
		if _, err := io.WriteString(conn, before); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	start := time.Now()
	go func() {
		for i := range head {
			if _, err := io.WriteString(conn, head[i:i+1]); err != nil {
				return
			}
			time.Sleep(every)
		}
	}()
	time.Sleep(every / 2)
	if got := exchange(t, l, []string{"GET"}, "GET /next HTTP/1.1\r\nHost: app.test\r\n\r\n"); len(got) != 1 || got[0] != "200 GET /next 0 -" {
		t.Errorf("meanwhile: %q", got)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 && !strings.HasPrefix(string(rest), "HTTP/1.1 400 ") {
		t.Errorf("%q %v", rest, err)
	}
	return time.Since(start)
}
