package objectdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"weir/pkg/edge"
	"weir/pkg/objectid"
	"weir/pkg/wire"
)

// Options are the limits of a file; zero values are the defaults.
type Options struct {
	MaxBytes       int64 // of the database, its undelivered log not counted; default 64 MiB
	MaxLogBytes    int64 // of undelivered events, each counted as its data and 512 bytes; default 64 MiB
	CheckpointSize int64 // the WAL is copied back into the database from this size on; default 4 MiB
	Memory         bool  // no file: for trying migrations
}

// ErrClosed is returned for a DB that was closed.
var ErrClosed = errors.New("objectdb: closed")

// DB is one object's open file.
type DB struct {
	// Edges is the object's publishing side, as of the transaction in progress. After a rollback it is what it was
	// at its begin.
	Edges edge.Publisher
	// Own is the incarnation under which this object follows others; the same as it publishes under.
	Own string
	// Token names the publisher's stream; "" before there was one.
	Token string

	id                       objectid.ID
	path                     string
	o                        Options
	conn                     *sqlite.Conn
	guard                    guard
	stmts                    map[string]*sqlite.Stmt // the platform's
	app                      appStatements
	isNew                    bool // the _weir_ tables are not there yet
	initialised, initialises bool
	inTx                     bool
	wrote                    bool // in this transaction
	ended                    bool // SQLite ended the transaction by itself
	edited                   bool // edges changed in this transaction
	ddl                      bool // app SQL changed the schema in this transaction
	before                   scalars
	logRows                  int   // kept in the log
	logSize                  int64 // of them: data and 512 bytes each
	pages                    int64 // max_page_count as it is set
	wal                      walFile
	commits                  int // that wrote, since the size of the WAL was last looked at
	recovered                bool
	spoilt                   error
}

// scalars are the numbers of the edge table that transactions change and rollbacks restore.
type scalars struct {
	head, trimmed, number, versions uint64
	token                           string
	logRows                         int
	logSize                         int64
}

// Open opens the object's file, or prepares a new one: its tables are made in the first transaction, and if that
// does not commit Discard leaves nothing.
func Open(path string, id objectid.ID, o Options) (db *DB, err error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxLogBytes == 0 {
		o.MaxLogBytes = 64 << 20
	}
	if o.CheckpointSize == 0 {
		o.CheckpointSize = 4 << 20
	}
	db = &DB{id: id, path: path, o: o, Edges: edge.Publisher{ID: id}, stmts: map[string]*sqlite.Stmt{}, app: newAppStatements()}
	flags := sqlite.OpenReadWrite | sqlite.OpenCreate
	if o.Memory {
		path, flags = ":memory:", flags|sqlite.OpenMemory
	} else if err = db.wal.prepareFolders(path); err != nil {
		return nil, err
	} else if left, err := os.Stat(path + "-wal"); err == nil {
		db.recovered = left.Size() > 0
	}
	if db.conn, err = sqlite.OpenConn(path, flags); err != nil {
		return nil, db.broken("open", err)
	}
	opened := db
	defer func() {
		if err != nil {
			_ = opened.Close()
		}
	}()
	for _, pragma := range []string{"locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=0",
		"foreign_keys=ON", "trusted_schema=OFF", "cache_size=-512", "temp_store=FILE", "mmap_size=0"} {
		if err = db.exec("PRAGMA " + pragma); err != nil {
			return nil, db.broken("open", err)
		}
	}
	// Not conn.SetDefensive: in v1.4.2 it passes one variable argument where SQLite reads two, and the second is written
	// through. What it would forbid, the guard does.
	for limit, value := range map[sqlite.Limit]int32{sqlite.LimitLength: 16 << 20, sqlite.LimitSQLLength: 1 << 20,
		sqlite.LimitExprDepth: 200, sqlite.LimitCompoundSelect: 50, sqlite.LimitAttached: 0, sqlite.LimitVariableNumber: 1000,
		sqlite.LimitLikePatternLength: 1000, sqlite.LimitTriggerDepth: 50} {
		db.conn.Limit(limit, value)
	}
	db.guard.db = db
	if err = db.conn.SetAuthorizer(&db.guard); err != nil {
		return nil, db.broken("open", err)
	}
	tables := 0
	if err = db.query("SELECT count(*) FROM sqlite_schema WHERE name = '_weir_meta'", func(s *sqlite.Stmt) error {
		tables = s.ColumnInt(0)
		return nil
	}); err != nil {
		return nil, db.broken("open", err)
	}
	db.isNew = tables == 0
	if !db.isNew {
		err = db.load()
	}
	return db, err
}

