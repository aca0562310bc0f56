package objectdb

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
)

// guard is SQLite's authorizer for app SQL. The platform's own statements pass.
type guard struct {
	db     *DB
	app    bool   // app SQL is being prepared or stepped
	denied string // why the last statement was refused
	writes bool   // what is being prepared changes something
	ddl    bool   // and that is the schema
	drops  bool   // a table is dropped or altered, so that SQLite itself tidies sqlite_sequence
}

var readOnlyPragmas = map[string]bool{"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true,
	"index_info": true, "index_xinfo": true, "foreign_key_list": true, "foreign_key_check": true, "function_list": true,
	"collation_list": true, "quick_check": true, "integrity_check": true}

var readableTables = map[string]bool{"sqlite_schema": true, "sqlite_master": true, "sqlite_sequence": true, "sqlite_stat1": true,
	"sqlite_stat4": true}

// reserved says whether a name is the platform's, in any case.
func reserved(name string) bool {
	return len(name) >= len("_weir_") && strings.EqualFold(name[:len("_weir_")], "_weir_")
}

// Authorize implements sqlite.Authorizer.
func (g *guard) Authorize(a sqlite.Action) sqlite.AuthResult {
	if !g.app {
		return sqlite.AuthResultOK
	}
	if why := g.refuse(a); why != "" {
		if g.denied == "" {
			g.denied = why
		}
		return sqlite.AuthResultDeny
	}
	return sqlite.AuthResultOK
}

func (g *guard) refuse(a sqlite.Action) string {
	for _, name := range []string{a.Table(), a.Index(), a.View(), a.Trigger()} {
		if reserved(name) {
			return fmt.Sprintf("%s is the platform's: names that start with _weir_ cannot be used", name)
		}
	}
	if strings.EqualFold(a.Database(), "temp") && a.Type() != sqlite.OpRead && a.Type() != sqlite.OpSelect {
		if t := strings.ToLower(a.Table()); t != "sqlite_temp_master" && t != "sqlite_temp_schema" {
			return "TEMP objects are not available: use a table of the object"
		}
	}
	switch a.Type() {
	case sqlite.OpAttach, sqlite.OpDetach:
		return "ATTACH and DETACH are not available (nor VACUUM, which needs them): an object has one database"
	case sqlite.OpTransaction, sqlite.OpSavepoint:
		return "transaction control is not available: a call is one transaction, and error() undoes it"
	case sqlite.OpCreateTempIndex, sqlite.OpCreateTempTable, sqlite.OpCreateTempTrigger, sqlite.OpCreateTempView:
		return "TEMP objects are not available: use a table of the object"
	case sqlite.OpPragma:
		fts5 := a.Pragma() == "data_version" && a.Database() == "main" // full-text search reads it by its full name
		if !fts5 && !readOnlyPragmas[strings.ToLower(a.Pragma())] {
			return fmt.Sprintf("PRAGMA %s is not available: only those that read the schema are", a.Pragma())
		}
		if reserved(a.PragmaArg()) {
			return fmt.Sprintf("%s is the platform's", a.PragmaArg())
		}
	case sqlite.OpRead:
		return g.refuseTable(a, false)
	case sqlite.OpInsert, sqlite.OpUpdate, sqlite.OpDelete:
		g.writes = true
		return g.refuseTable(a, true)
	case sqlite.OpCreateVTable, sqlite.OpDropVTable:
		g.writes, g.ddl, g.drops = true, true, true
		switch m := strings.ToLower(a.Module()); m {
		case "fts5", "rtree":
		default:
			return fmt.Sprintf("virtual tables of module %s are not available: fts5 and rtree are", m)
		}
	case sqlite.OpAlterTable, sqlite.OpDropTable:
		g.writes, g.ddl, g.drops = true, true, true
	case sqlite.OpSelect, sqlite.OpRecursive, sqlite.OpFunction: // extensions are off in SQLite itself
	default: // CREATE, DROP, REINDEX, ANALYZE
		g.writes, g.ddl = true, true
	}
	return ""
}

// refuseTable keeps app SQL off SQLite's own tables, but for reading the schema.
func (g *guard) refuseTable(a sqlite.Action, write bool) string {
	t := strings.ToLower(a.Table())
	switch {
	case t == "sqlite_dbpage", t == "sqlite_stmt", t == "dbstat", t == "sqlite_memvfs":
		return fmt.Sprintf("%s is not available", t)
	case t == "sqlite_sequence" && write && !g.drops && !g.ddl:
		return "sqlite_sequence cannot be written"
	case strings.HasPrefix(t, "sqlite_") && !write && !readableTables[t] && !strings.HasPrefix(t, "sqlite_temp_"):
		return fmt.Sprintf("%s is not available", t)
	}
	return ""
}
