package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pkg/bus"
	"weir/pkg/wire"
)

const sources = 3

// ledger is what a test knows must be true of the sources s0, s1, … and their followers.
type ledger struct {
	t        *testing.T
	client   *bus.Client
	gateway  string // address; half of the writes go over it
	mu       sync.Mutex
	next     int               // guarded by mu, as is answered
	answered map[string][]int  // by source
	from     map[[2]string]int // by sink and source: the last key when the follow was answered
	codes    map[string]int    // how calls failed; guarded by mu
}

func newLedger(t *testing.T, client *bus.Client, gateway string) *ledger {
	return &ledger{t: t, client: client, gateway: gateway, answered: map[string][]int{}, from: map[[2]string]int{}, codes: map[string]int{}}
}

// bump writes once, directly or over the gateway.
func (l *ledger) bump(ctx context.Context, source string, direct bool, pad string) error {
	l.mu.Lock()
	l.next++
	key := l.next
	l.mu.Unlock()
	var err error
	if direct || l.gateway == "" {
		_, err = call(ctx, l.client, "Source/"+source, "bump", key, pad)
	} else {
		err = get(ctx, fmt.Sprintf("http://%s/bump?source=%s&key=%d", l.gateway, source, key))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.codes[code(err)]++
		return err
	}
	l.answered[source] = append(l.answered[source], key)
	return nil
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// load writes from several callers until it is told to stop.
func (l *ledger) load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 2 * sources {
		all.Go(func() {
			for ctx.Err() == nil {
				// An answer that is lost would be waited for all the request's 30 s.
				one, done := context.WithTimeout(ctx, 3*time.Second)
				_ = l.bump(one, fmt.Sprintf("s%d", i%sources), i < sources, "")
				done()
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// more waits until n more writes were answered, of each source some.
func (l *ledger) more(n int) {
	l.t.Helper()
	count := func() (out [sources]int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range out {
			out[i] = len(l.answered[fmt.Sprintf("s%d", i)])
		}
		return out
	}
	before := count()
	until(l.t, 60*time.Second, "calls are answered again", func() string {
		for i, now := range count() {
			if now < before[i]+n/sources {
				return fmt.Sprintf("%d of s%d in all, %d before", now, i, before[i])
			}
		}
		return ""
	})
}

// follow lets a sink follow all sources, and tries until it does.
func (l *ledger) follow(sink string) {
	l.t.Helper()
	for i := range sources {
		source := fmt.Sprintf("s%d", i)
		until(l.t, 60*time.Second, sink+" follows "+source, func() string {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if _, err := call(ctx, l.client, "Sink/"+sink, "watch", source); err != nil {
				return err.Error()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.from[[2]string{sink, source}] = l.next
			return ""
		})
	}
}

// written gives the keys that a source has, in their order: each that was answered, none twice.
func (l *ledger) written(source string) []int {
	l.t.Helper()
	var written []int
	until(l.t, 60*time.Second, "Source/"+source+" answers", func() string {
		var err error
		if written, err = keys(l.client, "Source/"+source, "writes"); err != nil {
			return err.Error()
		}
		return ""
	})
	has := map[int]bool{}
	for _, k := range written {
		if has[k] {
			l.t.Fatalf("Source/%s has the write %d twice", source, k)
		}
		has[k] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.answered[source] {
		if !has[k] {
			l.t.Fatalf("Source/%s lost the write %d, which was answered", source, k)
		}
	}
	return written
}

// check waits until every follower has exactly the end of its publisher's writes that it must have.
func (l *ledger) check(what string, patience time.Duration) {
	l.t.Helper()
	total, began := 0, time.Now()
	written := map[string][]int{}
	for i := range sources {
		source := fmt.Sprintf("s%d", i)
		written[source] = l.written(source)
		total += len(written[source])
	}
	for edge, from := range l.from {
		sink, source := edge[0], edge[1]
		all := written[source]
		until(l.t, patience, what+": Sink/"+sink+" has all of Source/"+source, func() string {
			seen, err := keys(l.client, "Sink/"+sink, "seen", source)
			if err != nil {
				return err.Error()
			}
			if !within(seen, all) {
				l.t.Fatalf("%s: Sink/%s has events of Source/%s out of order, twice, or with a gap:\nseen    %v\nwritten %v", what, sink, source, tail(seen), tail(all))
			}
			if len(all) > 0 && (len(seen) == 0 || seen[len(seen)-1] != all[len(all)-1]) {
				if len(seen) > 0 || all[len(all)-1] > from {
					return fmt.Sprintf("it has %v, written was %v", tail(seen), tail(all))
				}
			}
			for _, k := range all[:len(all)-len(seen)] {
				if k > from {
					return fmt.Sprintf("it lacks %d, and followed since %d", k, from)
				}
			}
			return ""
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("%s: %d writes, %d edges, all there %v after the load; calls that failed: %v", what, total, len(l.from), time.Since(began).Round(10*time.Millisecond), l.codes)
	clear(l.codes)
}

// within says whether seen is a run of written without a gap.
func within(seen, written []int) bool {
	if len(seen) == 0 {
		return true
	}
	at := slices.Index(written, seen[0])
	return at >= 0 && at+len(seen) <= len(written) && slices.Equal(seen, written[at:at+len(seen)])
}

func tail(list []int) []int { return list[max(0, len(list)-12):] }

// call calls a method; args are Go values.
func call(ctx context.Context, c *bus.Client, id, method string, args ...any) (json.RawMessage, error) {
	data, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		return nil, err
	}
	out, err := c.Call(ctx, wire.CallRequest{To: id, Method: method, Args: data})
	if err != nil {
		return nil, err
	}
	var results []json.RawMessage
	if err := json.Unmarshal(out, &results); err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0], nil
}

// ask is call with a deadline of its own.
func ask(c *bus.Client, id, method string, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := call(ctx, c, id, method, args...)
	return string(out), err
}

// code is the stable first part of an error.
func code(err error) string {
	var e *wire.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "given up"
	}
	text, _, _ := strings.Cut(err.Error(), ": ")
	if strings.HasPrefix(text, "Get ") {
		text = "HTTP broken off"
	}
	return text
}

// keys reads a list page by page.
func keys(c *bus.Client, id, method string, args ...any) (all []int, err error) {
	for after := 0; ; {
		data, err := ask(c, id, method, append(args[:len(args):len(args)], after)...)
		if err != nil {
			return nil, err
		}
		var rows []struct{ ID, Key int }
		if err := json.Unmarshal([]byte(data), &rows); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return all, nil
		}
		for _, r := range rows {
			all = append(all, r.Key)
			after = r.ID
		}
	}
}
