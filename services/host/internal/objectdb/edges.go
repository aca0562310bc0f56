package objectdb

import (
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"

	"weir/pkg/edge"
	"weir/pkg/value"
	"weir/pkg/wire"
)

var errStop = errors.New("objectdb: stop")

// loadEdges reads the edge table into memory.
func (db *DB) loadEdges() error {
	db.Edges.Peers = map[string]*edge.Peer{}
	err := db.query(`SELECT follower, incarnation, topic, gateway, connection, filter, start, confirmed, version, set_version
		FROM _weir_edges`, func(s *sqlite.Stmt) error {
		filter, err := value.ParseFilter([]byte(s.ColumnText(5)))
		if err != nil {
			return err
		}
		e := edge.Edge{Key: edge.Key{Conn: s.ColumnText(4), Topic: s.ColumnText(2)}, Start: uint64(s.ColumnInt64(6)),
			Since: uint64(s.ColumnInt64(8)), Filter: filter, FilterJSON: filter.JSON()}
		peer := s.ColumnText(0)
		if gateway := s.ColumnText(3); gateway != "" {
			peer = gateway
		}
		db.Edges.Restore(peer, s.ColumnText(1), s.ColumnText(0), uint64(s.ColumnInt64(9)), uint64(s.ColumnInt64(7)), e)
		return nil
	})
	if err != nil {
		return db.broken("open", err)
	}
	return nil
}

// Apply writes changes that the edge table in memory already has.
func (db *DB) Apply(changes []edge.Change) error {
	if len(changes) == 0 {
		return nil
	}
	db.edited = true
	touched := map[*edge.Peer]bool{}
	for _, c := range changes {
		follower, gateway, transport := c.Peer.Name, "", "object"
		if !edge.IsFollower(c.Peer.Name) {
			gateway, transport = c.Peer.Name, "connection"
		}
		if c.Deleted {
			if err := db.write("DELETE FROM _weir_edges WHERE gateway = ? AND connection = ? AND topic = ? AND (gateway <> '' OR follower = ?)",
				gateway, c.Edge.Conn, c.Edge.Topic, follower); err != nil {
				return db.appError(err)
			}
			touched[c.Peer] = true
			continue
		}
		if gateway != "" {
			follower = c.Peer.Identity(c.Edge.Conn)
		}
		var filter any
		if !c.Edge.Filter.Empty() {
			filter = string(c.Edge.Filter.JSON())
		}
		if err := db.write("INSERT OR REPLACE INTO _weir_edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", follower, c.Peer.Owner,
			c.Edge.Topic, transport, gateway, c.Edge.Conn, filter, c.Edge.Start, c.Peer.Confirmed, c.Edge.Since, c.Peer.Version); err != nil {
			return db.appError(err)
		}
		touched[c.Peer] = true
	}
	// A follower's set has one version. A gateway's does not outlive it, so that its rows need not agree.
	for peer := range touched {
		if edge.IsFollower(peer.Name) && db.Edges.Peers[peer.Name] == peer {
			if err := db.write("UPDATE _weir_edges SET set_version = ? WHERE follower = ? AND gateway = ''", peer.Version, peer.Name); err != nil {
				return db.appError(err)
			}
		}
	}
	return nil
}

// SaveConfirmed keeps in the file how far each follower has confirmed, before the object sleeps.
func (db *DB) SaveConfirmed() error {
	for name, peer := range db.Edges.Peers {
		if edge.IsFollower(name) {
			if err := db.write("UPDATE _weir_edges SET confirmed = ? WHERE follower = ? AND gateway = '' AND confirmed < ?",
				peer.Confirmed, name, peer.Confirmed); err != nil {
				return db.broken("sleep", err)
			}
		}
	}
	return nil
}

// SetToken gives the publisher's next stream its name.
func (db *DB) SetToken(token string) {
	db.wrote = true
	db.Token = token
}

// RecordDrop keeps what an edge was given up for.
func (db *DB) RecordDrop(q edge.Request, at int64) error {
	event, err := db.envelope(q.Seq)
	if err != nil {
		return db.broken("drop", err)
	}
	var text any
	if event != nil {
		text = string(event)
	}
	// An app that has filled its file must not keep an edge from going.
	if err := db.setPages(db.logSize + 1<<20); err != nil {
		return db.broken("drop", err)
	}
	if err := db.write("INSERT INTO _weir_dropped VALUES (?, ?, ?, ?, ?, ?, ?)", q.Peer, q.Key.Topic, q.Seq, q.Attempts, q.Error, at, text); err != nil {
		return db.broken("drop", err)
	}
	// The newest thousand are kept.
	return db.write("DELETE FROM _weir_dropped WHERE rowid <= (SELECT max(rowid) FROM _weir_dropped) - 1000")
}

// Dropped lists the edges that were given up, oldest first.
func (db *DB) Dropped() (rows []wire.DroppedRow, err error) {
	err = db.query("SELECT follower, topic, seq, attempts, error, at, event FROM _weir_dropped ORDER BY rowid", func(s *sqlite.Stmt) error {
		r := wire.DroppedRow{Follower: s.ColumnText(0), Topic: s.ColumnText(1), Seq: uint64(s.ColumnInt64(2)), Attempts: s.ColumnInt(3),
			Error: s.ColumnText(4), At: s.ColumnInt64(5)}
		if !s.ColumnIsNull(6) {
			r.Event = json.RawMessage(s.ColumnText(6))
		}
		rows = append(rows, r)
		return nil
	})
	return rows, err
}
