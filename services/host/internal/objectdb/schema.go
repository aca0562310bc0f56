package objectdb

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"

	"zombiezen.com/go/sqlite"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

// format is the version of the tables below. A newer file is refused.
const format = 1

// tables are the platform's part of an object's file.
var tables = []string{
	`CREATE TABLE _weir_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE TABLE _weir_log (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, topic TEXT NOT NULL, data TEXT NOT NULL) STRICT`,
	`CREATE TABLE _weir_edges (follower TEXT NOT NULL, incarnation TEXT NOT NULL, topic TEXT NOT NULL,
		transport TEXT NOT NULL, gateway TEXT NOT NULL, connection TEXT NOT NULL, filter TEXT, start INTEGER NOT NULL,
		confirmed INTEGER NOT NULL, version INTEGER NOT NULL, set_version INTEGER NOT NULL,
		PRIMARY KEY (follower, gateway, connection, topic)) STRICT, WITHOUT ROWID`,
	`CREATE INDEX _weir_edges_gateway ON _weir_edges (gateway, connection)`,
	`CREATE TABLE _weir_dropped (follower TEXT NOT NULL, topic TEXT NOT NULL, seq INTEGER NOT NULL,
		attempts INTEGER NOT NULL, error TEXT NOT NULL, at INTEGER NOT NULL, event TEXT) STRICT`,
	`CREATE TABLE _weir_following (publisher TEXT PRIMARY KEY, incarnation TEXT NOT NULL, version INTEGER NOT NULL,
		edge_number INTEGER NOT NULL, cursor INTEGER NOT NULL, edges TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE TABLE _weir_attempts (publisher TEXT PRIMARY KEY, incarnation TEXT NOT NULL, seq INTEGER NOT NULL,
		since INTEGER NOT NULL, count INTEGER NOT NULL, next_at INTEGER NOT NULL, error TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE TABLE _weir_store (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE TABLE _weir_alarm (one INTEGER PRIMARY KEY CHECK (one = 1), due INTEGER NOT NULL, set_at INTEGER NOT NULL,
		count INTEGER NOT NULL, next_at INTEGER NOT NULL, error TEXT NOT NULL, failed INTEGER NOT NULL) STRICT`,
	`CREATE TABLE _weir_migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
}

// ownNames is how many names in a file's schema start with _weir_; app SQL may not add one.
var ownNames = len(tables)

// create makes the tables, in the transaction of the object's first call.
func (db *DB) create() error {
	for _, sql := range tables {
		if err := db.exec(sql); err != nil {
			return db.broken("create", err)
		}
	}
	db.wrote = true
	if db.Own == "" { // a transaction that failed keeps the name under which it may have followed
		db.Own = newIncarnation()
	}
	db.Token = ""
	db.Edges = edge.Publisher{ID: db.id, Incarnation: db.Own, Peers: map[string]*edge.Peer{}}
	db.before = scalars{}
	for key, value := range map[string]string{"format": strconv.Itoa(format), "id": db.id.String(), "incarnation": db.Own} {
		if err := db.setMeta(key, value); err != nil {
			return db.broken("create", err)
		}
	}
	return nil
}

// Initialised says whether the object's init has run, in a transaction that committed.
func (db *DB) Initialised() bool { return db.initialised }

// SetInitialised records it, in the transaction in which init ran.
func (db *DB) SetInitialised() error {
	db.initialises = true
	return db.setMeta("initialised", "1")
}

func newIncarnation() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (db *DB) setMeta(key, value string) error {
	return db.write("INSERT INTO _weir_meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
}

// load reads what an existing file says of itself.
func (db *DB) load() error {
	meta := map[string]string{}
	if err := db.query("SELECT key, value FROM _weir_meta", func(s *sqlite.Stmt) error {
		meta[s.ColumnText(0)] = s.ColumnText(1)
		return nil
	}); err != nil {
		return db.broken("open", err)
	}
	if f, err := strconv.Atoi(meta["format"]); err != nil || f > format {
		return wire.Errorf(wire.Corrupt, "the file of %s has format %q, this version of Weir knows up to %d: run the newer one", db.id, meta["format"], format)
	}
	if meta["id"] != db.id.String() {
		return wire.Errorf(wire.Corrupt, "the file %s belongs to %s, not to %s", db.path, meta["id"], db.id)
	}
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(meta[key], 10, 64) // absent until it was first changed
		return n
	}
	db.Own, db.Token, db.initialised = meta["incarnation"], meta["token"], meta["initialised"] != ""
	db.Edges = edge.Publisher{ID: db.id, Incarnation: db.Own, Parent: meta["parent"], Fork: number("fork"),
		Head: number("last_seq"), Trimmed: number("trimmed"), Number: number("edge_number"), Versions: number("versions")}
	if err := db.query("SELECT count(*), coalesce(sum(length(CAST(data AS BLOB)) + 512), 0) FROM _weir_log", func(s *sqlite.Stmt) error {
		db.logRows, db.logSize = s.ColumnInt(0), s.ColumnInt64(1)
		return nil
	}); err != nil {
		return db.broken("open", err)
	}
	db.before = db.scalars()
	return db.loadEdges()
}

func (db *DB) scalars() scalars {
	e := &db.Edges
	return scalars{e.Head, e.Trimmed, e.Number, e.Versions, db.Token, db.logRows, db.logSize}
}

func (db *DB) restore(s scalars) {
	e := &db.Edges
	e.Head, e.Trimmed, e.Number, e.Versions = s.head, s.trimmed, s.number, s.versions
	db.Token, db.logRows, db.logSize = s.token, s.logRows, s.logSize
}

// saveScalars writes those that the transaction changed.
func (db *DB) saveScalars() error {
	now, was := db.scalars(), db.before
	for _, f := range []struct {
		key      string
		now, was uint64
	}{{"last_seq", now.head, was.head}, {"trimmed", now.trimmed, was.trimmed},
		{"edge_number", now.number, was.number}, {"versions", now.versions, was.versions}} {
		if f.now != f.was {
			if err := db.setMeta(f.key, strconv.FormatUint(f.now, 10)); err != nil {
				return err
			}
		}
	}
	if now.token != was.token {
		return db.setMeta("token", now.token)
	}
	return nil
}
