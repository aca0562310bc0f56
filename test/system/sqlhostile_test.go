package system

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const sqlApp = `
-- main.lua --
object "T" {
    publishes = { e = "public" },
    hooks = { init = function(state)
        state.sql:exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
        state.sql:exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) INSERT INTO t SELECT n, 'x' FROM c")
        state.store:set("k", "secret")
        state:publish("e", "first")
    end },
    -- Runs statements one after the other, keeps none of it, and tells what was read, or how it ended.
    run = function(state, list, params)
        local said
        for i, text in ipairs(list) do
            local ok, rows = pcall(function() return state.sql:query(text, i == #list and params or nil) end)
            if not ok then error("refused " .. rows, 0) end
            said = rows
        end
        error("took it: " .. json.stringify(said):sub(1, 200), 0)
    end,
    query = function(state, text) return state.sql:query(text) end,
    caught = function(state, text) while true do pcall(function() state.sql:query(text) end) end end,
    insert = function(state, text) state.sql:exec(text) return "kept" end,
    texts = function(state, k) for i = 1, 30 do state.sql:query("SELECT 1 AS a /* " .. k .. " " .. i .. ("x"):rep(900000) .. "*/") end end,
    count = function(state) return state.sql:query_one("SELECT count(*) AS n, total(a) AS s FROM t"), state.store:get("k") end,
    many = function(state, n) local p = {} for i = 1, n do p[i] = i end return #state.sql:query("SELECT " .. ("?,"):rep(n - 1) .. "?", p) end,
    wide = function(state, what, n)
        local first, again, last = unpack(({
            long = { "SELECT '", "x", "' AS a" }, sum = { "SELECT 1", "+1", " AS a" }, union = { "SELECT 1 AS a", " UNION ALL SELECT 1", "" },
            within = { "SELECT count(*) AS a FROM t WHERE a IN (1", ",1", ")" }, joins = { "SELECT count(*) AS a FROM t", ", t", "" }, comment = { "SELECT 1 AS a /*", "*", "*/" },
            deep = { "SELECT ", "(", "1 AS a" }, calls = { "SELECT ", "abs(", "1 AS a" }, columns = { "SELECT 1 AS a", ",1", "" }, values = { "INSERT INTO t (b) VALUES (1)", ",(1)", " RETURNING 1 AS a" },
            like = { "SELECT hex(zeroblob(500)) LIKE '", "%0", "1' AS a" }, glob = { "SELECT hex(zeroblob(500)) GLOB '", "*0?", "1' AS a" },
        })[what])
        return state.sql:query(first .. again:rep(n) .. last)[1]
    end,
}
`