// New says whether the object has no committed transaction yet.
func (db *DB) New() bool { return db.isNew }

// broken wraps what keeps a file from being used.
func (db *DB) broken(what string, err error) error {
	code := wire.Internal
	err = Cut(err)
	var coded *wire.Error
	if errors.As(err, &coded) {
		return fmt.Errorf("objectdb: %s %s: %w", what, db.id, coded)
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		code = wire.Corrupt
	case sqlite.ResultFull:
		code = wire.DatabaseFull
	case sqlite.ResultCantOpen, sqlite.ResultIOErr, sqlite.ResultReadOnly, sqlite.ResultBusy:
		code = wire.Unavailable
	}
	return fmt.Errorf("objectdb: %s %s: %w", what, db.id, wire.Errorf(code, "the object's file %s: %v", filepath.Base(db.path), err))
}

// Begin starts the transaction of a call. ctx bounds its statements: when it is done they are interrupted. After an error
// there is no transaction.
func (db *DB) Begin(ctx context.Context) error {
	if db.conn == nil {
		return ErrClosed
	}
	if db.spoilt != nil {
		return db.spoilt
	}
	err := db.begin(ctx)
	if err != nil {
		if bad := db.Rollback(); bad != nil {
			err = errors.Join(err, bad)
		}
	}
	return err
}

func (db *DB) begin(ctx context.Context) error {
	db.conn.SetInterrupt(ctx.Done())
	db.wrote, db.ended, db.edited, db.ddl, db.initialises = false, false, false, false, false
	db.before = db.scalars()
	if err := db.setPages(db.logSize); err != nil {
		return err
	}
	if err := db.exec("BEGIN IMMEDIATE"); err != nil {
		return db.broken("begin", err)
	}
	db.inTx = true
	if db.isNew {
		return db.create()
	}
	return nil
}

// Commit ends the transaction and says whether it wrote anything. On an error nothing of it stands.
func (db *DB) Commit() (wrote bool, err error) {
	if db.Ended() {
		_ = db.Rollback()
		return false, wire.Errorf(wire.BadSQL, "SQLite ended the transaction; nothing of the call was kept")
	}
	if err = db.saveScalars(); err == nil {
		// From here on the call's deadline no longer counts: a commit is done or it is not.
		db.conn.SetInterrupt(nil)
		err = db.exec("COMMIT")
	}
	if err != nil {
		_ = db.Rollback()
		return false, db.broken("commit", err)
	}
	db.inTx, db.isNew = false, false
	db.initialised = db.initialised || db.initialises
	if db.wrote {
		db.commits++
	}
	return db.wrote, nil
}

// Rollback undoes the transaction, in memory too. After an error there is no further one.
func (db *DB) Rollback() error {
	db.spoilt = errors.Join(db.spoilt, db.rollback())
	return db.spoilt
}

// Spoilt gives the error of a rollback that failed: memory may differ from the file, which must be opened anew.
func (db *DB) Spoilt() error { return db.spoilt }

// Recovered says that the file was not closed by who used it before: what was committed last may not be durable.
func (db *DB) Recovered() bool { return db.recovered }

func (db *DB) rollback() error {
	db.inTx = false
	db.conn.SetInterrupt(nil)
	if !db.conn.AutocommitEnabled() {
		if err := db.exec("ROLLBACK"); err != nil {
			return db.broken("rollback", err)
		}
	}
	if db.ddl {
		db.app.clear()
	}
	if db.isNew {
		return nil
	}
	db.restore(db.before)
	if db.edited {
		return db.loadEdges()
	}
	return nil
}

// Ended says whether SQLite ended the transaction by itself: the call must fail, whatever the app makes of the error.
func (db *DB) Ended() bool {
	if db.inTx && db.conn.AutocommitEnabled() {
		db.ended = true
	}
	return db.ended
}

// Wrote says whether the transaction wrote anything so far.
func (db *DB) Wrote() bool { return db.wrote }

// Close closes the file. A clean close copies the WAL back into the database.
func (db *DB) Close() error {
	if db.conn == nil {
		return nil
	}
	db.conn.SetInterrupt(nil)
	for _, s := range db.stmts {
		_ = s.Finalize()
	}
	db.app.clear()
	err := db.conn.Close()
	db.conn = nil
	return errors.Join(err, db.wal.close())
}

// Discard closes a file whose first transaction did not commit, and removes it.
func (db *DB) Discard() error {
	err := db.Close()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if e := os.Remove(db.path + suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
