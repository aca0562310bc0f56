package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/edge"
	"weir/pkg/lualib"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/services/host/internal/objectdb"
	"weir/services/standalone"
	"weir/test/testkit"
)

const benchApp = `
-- main.lua --
local Source = object "Source" {
    migrations = "m",
    publishes = { tick = "public" },
    put = function(state, key) state.sql:exec("INSERT INTO rows (key) VALUES (?)", { key }) end,
    burst = function(state, n)
        for i = 1, n do state:publish("tick", { n = i }) end
    end,
    nothing = function(state) end,
}
object "Sink" {
    migrations = "m",
    receives = { ["Source:tick"] = function(state, event)
        state.sql:exec("INSERT INTO rows (key) VALUES (?)", { event.data.n })
    end },
    watch = function(state, source) state:follow(Source(source), "tick") end,
    count = function(state) return state.sql:query_one("SELECT count(*) AS n FROM rows").n end,
}
-- m/1.sql --
CREATE TABLE rows (id INTEGER PRIMARY KEY, key INTEGER NOT NULL);
`

var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

func start(b testing.TB) *standalone.Standalone {
	dir := b.TempDir()
	testkit.WriteApp(b, dir, txtar.Parse([]byte(benchApp)))
	a, err := app.Load(dir, app.Options{Name: "bench", Library: lualib.Open(quiet)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(dir, "data"), Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	b.Cleanup(func() { cancel(); wg.Wait(); _ = s.Close() })
	return s
}

func call(b testing.TB, c *bus.Client, id, method string, args ...any) json.RawMessage {
	data, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	if args == nil {
		data = []byte("[]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := c.Call(ctx, wire.CallRequest{To: id, Method: method, Args: data})
	if err != nil {
		b.Fatal(id, method, err)
	}
	return out
}

// spread runs n pieces of work on 64 goroutines.
func spread(n int, work func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				work(int(i))
			}
		})
	}
	wg.Wait()
}