// sqlReaches are ways to a table of the platform, to the schema, or out of the file: statements of which the last must
// not be taken. Each is refused as bad sql.
var sqlReaches = [][]string{
	// Tables of the platform: in every place where a table can stand.
	{"SELECT * FROM t UNION SELECT value, key FROM _weir_meta"}, {"SELECT * FROM t EXCEPT SELECT key, value FROM _weir_store"}, {"SELECT a FROM t ORDER BY (SELECT count(*) FROM _weir_log)"}, {"SELECT a FROM t LIMIT (SELECT count(*) FROM _weir_log)"},
	{"SELECT a FROM t GROUP BY a HAVING a < (SELECT max(seq) FROM _weir_log)"}, {"SELECT sum(a) OVER (ORDER BY (SELECT max(seq) FROM _weir_log)) FROM t"}, {"SELECT CASE WHEN (SELECT 1 FROM _weir_meta) THEN 1 END"}, {"VALUES ((SELECT value FROM _weir_store))"}, {"SELECT * FROM (t NATURAL JOIN _weir_store)"}, {"SELECT t.a FROM t LEFT JOIN _weir_log ON 0"},
	{"INSERT INTO t (b) VALUES (1) RETURNING (SELECT data FROM _weir_log)"}, {"UPDATE t SET b = w.value FROM _weir_store AS w"}, {"UPDATE t SET b = (SELECT value FROM _weir_store)"}, {"DELETE FROM t WHERE a IN (SELECT seq FROM _weir_log) RETURNING a"}, {"DELETE FROM t RETURNING (SELECT value FROM _weir_meta)"},
	{"INSERT INTO _weir_store VALUES ('k', '1') ON CONFLICT DO UPDATE SET value = '2'"}, {"INSERT INTO t VALUES (1, 2) ON CONFLICT DO UPDATE SET b = (SELECT value FROM _weir_store)"}, {"WITH x AS MATERIALIZED (SELECT 1) DELETE FROM _weir_log"}, {"WITH RECURSIVE x(a) AS (SELECT 1 UNION SELECT seq FROM _weir_log, x) SELECT a FROM x"},
	{"EXPLAIN SELECT * FROM _weir_log"}, {"EXPLAIN QUERY PLAN DELETE FROM _weir_meta"}, {"SELECT * FROM main . \"_weir_log\""}, {"SELECT * FROM/**/_weir_log"}, {"SELECT * FROM '_weir_log'"}, {"SELECT _weir_log.rowid FROM _weir_log"}, {"SELECT count(*) FROM _weir_log NOT INDEXED"},
	{"ALTER TABLE t ADD COLUMN c REFERENCES _weir_log (seq) ON DELETE CASCADE"}, {"CREATE TABLE x (y, FOREIGN KEY (y) REFERENCES _Weir_Log)"}, {"DROP INDEX _weir_edges_gateway"}, {"REINDEX _weir_edges"}, {"ANALYZE main._weir_log"}, {"CREATE TABLE x AS SELECT * FROM t, _weir_store"}, {"CREATE INDEX i ON t (a) WHERE a IN (SELECT seq FROM _weir_log)"},
	{"SELECT * FROM `_weir_log`"}, {"SELECT * FROM [_Weir_Log]"}, {"DELETE FROM \"_WEIR_log\""}, {"WITH x AS (SELECT * FROM main.[_weir_store]) SELECT * FROM x"}, {"CREATE TABLE `_WEIR_x` (a)"}, {"CREATE TABLE [_weir_\u043b] (a)"}, {"SELECT * FROM _w\u0435ir_log"}, {"SELECT * FROM \uff3fweir_log"}, {"SELECT * FROM [_we\u0131r_log]"},
	// By way of objects of one's own.
	{"CREATE VIEW v AS SELECT value FROM _weir_store", "CREATE VIEW w AS SELECT * FROM v", "SELECT * FROM w"}, {"CREATE VIEW v AS SELECT 1 AS a", "CREATE TRIGGER g INSTEAD OF DELETE ON v BEGIN DELETE FROM _weir_log; END", "DELETE FROM v"},
	{"CREATE TRIGGER g AFTER UPDATE OF b ON t WHEN (SELECT 1 FROM _weir_log) BEGIN SELECT 1; END", "UPDATE t SET b = 1"}, {"CREATE TRIGGER g BEFORE DELETE ON t BEGIN UPDATE _weir_meta SET value = 0; END", "DELETE FROM t"}, {"CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO _weir_log VALUES (99, 1, 'e', 'null'); END", "REPLACE INTO t VALUES (1, 1)"},
	{"CREATE TABLE x (a)", "ALTER TABLE x RENAME TO _weir_x"}, {"CREATE VIEW v AS SELECT 1", "ALTER TABLE v RENAME TO _weir_v"}, {"CREATE VIEW v (a) AS SELECT value FROM _weir_store", "INSERT INTO t (b) SELECT a FROM v"},
	// Virtual tables, and the tables that they make or read.
	{`CREATE VIRTUAL TABLE "_weir" USING fts5(x)`}, {`CREATE VIRTUAL TABLE _WEIR USING fts5(x)`}, {"CREATE VIRTUAL TABLE f USING fts5(x)", "ALTER TABLE f RENAME TO _weir"}, {"CREATE VIRTUAL TABLE f USING fts5(data, content='_weir_log', content_rowid='seq')", "INSERT INTO f (f) VALUES ('rebuild')"}, {"CREATE VIRTUAL TABLE f USING fts5(value, content='_weir_store')", "SELECT value FROM f"},
	{"CREATE VIRTUAL TABLE f USING fts4(content='_weir_store', value)", "SELECT value FROM f"}, {"CREATE VIRTUAL TABLE _weir USING rtree(id, a, b)"}, {"CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')"}, {"CREATE VIRTUAL TABLE x USING fsdir"}, {"CREATE VIRTUAL TABLE x USING dbstat"}, {"CREATE VIRTUAL TABLE x USING sqlite_stmt"}, {"CREATE VIRTUAL TABLE temp.x USING fts5(a)"},
	{"SELECT * FROM sqlite_dbdata"}, {"SELECT * FROM sqlite_dbptr"}, {"SELECT * FROM bytecode('SELECT 1')"}, {"SELECT * FROM tables_used('SELECT 1')"}, {"SELECT * FROM fsdir('/')"}, {"SELECT * FROM zipfile('/etc/passwd')"},
	// The schema.
	{"INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (a)')"}, {"UPDATE sqlite_master SET rootpage = 2"}, {"DELETE FROM main.sqlite_schema WHERE name LIKE '\\_weir%'"}, {"REPLACE INTO sqlite_temp_master VALUES (1, 2, 3, 4, 5)"}, {"DROP TABLE sqlite_schema"}, {"ALTER TABLE sqlite_schema ADD COLUMN x"}, {"CREATE TABLE sqlite_x (a)"}, {"CREATE TRIGGER g AFTER INSERT ON sqlite_schema BEGIN SELECT 1; END"}, {"CREATE INDEX i ON sqlite_schema (name)"},
	{"PRAGMA main.writable_schema = 1"}, {"PRAGMA\twritable_schema(1)"}, {"SELECT * FROM pragma_writable_schema"}, {"SELECT * FROM pragma_journal_mode('delete')"}, {"SELECT * FROM pragma_table_info('_weir_log')"}, {"SELECT * FROM pragma_index_list('_weir_edges')"}, {"SELECT * FROM pragma_table_xinfo('_WEIR_LOG')"}, {"PRAGMA table_xinfo('_weir_log')"}, {"PRAGMA index_list(_weir_edges)"}, {"PRAGMA foreign_key_list(\"_weir_log\")"}, {"EXPLAIN PRAGMA user_version = 1"},
	// Files and code.
	{"SELECT readfile('/etc/passwd')"}, {"SELECT writefile('x', 'y')"}, {"SELECT edit('x', 'sh')"}, {"SELECT fts3_tokenizer('simple', x'00')"}, {"SELECT load_extension('/x', 'y') FROM t"}, {"SELECT a FROM t ORDER BY load_extension('x')"}, {"CREATE TABLE x (a DEFAULT (load_extension('x')))", "INSERT INTO x DEFAULT VALUES"}, {"CREATE TABLE x (a, b AS (load_extension(a)))", "INSERT INTO x VALUES ('y')", "SELECT b FROM x"},
	{"CREATE INDEX i ON t (load_extension(b))"}, {"ATTACH DATABASE (SELECT 'x') AS x"}, {"ATTACH ? AS x"}, {"EXPLAIN ATTACH 'x' AS x"}, {"VACUUM main INTO (SELECT 'x')"}, {"/**/-- x\n vacuum"}, {"CREATE TEMP TABLE t (a)"}, {"CREATE TEMP VIEW t AS SELECT 1"}, {"CREATE TABLE TEMP.t AS SELECT 1 AS a"}, {"CREATE TEMPORARY TRIGGER g AFTER INSERT ON main.t BEGIN SELECT 1; END"}, {"INSERT INTO temp.t VALUES (1)"}, {"SELECT * FROM temp._weir_log"},
	{"EXPLAIN COMMIT"}, {"BEGIN CONCURRENT"}, {"\ufeffCOMMIT"}, {"; COMMIT"}, {";;"}, {"\v\fCOMMIT"}, {"--\rCOMMIT"}, {"SELECT 1;\x00COMMIT"}, {"SELECT 1\u0000"},
	{"SELECT RAISE(ROLLBACK, 'x')"}, {"CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT RAISE(ABORT, 'no'); END", "INSERT INTO t (b) VALUES (1)"},
}

