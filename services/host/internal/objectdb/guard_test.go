package objectdb

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"weir/pkg/objectid"
	"weir/pkg/value"
)

var testID = objectid.ID{Class: "T", Name: "a"}

// open gives a committed object with a table of the app's.
func open(t testing.TB) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "o.db"), testID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	begin(t, db)
	if err := db.Migrate([]Migration{{"1.sql", "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x);\nINSERT INTO t (x) VALUES (1);"}}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(1, "tick", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	commit(t, db)
	return db
}

func begin(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, db *DB) bool {
	t.Helper()
	wrote, err := db.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return wrote
}

// platform describes everything that app SQL must not touch.
func platform(t testing.TB, db *DB) string {
	t.Helper()
	var b strings.Builder
	for _, sql := range []string{"SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_schema WHERE name LIKE '\\_weir\\_%' ESCAPE '\\' ORDER BY name",
		"SELECT key || '=' || value FROM _weir_meta ORDER BY key", "SELECT seq || topic || data FROM _weir_log ORDER BY seq",
		"SELECT count(*) FROM _weir_edges", "SELECT count(*) FROM _weir_following", "SELECT name || sha256 FROM _weir_migrations", "SELECT count(*) FROM _weir_store"} {
		if err := db.query(sql, func(s *sqlite.Stmt) error { b.WriteString(s.ColumnText(0) + "\n"); return nil }); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return b.String()
}

// refused are statements that app SQL may not run, each in a transaction of its own, with a part of what is said.
// spec: SQL-4
var refused = []struct{ sql, says string }{
	{"ATTACH 'x.db' AS x", "ATTACH"}, {"DETACH main", "ATTACH"}, {"BEGIN", "transaction control"}, {"COMMIT", "transaction control"},
	{"ROLLBACK", "transaction control"}, {"END", "transaction control"}, {"SAVEPOINT s", "transaction control"}, {"RELEASE s", "transaction control"},
	{"VACUUM", "VACUUM"}, {"VACUUM INTO 'x.db'", "VACUUM"}, {"/* c */ vacuum", "VACUUM"}, {"SELECT load_extension('x')", "not authorized"},
	{"PRAGMA journal_mode=DELETE", "PRAGMA"}, {"PRAGMA user_version=3", "PRAGMA"}, {"PRAGMA writable_schema=ON", "PRAGMA"},
	{"PRAGMA foreign_keys=OFF", "PRAGMA"}, {"PRAGMA max_page_count=1", "PRAGMA"}, {"PRAGMA database_list", "PRAGMA"}, {"SELECT * FROM pragma_database_list", ""},
	{"CREATE TEMP TABLE x (y)", "TEMP"}, {"CREATE TEMP VIEW x AS SELECT 1", "TEMP"}, {"CREATE TABLE temp.x (y)", "TEMP"},
	{"CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", "TEMP"},
	{"SELECT * FROM sqlite_dbpage", ""}, {"UPDATE sqlite_dbpage SET data = zeroblob(4096)", ""},
	{"DELETE FROM sqlite_sequence", "sqlite_sequence"}, {"UPDATE sqlite_sequence SET seq = 9", "sqlite_sequence"}, {"INSERT INTO sqlite_sequence VALUES ('t', 1)", "sqlite_sequence"},
	{"SELECT * FROM _weir_log", "_weir_"}, {"SELECT * FROM _WEIR_LOG", "_weir_"}, {"SELECT * FROM \"_weir_log\"", "_weir_"}, {"SELECT * FROM main._weir_meta", "_weir_"},
	{"DELETE FROM _weir_log", "_weir_"}, {"UPDATE _weir_meta SET value = 1", "_weir_"}, {"INSERT INTO _weir_log VALUES (9, 1, 'x', '{}')", "_weir_"},
	{"DROP TABLE _weir_log", "_weir_"}, {"ALTER TABLE _weir_log ADD COLUMN x", "_weir_"}, {"ALTER TABLE _weir_log RENAME TO x", "_weir_"},
	{"CREATE TABLE _weir_x (y)", "_weir_"}, {"CREATE TABLE _Weir_x (y)", "_weir_"}, {"CREATE INDEX _weir_i ON t (x)", "_weir_"}, {"CREATE INDEX i ON _weir_log (at)", "_weir_"},
	{"CREATE VIEW _weir_v AS SELECT 1", "_weir_"}, {"CREATE TRIGGER _weir_t AFTER INSERT ON t BEGIN SELECT 1; END", "_weir_"},
	{"CREATE TRIGGER tr AFTER INSERT ON _weir_log BEGIN SELECT 1; END", "_weir_"}, {"ALTER TABLE t RENAME TO _weir_t", "_weir_"}, {"ALTER TABLE t RENAME TO _WEIR_T", "_weir_"},
	{"CREATE TABLE f (a REFERENCES _weir_log (seq) ON DELETE CASCADE)", "_weir_"}, {"CREATE VIRTUAL TABLE v USING dbstat", "virtual tables"},
	{"CREATE VIRTUAL TABLE _weir_v USING fts5(x)", "_weir_"}, {"WITH w AS (SELECT * FROM _weir_log) SELECT * FROM w", "_weir_"},
	{"INSERT INTO t (x) SELECT data FROM _weir_log", "_weir_"}, {"SELECT (SELECT count(*) FROM _weir_log)", "_weir_"},
	{"SELECT * FROM `_weir_log`", "_weir_"}, {"SELECT * FROM [_weir_log]", "_weir_"}, {"SELECT * FROM [_WEIR_Log]", "_weir_"}, {"SELECT * FROM `_Weir_lOG`", "_weir_"}, {"SELECT * FROM \"_wEiR_lOg\"", "_weir_"},
	{"SELECT * FROM main.`_weir_log`", "_weir_"}, {"SELECT * FROM \"main\".[_weir_log]", "_weir_"}, {"DELETE FROM `_weir_log`", "_weir_"}, {"UPDATE [_weir_meta] SET value = 1", "_weir_"}, {"INSERT INTO \"_WEIR_LOG\" VALUES (9, 1, 'x', '{}')", "_weir_"},
	{"DROP TABLE [_Weir_Log]", "_weir_"}, {"CREATE TABLE `_WEIR_x` (y)", "_weir_"}, {"CREATE VIEW [_weir_v] AS SELECT 1", "_weir_"}, {"CREATE INDEX `_weir_i` ON t (x)", "_weir_"}, {"ALTER TABLE t RENAME TO [_weir_t]", "_weir_"}, {"ALTER TABLE t RENAME TO `_Weir_t`", "_weir_"},
	{"CREATE TABLE [_weir_log\u200b] (y)", "_weir_"}, {"CREATE TABLE \"_weir_\" (y)", "_weir_"}, {"CREATE TABLE `_weir_ж` (y)", "_weir_"}, {"CREATE TABLE \"_weir_\"\"x\" (y)", "_weir_"}, {"PRAGMA table_info([_Weir_Log])", "platform"}, {"SELECT * FROM pragma_table_info(\"_weir_log\")", ""},
	{"SELECT 1; SELECT 2", "more than one statement"}, {"INSERT INTO t (x) VALUES (1); DROP TABLE t", "more than one statement"}, {"", "no statement"}, {" -- only a comment", "no statement"}, {" \v", "no statement"}, {"\ufeff;\t\v\f\r\n/* x */ ;", "no statement"},
	{"SELECT 1\x00; DROP TABLE t", "NUL"}, {"PRAGMA table_info(_weir_log)", "_weir_"}, {"ANALYZE _weir_log", "_weir_"}, {"REINDEX _weir_edges_gateway", "_weir_"},
}

func TestRefused(t *testing.T) {
	db := open(t)
	before := platform(t, db)
	for _, c := range refused {
		begin(t, db)
		_, err := db.Query(c.sql, Params{}, false)
		if err == nil {
			t.Errorf("%s: accepted", c.sql)
		} else if !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "bad sql: ") {
			t.Errorf("%s: %v, want it to say %q", c.sql, err, c.says)
		}
		if err := db.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	if after := platform(t, db); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

// What triggers and views of the app do is refused when it happens.
// spec: SQL-4
func TestRefusedWhenItRuns(t *testing.T) {
	db := open(t)
	for _, c := range []struct{ first, then string }{
		{"CREATE VIEW v AS SELECT * FROM _weir_log", "SELECT * FROM v"},
		{"CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM _weir_log; END", "INSERT INTO t (x) VALUES (2)"},
		{"CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM sqlite_sequence; END", "INSERT INTO t (x) VALUES (2)"},
	} {
		begin(t, db)
		_, err := db.Exec(c.first, Params{})
		if err == nil {
			_, err = db.Query(c.then, Params{}, false)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "bad sql: ") {
			t.Errorf("%s; %s: %v", c.first, c.then, err)
		}
		if err := db.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// A name that only looks like one of the platform's is a table of the app's, under every verb.
// spec: SQL-4
func TestLookAlikes(t *testing.T) {
	db := open(t)
	before := platform(t, db)
	for _, name := range []string{
		"_w\u0435ir_log", "_we\u0456r_log", "_we\u0131r_log", "_WE\u0130R_LOG", "_\u051deir_log", "_weir\uff3flog", "\uff3fweir_log", "_\uff57\uff45\uff49\uff52_log", "_wei\u0433_log", "_weir\u203flog",
		"_we\u0301ir_log", "_we\u200bir_log", "\u200b_weir_log", "\ufeff_weir_log", "_\u00adweir_log", "_weir\u0332log", "\u202e_weir_log", "_\U0001d430eir_log", " _weir_log", "\t_weir_log", "__weir_log", "_weir log", "_weir", "weir_log", "%weir_log", "_weir-_log",
		"\xff_weir_log", "_weir\xc0\xdflog",
	} {
		begin(t, db)
		for _, sql := range []string{"CREATE TABLE %s (data)", "INSERT INTO %s VALUES ('mine')", "CREATE INDEX i ON %s (data)", "ALTER TABLE %s RENAME TO x", "ALTER TABLE x RENAME TO %s",
			"CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM %s; END", "CREATE VIEW v AS SELECT * FROM %s"} {
			if _, err := db.Exec(strings.ReplaceAll(sql, "%s", `"`+name+`"`), Params{}); err != nil {
				t.Errorf("%q: %s: %v", name, sql, err)
			}
		}
		for _, from := range []string{`"` + name + `"`, "`" + name + "`", "[" + name + "]", "main.[" + name + "]", "v"} {
			rows, err := db.Query("SELECT data FROM "+from, Params{}, false)
			if err != nil || len(rows) != 1 {
				t.Errorf("%q as %s: %v %v", name, from, rows, err)
			}
		}
		if _, err := db.Exec("INSERT INTO t (x) VALUES (2)", Params{}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if rows, err := db.Query(`SELECT * FROM "`+name+`"`, Params{}, false); err != nil || len(rows) != 0 {
			t.Errorf("%q, emptied by a trigger: %v %v", name, rows, err)
		}
		commit(t, db) // which looks at names too
		begin(t, db)
		for _, sql := range []string{"DROP TRIGGER tr", "DROP VIEW v", `DROP TABLE "` + name + `"`} {
			if _, err := db.Exec(sql, Params{}); err != nil {
				t.Errorf("%q: %s: %v", name, sql, err)
			}
		}
		commit(t, db)
		if after := platform(t, db); after != before {
			t.Fatalf("%q changed:\n%s\n%s", name, before, after)
		}
	}
}

// What an app needs is there.
func TestAllowed(t *testing.T) {
	db := open(t)
	begin(t, db)
	for _, sql := range []string{"CREATE TABLE u (a INTEGER PRIMARY KEY AUTOINCREMENT, b REFERENCES t (id))", "CREATE INDEX ui ON u (b)", "INSERT INTO u (b) VALUES (1)",
		"ALTER TABLE u RENAME TO w", "ALTER TABLE w ADD COLUMN c", "CREATE VIEW vw AS SELECT * FROM w", "SELECT * FROM vw", "DROP VIEW vw", "DROP TABLE w",
		"CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET x = 2; END", "CREATE VIRTUAL TABLE f USING fts5(body)", "INSERT INTO f VALUES ('hello')",
		"SELECT * FROM f WHERE f MATCH 'hello'", "DROP TABLE f", "PRAGMA table_info(t)", "SELECT name FROM pragma_table_info('t')", "SELECT name FROM sqlite_schema",
		"SELECT * FROM sqlite_sequence", "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 5) SELECT sum(n) FROM c",
		"INSERT INTO t (x) VALUES (3) RETURNING id", "ANALYZE t", "SELECT 1;", "SELECT 1 -- done"} {
		if _, err := db.Query(sql, Params{}, false); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	commit(t, db)
}

// A statement that ends the transaction fails the call, whatever the app makes of it.
// spec: OBJ-6
func TestEndedBySQLite(t *testing.T) {
	db := open(t)
	begin(t, db)
	if _, err := db.Exec("CREATE TABLE k (a PRIMARY KEY)", Params{}); err != nil {
		t.Fatal(err)
	}
	commit(t, db)
	begin(t, db)
	if _, err := db.Exec("INSERT INTO k VALUES (1)", Params{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT OR ROLLBACK INTO k VALUES (1)", Params{}); err == nil {
		t.Fatal("no error")
	}
	if !db.Ended() {
		t.Fatal("not noticed")
	}
	if _, err := db.Exec("INSERT INTO k VALUES (2)", Params{}); err == nil {
		t.Fatal("a statement ran after the transaction had ended")
	}
	if _, err := db.Commit(); err == nil {
		t.Fatal("committed")
	}
	begin(t, db)
	rows, err := db.Query("SELECT * FROM k", Params{}, false)
	if err != nil || len(rows) != 0 {
		t.Fatalf("%v %v", rows, err)
	}
	commit(t, db)
}

// FuzzGuard runs any text as app SQL: the platform's tables stay as they were, the transaction is ours to end, and the
// file stays sound.
func FuzzGuard(f *testing.F) {
	for _, c := range refused {
		f.Add(c.sql)
	}
	f.Add("CREATE TABLE x (a, b); ")
	f.Add("INSERT INTO t (x) VALUES (?)")
	db := open(f)
	before := platform(f, db)
	f.Fuzz(func(t *testing.T, sql string) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if err := db.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Rollback() }() // a failure must not be the next input's, too
		_, err := db.Query(sql, Params{Positions: []value.Column{}}, false)
		if err == nil && db.conn.AutocommitEnabled() {
			t.Fatalf("%q ended the transaction unnoticed", sql)
		}
		if db.Ended() {
			if err == nil {
				t.Fatalf("%q ended the transaction without an error", sql)
			}
		} else if now := platform(t, db); now != before {
			t.Fatalf("%q changed the platform's tables:\n%s\n%s", sql, before, now)
		}
		if err := db.Rollback(); err != nil {
			t.Fatal(err)
		}
		if now := platform(t, db); now != before {
			t.Fatalf("%q changed the platform's tables for good:\n%s\n%s", sql, before, now)
		}
	})
}
