package clients

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Quantiles are times in milliseconds.
type Quantiles struct{ P50, P99, Max float64 }

func (q Quantiles) String() string {
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, at most %.0f ms", q.P50, q.P99, q.Max)
}

// Probed is what a well-behaved client met.
type Probed struct {
	Requests int
	Failed   map[string]int // by status and body
	Missed   int            // events that the socket did not get
	Answers  Quantiles      // from the moment the request was due to its answer
	Frames   Quantiles      // from the same moment to the event's frame
}

// Probe begins a client that posts n = 0, 1, 2 … to http://addr/touch, 200 times a second however long answers take, and
// listens at ws://addr/listen for events whose data is n.
func Probe(t testing.TB, addr string) *Work {
	t.Helper()
	return begin(t, order{Job: "probe", Addr: addr})
}

const probeEvery = 5 * time.Millisecond

func probe(o order) error {
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+o.Addr+"/listen", nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if _, _, err := ws.ReadMessage(); err != nil { // it follows
		return err
	}
	p := Probed{Failed: map[string]int{}}
	var (
		mu              sync.Mutex
		due             []time.Time
		answers, frames []time.Duration
		all             = make(chan struct{}, 1) // a frame came
	)
	go func() {
		for {
			var f struct{ Data int }
			if ws.ReadJSON(&f) != nil {
				return
			}
			mu.Lock()
			frames = append(frames, time.Since(due[f.Data]))
			mu.Unlock()
			select {
			case all <- struct{}{}:
			default:
			}
		}
	}()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var asked sync.WaitGroup
	end := ended()
	at, going := time.Now(), true
	for n := 0; going; n++ {
		at = at.Add(probeEvery)
		select {
		case <-time.After(time.Until(at)):
		case <-end:
			going = false
			continue
		}
		at := at
		mu.Lock()
		due = append(due, at)
		mu.Unlock()
		asked.Go(func() {
			said := post(client, fmt.Sprintf("http://%s/touch?n=%d", o.Addr, n))
			mu.Lock()
			defer mu.Unlock()
			p.Requests++
			if said != "200" {
				p.Failed[said]++
				return
			}
			answers = append(answers, time.Since(at))
		})
	}
	asked.Wait()
	for patience := time.After(60 * time.Second); ; {
		mu.Lock()
		p.Missed = len(answers) - len(frames)
		mu.Unlock()
		if p.Missed <= 0 {
			break
		}
		select {
		case <-all:
			continue
		case <-patience:
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	p.Answers, p.Frames = quantiles(answers), quantiles(frames)
	return answer(p)
}

// post gives the status, and the body of one that is not 200.
func post(client *http.Client, url string) string {
	resp, err := client.Post(url, "text/plain", nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
	}
	return "200"
}

func quantiles(took []time.Duration) Quantiles {
	if len(took) == 0 {
		return Quantiles{}
	}
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	return Quantiles{at(0.5), at(0.99), at(1)}
}