// None of them is taken, and the object is as it was.
// spec: SQL-4
func TestSQLReaches(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sqlApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const want = `{"n":1000,"s":500500} "secret"`
		for _, list := range sqlReaches {
			args, err := wire.Encode(list)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := s.Call("T/a", "run", string(args)); err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "refused "), "bad sql: ") { // a name is also looked at when the call commits
				t.Errorf("%q: %s %v", list, out, err)
			}
			if out, err := s.Call("T/a", "count"); err != nil || strings.Join(out, " ") != want {
				t.Fatalf("after %q: %s %v", list, out, err)
			}
		}
		if e := s.Edges("T/a"); e.Head != 1 {
			t.Errorf("the log's head: %d", e.Head)
		}
	})
}

// What is too long, too deep, too wide or too large is an error, or is done; nothing is cut off, and the object goes on.
// spec: SQL-2, SQL-4, VAL-5
func TestSQLSizes(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sqlApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for _, c := range []struct{ method, args, want string }{
			{"many", `1000`, `^1$`}, {"many", `40000`, `^error: bad `}, {"wide", `"long",1000000`, `^\{"a":"x+"\}$|^error: bad (sql|value): `}, {"wide", `"long",15000000`, `^error: bad (sql|value): `},
			{"wide", `"deep",100000`, `^error: bad sql: `}, {"wide", `"sum",100000`, `^error: bad sql: `}, {"wide", `"union",10000`, `^error: bad sql: `}, {"wide", `"within",100000`, `^\{"a":1\}$`}, {"wide", `"joins",100`, `^error: bad sql: `}, {"wide", `"calls",10000`, `^error: bad sql: `}, {"wide", `"columns",10000`, `^error: bad sql: `}, {"wide", `"values",20000`, `^error: bad value: .*10,?000`},
			{"wide", `"comment",1000000`, `^\{"a":1\}$|^error: bad sql: `}, {"wide", `"like",400`, `^\{"a":0\}$|^error: `}, {"wide", `"glob",300`, `^\{"a":0\}$|^error: `},
			{"query", `"SELECT length(randomblob(900000000)) AS n"`, `^error: `}, {"query", `"SELECT zeroblob(2147483647) AS n"`, `^error: `}, {"query", `"SELECT hex(zeroblob(400000000)) AS n"`, `^error: `}, {"query", `"SELECT printf('%.*c', 900000000, 'x') AS n"`, `^error: `}, {"query", `"SELECT printf('%900000000d', 1) AS n"`, `^error: |^\[\{"n":" *1"\}\]$`},
			{"query", `"SELECT replace(hex(zeroblob(4000000)), '0', hex(zeroblob(1000))) AS n"`, `^error: `}, {"query", `"SELECT group_concat(hex(zeroblob(1000000)), '') AS n FROM t"`, `^error: `}, {"query", `"SELECT zeroblob(9000000) AS n"`, `^error: bad value: `}, {"query", `"SELECT x.a FROM t x, t y"`, `^error: bad value: .*10,?000`},
			{"query", `"SELECT 9007199254740993 AS n"`, `^error: bad value: .*n`}, {"query", `"SELECT 1e999 AS n"`, `^error: bad value: .*n`}, {"query", `"SELECT x'ff' AS n"`, `.`}, {"query", `"SELECT CAST(x'ff00fe' AS TEXT) AS n"`, `.`}, {"query", `"SELECT 1 AS a, 2 AS a"`, `.`}, {"query", `"SELECT 1 AS \"\""`, `.`}, {"query", `"SELECT ?99999 AS n"`, `^error: bad sql: `}, {"query", `"SELECT abs(-9223372036854775808) AS n"`, `^error: bad sql: `},
			{"run", `["SELECT $a AS x, @b AS y, :c AS z"],{"a":1,"b":2,"c":3}`, `^error: (took it: |refused bad sql: )`}, {"run", `["SELECT :a AS x"],{"a":{"b":1}}`, `^error: refused bad value: `}, {"run", `["SELECT ?3 AS x"],[1,2,3]`, `.`}, {"run", `["SELECT :a AS x"],{"a\u0000b":1}`, `^error: refused bad `},
		} {
			out, err := s.Call("T/a", c.method, c.args)
			got := strings.Join(out, " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if !regexp.MustCompile(c.want).MatchString(got) || strings.Contains(got, "internal: ") {
				t.Errorf("%s %s\n got %.200s\nwant %s", c.method, c.args, got, c.want)
			}
			if out, err := s.Call("T/a", "count"); err != nil {
				t.Fatalf("after %s %s: %s %v", c.method, c.args, out, err)
			}
		}
	})
}

