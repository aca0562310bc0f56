package objectdb

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"weir/pkg/edge"
	"weir/pkg/wire"
)

// rowOverhead is what a row of the log counts beside its data: in SQLite, and in the stream with its headers.
const rowOverhead = 512

// Append publishes an event: it is the log's next row, in this transaction.
func (db *DB) Append(at int64, topic string, data []byte) (edge.Event, error) {
	size := int64(len(data)) + rowOverhead
	kept := db.logRows > 0 || db.Edges.Durable()
	if kept && db.logSize+size > db.o.MaxLogBytes {
		return edge.Event{}, wire.Errorf(wire.LogFull, "%s has %d undelivered events (%d MiB of %d): a follower is far behind or gone; `weir edges %s` shows which",
			db.id, db.logRows, (db.logSize+1<<20-1)>>20, db.o.MaxLogBytes>>20, db.id)
	}
	e := &db.Edges
	if !kept {
		// Nobody durable follows: sockets get it from memory, and no one will ask for it.
		db.wrote = true
		e.Head++
		e.Trimmed = e.Head
		return edge.Event{Publisher: db.id, Incarnation: e.Incarnation, Seq: e.Head, At: at, Topic: topic, Data: data}, nil
	}
	if err := db.setPages(db.logSize + size); err != nil {
		return edge.Event{}, err
	}
	if err := db.write("INSERT INTO _weir_log VALUES (?, ?, ?, ?)", e.Head+1, at, topic, string(data)); err != nil {
		return edge.Event{}, db.appError(err)
	}
	e.Head++
	db.logRows++
	db.logSize += size
	return edge.Event{Publisher: db.id, Incarnation: e.Incarnation, Seq: e.Head, At: at, Topic: topic, Data: data}, nil
}

// Rows gives the kept events after seq, oldest first, with their headers.
func (db *DB) Rows(after uint64, yield func(edge.Event) bool) error {
	e := &db.Edges
	last, err := db.LastBefore(after + 1)
	if err != nil {
		return err
	}
	stop := false
	err = db.query("SELECT seq, at, topic, data FROM _weir_log WHERE seq > ? ORDER BY seq", func(s *sqlite.Stmt) error {
		row := edge.Event{Publisher: db.id, Incarnation: e.Incarnation, Seq: uint64(s.ColumnInt64(0)), At: s.ColumnInt64(1),
			Topic: s.ColumnText(2), Data: []byte(s.ColumnText(3)), Number: e.Number, Last: make(map[string]uint64, len(last))}
		for t, n := range last {
			row.Last[t] = n
		}
		last[row.Topic] = row.Seq
		if stop = !yield(row); stop {
			return errStop
		}
		return nil
	}, after)
	if stop {
		return nil
	}
	return err
}

// LastBefore gives, for each topic, the last kept event before seq.
func (db *DB) LastBefore(seq uint64) (map[string]uint64, error) {
	last := map[string]uint64{}
	if db.logRows == 0 {
		return last, nil
	}
	err := db.query("SELECT topic, max(seq) FROM _weir_log WHERE seq < ? GROUP BY topic", func(s *sqlite.Stmt) error {
		last[s.ColumnText(0)] = uint64(s.ColumnInt64(1))
		return nil
	}, seq)
	return last, err
}

// Kept says how many events the log keeps, and how many bytes they count.
func (db *DB) Kept() (rows int, bytes int64) { return db.logRows, db.logSize }

// Oldest says when the oldest kept event was published, 0 without one.
func (db *DB) Oldest() (at int64, err error) {
	err = db.query("SELECT at FROM _weir_log ORDER BY seq LIMIT 1", func(s *sqlite.Stmt) error {
		at = s.ColumnInt64(0)
		return nil
	})
	return at, err
}

// Trim deletes the events through seq.
func (db *DB) Trim(seq uint64) error {
	if seq <= db.Edges.Trimmed {
		return nil
	}
	if db.logRows > 0 {
		rows, bytes := 0, int64(0)
		if err := db.query("SELECT count(*), coalesce(sum(length(CAST(data AS BLOB)) + 512), 0) FROM _weir_log WHERE seq <= ?",
			func(s *sqlite.Stmt) error {
				rows, bytes = s.ColumnInt(0), s.ColumnInt64(1)
				return nil
			}, seq); err != nil {
			return db.broken("trim", err)
		}
		if err := db.write("DELETE FROM _weir_log WHERE seq <= ?", seq); err != nil {
			return db.broken("trim", err)
		}
		db.logRows -= rows
		db.logSize -= bytes
	}
	db.wrote = true
	db.Edges.Trimmed = seq
	return nil
}

// envelope is how a dropped edge records its event.
func (db *DB) envelope(seq uint64) ([]byte, error) {
	var out []byte
	err := db.query("SELECT topic, at, data FROM _weir_log WHERE seq = ?", func(s *sqlite.Stmt) (err error) {
		out, err = wire.Encode(map[string]any{"topic": s.ColumnText(0), "at": s.ColumnInt64(1), "seq": seq,
			"data": json.RawMessage(s.ColumnText(2))})
		return err
	}, seq)
	return out, err
}