func perSecond(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s") }

// BenchmarkCalls: durable calls of one object with 64 callers.
func BenchmarkCalls(b *testing.B) {
	s := start(b)
	call(b, s.Client(), "Source/a", "put", 0)
	b.ResetTimer()
	spread(b.N, func(i int) { call(b, s.Client(), "Source/a", "put", i) })
	perSecond(b)
}

// BenchmarkCallsLimit: the same transaction and the same grouped sync, without Lua and NATS: 64 callers take turns.
func BenchmarkCallsLimit(b *testing.B) {
	path := filepath.Join(b.TempDir(), "o.db")
	db := openDB(b, path)
	g := newGroup(db.Sync)
	var turn sync.Mutex
	b.ResetTimer()
	spread(b.N, func(i int) {
		turn.Lock()
		insert(b, db, i)
		at := g.committed()
		turn.Unlock()
		g.wait(at)
	})
	perSecond(b)
}

func openDB(b testing.TB, path string) *objectdb.DB {
	db, err := objectdb.Open(path, objectid.ID{Class: "Source", Name: "a"}, objectdb.Options{})
	if err == nil {
		if err = db.Begin(context.Background()); err == nil {
			err = db.Migrate([]objectdb.Migration{{Name: "1.sql", SQL: "CREATE TABLE rows (id INTEGER PRIMARY KEY, key INTEGER NOT NULL);"}}, 0)
		}
	}
	if err == nil {
		_, err = db.Commit()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func insert(b testing.TB, db *objectdb.DB, i int) {
	err := db.Begin(context.Background())
	if err == nil {
		_, err = db.Exec("INSERT INTO rows (key) VALUES (?)", objectdb.Params{Positions: []value.Column{{Kind: value.Integer, Int: int64(i)}}})
	}
	if err == nil {
		_, err = db.Commit()
	}
	if err == nil {
		err = db.Checkpoint()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// group is a grouped sync.
type group struct {
	sync func() error

	mu              sync.Mutex
	changed         *sync.Cond
	commits, synced int
	running         bool
}

func newGroup(sync_ func() error) *group {
	g := &group{sync: sync_}
	g.changed = sync.NewCond(&g.mu)
	return g
}

func (g *group) committed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits++
	return g.commits
}

func (g *group) wait(at int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.synced < at {
		if g.running {
			g.changed.Wait()
			continue
		}
		g.running = true
		target := g.commits
		g.mu.Unlock()
		_ = g.sync()
		g.mu.Lock()
		g.synced, g.running = target, false
		g.changed.Broadcast()
	}
}

// BenchmarkDeliveriesOneEdge: committed deliveries over one edge.
func BenchmarkDeliveriesOneEdge(b *testing.B) { deliveries(b, 1) }

// BenchmarkDeliveriesThousandEdges: committed deliveries from one publisher to a thousand followers.
func BenchmarkDeliveriesThousandEdges(b *testing.B) { deliveries(b, 1000) }

func deliveries(b *testing.B, followers int) {
	s := start(b)
	spread(followers, func(i int) { call(b, s.Client(), fmt.Sprintf("Sink/%d", i), "watch", "a") })
	call(b, s.Client(), "Source/a", "burst", 1) // streams and consumers stand
	await(b, s, followers, 1)
	each := max(1, b.N/followers)
	b.ResetTimer()
	for left := each; left > 0; left -= 500 {
		call(b, s.Client(), "Source/a", "burst", min(left, 500))
	}
	await(b, s, followers, 1+each)
	b.ReportMetric(float64(each*followers)/b.Elapsed().Seconds(), "/s")
}

func await(b *testing.B, s *standalone.Standalone, followers, want int) {
	for i := 1; i <= followers; i++ {
		for string(call(b, s.Client(), fmt.Sprintf("Sink/%d", i), "count")) != fmt.Sprintf("[%d]", want) {
			<-time.After(2 * time.Millisecond)
		}
	}
}

// BenchmarkDeliveriesOneEdgeLimit: a consumer as an edge has it, that only acknowledges.
func BenchmarkDeliveriesOneEdgeLimit(b *testing.B) { onlyAck(b, 1) }

// BenchmarkDeliveriesThousandEdgesLimit: a thousand of them.
func BenchmarkDeliveriesThousandEdgesLimit(b *testing.B) { onlyAck(b, 1000) }

func onlyAck(b *testing.B, followers int) {
	s := start(b)
	nc, err := s.Connect("limit")
	if err != nil {
		b.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "L", Subjects: []string{"l.>"}, MaxConsumers: 1 << 20}); err != nil {
		b.Fatal(err)
	}
	var got atomic.Int64
	if _, err := nc.Subscribe("dlv", func(m *nats.Msg) { _ = m.Ack(); got.Add(1) }); err != nil {
		b.Fatal(err)
	}
	for i := range followers {
		if _, err := js.CreatePushConsumer(ctx, "L", jetstream.ConsumerConfig{Durable: fmt.Sprint("c", i), DeliverSubject: "dlv", AckPolicy: jetstream.AckExplicitPolicy,
			MaxAckPending: 64, MaxDeliver: -1, MemoryStorage: true, FilterSubjects: []string{"l.tick"}}); err != nil {
			b.Fatal(err)
		}
	}
	each := max(1, b.N/followers)
	b.ResetTimer()
	for seq := range each {
		m := nats.NewMsg("l.tick")
		wire.PutEvent(m, edge.Event{Publisher: objectid.ID{Class: "Source", Name: "a"}, Incarnation: "0123456789abcdef", Seq: uint64(seq + 1), Topic: "tick",
			Data: []byte(`{"n":1}`), Last: map[string]uint64{"tick": uint64(seq)}})
		if _, err := js.PublishMsgAsync(m, jetstream.WithExpectLastSequence(uint64(seq))); err != nil {
			b.Fatal(err)
		}
	}
	for got.Load() < int64(each*followers) {
		<-time.After(time.Millisecond)
	}
	b.ReportMetric(float64(each*followers)/b.Elapsed().Seconds(), "/s")
}

// BenchmarkDeliveryTransaction: what a delivery writes, on one file: the handler's row and the cursor, a sync for every
// 64. Events of one edge come one after the other, so that this bounds it.
func BenchmarkDeliveryTransaction(b *testing.B) {
	db := openDB(b, filepath.Join(b.TempDir(), "o.db"))
	ctx := context.Background()
	err := db.Begin(ctx)
	if err == nil {
		err = db.SaveFollowing("Source/a", edge.Cursor{Incarnation: "i"})
	}
	if err == nil {
		_, err = db.Commit()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		err := db.Begin(ctx)
		if err == nil {
			_, err = db.Exec("INSERT INTO rows (key) VALUES (?)", objectdb.Params{Positions: []value.Column{{Kind: value.Integer, Int: int64(i)}}})
		}
		if err == nil {
			err = db.SaveCursor("Source/a", uint64(i), false)
		}
		if err == nil {
			_, err = db.Commit()
		}
		if err == nil {
			err = db.Checkpoint()
		}
		if err == nil && i%64 == 0 {
			err = db.Sync()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

// BenchmarkSyncThousandFiles: the transaction of a delivery with a sync each, over a thousand files.
func BenchmarkSyncThousandFiles(b *testing.B) {
	dir := b.TempDir()
	dbs := make([]*objectdb.DB, 1000)
	for i := range dbs {
		dbs[i] = openDB(b, filepath.Join(dir, fmt.Sprint(i), "o.db"))
	}
	locks := make([]sync.Mutex, len(dbs))
	b.ResetTimer()
	spread(b.N, func(i int) {
		k := i % len(dbs)
		locks[k].Lock()
		defer locks[k].Unlock()
		insert(b, dbs[k], i)
		if err := dbs[k].Sync(); err != nil {
			b.Error(err)
		}
	})
	perSecond(b)
}

// BenchmarkWake: the time of a call to a sleeping object, which opens its file and loads the app into a VM.
func BenchmarkWake(b *testing.B) {
	dir := b.TempDir()
	testkit.WriteApp(b, dir, txtar.Parse([]byte(benchApp)))
	a, err := app.Load(dir, app.Options{Name: "bench", Library: lualib.Open(quiet)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(dir, "data"), Log: quiet, Limits: hostd.Limits{Awake: 8}})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	b.Cleanup(func() { cancel(); wg.Wait(); _ = s.Close() })
	for i := range 64 {
		call(b, s.Client(), fmt.Sprintf("Source/%d", i), "put", 1)
	}
	b.ResetTimer()
	for i := range b.N {
		call(b, s.Client(), fmt.Sprintf("Source/%d", i%64), "nothing")
	}
}

// BenchmarkAwake: the memory and descriptors of an awake object.
func BenchmarkAwake(b *testing.B) {
	s := start(b)
	const objects = 1000
	before, files := testkit.Settled(b), descriptors(b)
	for i := range objects {
		call(b, s.Client(), fmt.Sprintf("Source/%d", i), "put", 1)
	}
	bytes, open := testkit.Settled(b)-before, descriptors(b)-files
	for b.Loop() {
		call(b, s.Client(), "Source/1", "nothing")
	}
	b.ReportMetric(float64(bytes)/objects, "B/object")
	b.ReportMetric(float64(open)/objects, "files/object")
}

func descriptors(b testing.TB) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		b.Fatal(err)
	}
	return len(list)
}