// Statements without end, or with an end that nobody lives to see.
var sqlEndless = map[string]string{
	"numbers":        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
	"a circle":       "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT count(*) FROM c WHERE n = 2",
	"sorted":         "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n % 1000 FROM c ORDER BY 1) SELECT n FROM c WHERE n < 0",
	"all with all":   "SELECT count(*) AS n FROM t a, t b, t c, t d, t e",
	"compared":       "SELECT count(*) AS n FROM t a, t b, t c, t d WHERE a.a + b.a * c.a = d.a % 7 - 100",
	"once per row":   "SELECT a FROM t WHERE (SELECT count(*) FROM t b, t c, t d WHERE b.a + c.a + d.a + t.a = -1) > 0",
	"updated":        "UPDATE t SET b = (SELECT count(*) FROM t b, t c, t d WHERE b.a + c.a + d.a = -1)",
	"deleted":        "DELETE FROM t WHERE a < 0 OR (SELECT count(*) FROM t b, t c, t d, t e) < 0 RETURNING a",
	"window":         "SELECT sum(x) AS n FROM (SELECT sum(a.a) OVER (ORDER BY a.a, b.a, c.a ROWS 1 PRECEDING) AS x FROM t a, t b, t c)",
	"never the last": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n < 0 LIMIT 1",
	"a table made":   "CREATE TABLE x AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n < 0",
	"an index made":  "CREATE INDEX i ON t (a) WHERE a < 0 AND (a + 1 + (a * 2)) > 0 OR a = 1",
	"patterns":       "SELECT count(*) AS n FROM t a, t b, t c WHERE (hex(zeroblob(500)) || a.a) LIKE '%0%0%0%0%0%1_' || b.a || c.a",
}

