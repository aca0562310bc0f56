package hostd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"weir/services/host/internal/objectdb"
	"weir/services/host/internal/wake"
)

// findWork sees that the folder of objects fits the wake list. A new list, because the old one is gone, gets its entries
// from the objects' files; objects that are gone while the list is there are not taken for new.
func findWork(list *wake.List, dir string, log *slog.Logger) error {
	_, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && !list.Fresh():
		return fmt.Errorf("the folder of objects %s is missing, and this data folder was used before: is its disk mounted? (make it, empty, if the objects are to be gone)", dir)
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	case err != nil || !list.Fresh():
		return err
	}
	found := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".db") {
			return err
		}
		id, events, due, err := objectdb.Work(path)
		if err != nil {
			log.Error("an object's file cannot be read for what it has to do", "file", path, "error", err)
			return nil
		}
		if events || due != 0 {
			found++
			return list.Expect(id, wake.Entry{Events: events, Due: due})
		}
		return nil
	})
	if err == nil && found > 0 {
		log.Warn("the wake list was gone and was made again from the objects' files", "entries", found)
	}
	if err != nil {
		return err
	}
	return list.Found()
}
