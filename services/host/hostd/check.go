package hostd

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pkg/app"
	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/host/internal/object"
	"weir/services/host/internal/objectdb"
)

// MethodEdges is the platform's own method that lists an object's edges (wire.EdgesReply).
const MethodEdges = object.MethodEdges

// TryMigrations runs each class's migrations on an empty database in memory.
func TryMigrations(a *app.App) app.Mistakes {
	var found app.Mistakes
	for _, c := range a.Classes {
		if err := tryMigrations(c); err != nil {
			file, text, _ := strings.Cut(wire.AsError(err).Message, ":")
			line, rest, _ := strings.Cut(text, ": ")
			n, _ := strconv.Atoi(line)
			found = append(found, app.Mistake{File: path.Join(c.MigrationsDir, file), Line: n, Text: rest})
		}
	}
	slices.SortFunc(found, func(x, y app.Mistake) int { return cmp.Compare(x.File, y.File) })
	return found
}

func tryMigrations(c *app.Class) (err error) {
	db, err := objectdb.Open("", objectid.ID{Class: c.Name, Name: "check"}, objectdb.Options{Memory: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := db.Begin(context.Background()); err != nil {
		return err
	}
	defer func() { _ = db.Rollback() }()
	all := make([]objectdb.Migration, len(c.Migrations))
	for i, m := range c.Migrations {
		all[i] = objectdb.Migration{Name: m.Name, SQL: m.SQL}
	}
	return db.Migrate(all, time.Now().UnixMilli())
}