// Each ends by the time of the call, inside pcall too, with nothing kept; others go on, and the object does afterwards.
// spec: SQL-7, OBJ-11
func TestSQLEndless(t *testing.T) {
	s, _ := realOf(t, sqlApp, hostd.Limits{Run: 300 * time.Millisecond, Budget: 1 << 40})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	call := func(id, method string, args ...any) (string, error) {
		data, err := json.Marshal(append([]any{}, args...))
		if err != nil {
			return "", err
		}
		out, err := s.Client().Call(ctx, wire.CallRequest{To: id, Method: method, Args: data})
		return string(out), err
	}
	fine := func(id, when string) {
		t.Helper()
		out, err := call(id, "count")
		for err != nil && strings.HasPrefix(err.Error(), "timeout: ") && ctx.Err() == nil { // on a slow machine
			out, err = call(id, "count")
		}
		if err != nil || out != `[{"n":1000,"s":500500},"secret"]` {
			t.Errorf("%s: %s %v", when, out, err)
		}
	}
	for name, text := range sqlEndless {
		id := "T/" + name
		fine(id, "before "+name)
		for _, method := range []string{"query", "caught"} {
			if name == "an index made" && method != "caught" { // it ends; but not in a loop
				continue
			}
			if out, err := call(id, method, text); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
				t.Errorf("%s, %s: %s %v", name, method, out, err)
			}
			fine(id, "after "+name+", "+method)
		}
	}
	// What grows without end is full, or ends by its time.
	for _, text := range []string{
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) INSERT INTO t (b) SELECT randomblob(100000) FROM c",
		"CREATE TABLE x AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT randomblob(100000) FROM c",
	} {
		if out, err := call("T/full", "insert", text); err == nil || !strings.HasPrefix(err.Error(), "database full: ") && !strings.HasPrefix(err.Error(), "timeout: ") {
			t.Errorf("%s: %s %v", text, out, err)
		}
		fine("T/full", "after "+text)
	}
}

var digits = regexp.MustCompile("[0-9]+")

// A deadline may come at any moment of a call, also while the platform itself reads or writes the file, or makes a new
// one: the answer is a result or "timeout", and the object goes on.
// spec: OBJ-11, SQL-7
func TestDeadlineAtAnyMoment(t *testing.T) {
	for _, run := range []time.Duration{time.Microsecond, 100 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond} {
		s, _ := realOf(t, sqlApp, hostd.Limits{Run: run})
		seen := map[string]bool{}
		for i := range 300 {
			_, err := s.Client().Call(t.Context(), wire.CallRequest{To: fmt.Sprintf("T/%d", i%100), Method: "count", Args: json.RawMessage("[]"), WaitMS: 30_000})
			if err == nil || strings.HasPrefix(err.Error(), "timeout: ") {
				continue
			}
			if kind := digits.ReplaceAllString(err.Error(), "0"); !seen[kind] {
				seen[kind] = true
				t.Errorf("with %v to run: %v", run, err)
			}
		}
	}
}

// peak gives the most memory that the process has held since the last call, in MiB.
func peak(t *testing.T) (n int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skip(err)
	}
	return n >> 10
}

// A statement that holds many large values at once, none of which is a row of the database or of the answer, is cut, or
// is done in little memory: a database is 64 MiB, and these would hold 512 MiB at the same time.
// spec: BOX-3, OBJ-11
func TestSQLMemory(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sqlApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		if _, err := s.Call("T/a", "count"); err != nil {
			t.Fatal(err)
		}
		const large = "(SELECT hex(zeroblob(8000000)) || a AS x FROM t LIMIT 32)"
		for name, text := range map[string]string{
			"sorted":       "SELECT count(*) AS n FROM (SELECT x FROM " + large + " ORDER BY x DESC LIMIT 1000)",
			"materialized": "WITH c AS MATERIALIZED (SELECT x FROM " + large + ") SELECT count(*) AS n FROM c a, c b WHERE a.x > b.x",
			"recursive":    "WITH RECURSIVE c(n, x) AS (SELECT 1, '' UNION SELECT n + 1, hex(zeroblob(8000000)) || n FROM c LIMIT 32) SELECT count(*) AS n FROM c",
			"window":       "SELECT max(length(m)) AS n FROM (SELECT max(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS m FROM " + large + ")",
		} {
			runtime.GC()
			peak(t)
			before := peak(t)
			out, err := s.Call("T/a", "query", string(mustEncode(t, text)))
			if after := peak(t); after-before > 256 {
				t.Errorf("%s: %d MiB more than before; %s %v", name, after-before, out, err)
			}
			if out, err := s.Call("T/a", "count"); err != nil {
				t.Fatalf("after %s: %s %v", name, out, err)
			}
		}
	})
}

// What awake objects keep of long statements that all differ is bounded over the process: these are 540 MB of text.
// spec: BOX-3
func TestSQLTexts(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sqlApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		s.MustCall("T/0", "count")
		peak(t)
		before := peak(t)
		for i := range 20 {
			s.MustCall(fmt.Sprintf("T/%d", i/2), "texts", fmt.Sprint(i))
		}
		runtime.GC()
		debug.FreeOSMemory()
		peak(t)
		if after := peak(t); after-before > 256 {
			t.Errorf("%d MiB more are held than before", after-before)
		}
	})
}

func mustEncode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := wire.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
