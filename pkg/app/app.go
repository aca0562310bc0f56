package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/pkg/luavm"
)

// MaxBytes bounds the files of an app, web/ aside.
const MaxBytes = 64 << 20

// App is a loaded app.
type App struct {
	Name        string
	Dir         string // where it was loaded from; web/ is served from there
	Classes     map[string]*Class
	Connections map[string]*Connection
	Fetch       bool      // it has an on "fetch" handler
	Warnings    []Mistake // what weir check tells without refusing the app

	files   map[string][]byte // by slash path
	chunks  map[string]*luavm.Chunk
	options Options
}

// Policy says who decides over a follow of a topic.
type Policy int

// The policies.
const (
	ByHook Policy = iota // the follow hook
	Self                 // only the object's own identity
	Public               // any identity
)

// Class is one declared class of objects.
type Class struct {
	Name       string
	Publishes  map[string]Policy
	Receives   map[string]bool // "Class:topic"
	Hooks      map[string]bool
	Methods    map[string]bool
	Migrations []Migration

	MigrationsDir string // as it was declared
}

// Topics says what the class publishes, for messages.
func (c *Class) Topics() string { return has("publishes", maps.Keys(c.Publishes)) }

// ClassNames says what classes there are, for messages.
func (a *App) ClassNames() string { return has("has", maps.Keys(a.Classes)) }

// has lists names, in order and not too many.
func has(verb string, names iter.Seq[string]) string {
	list := slices.Sorted(names)
	switch n := len(list); {
	case n == 0:
		return "it " + verb + " none"
	case n > 20:
		list = append(list[:20], fmt.Sprintf("and %d more", n-20))
	}
	return "it " + verb + " " + strings.Join(list, ", ")
}

// Migration is one .sql file of a class's folder; they are sorted by name.
type Migration struct{ Name, SQL string }

// Connection is one declared websocket program.
type Connection struct {
	Name     string
	Handlers map[string]bool // open, frame, event, close, timer
	Forward  bool            // event = "forward"
	Every    time.Duration   // between the ticks of its timer
}

// Options are what an app needs from outside.
type Options struct {
	Name    string                           // default: the folder's base name
	Secrets func(name string) (string, bool) // nil: there are none
	// LaxSecrets makes a missing secret a warning, as weir check wants it.
	LaxSecrets bool
	// Library puts functions into each VM before main.lua runs; source tells where a log line comes from.
	Library func(in *Instance) error
}

// Mistake is one thing wrong with an app, and where.
type Mistake struct {
	File string
	Line int // 0: not known
	Text string
}

func (m Mistake) String() string {
	if m.Line == 0 {
		return m.File + ": " + m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// Mistakes is the error of an app that cannot be used: all that is wrong with it, in the order of the lines.
type Mistakes []Mistake

func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// Load reads the app in dir and runs its main.lua once. The error is a Mistakes if the app is wrong, any other if it
// cannot be read.
func Load(dir string, o Options) (*App, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = filepath.Base(abs)
	}
	a := &App{Name: o.Name, Dir: abs, files: map[string][]byte{}, chunks: map[string]*luavm.Chunk{}, options: o,
		Classes: map[string]*Class{}, Connections: map[string]*Connection{}}
	if err := a.read(); err != nil {
		return nil, err
	}
	l := newLoader(a)
	l.load()
	if len(l.mistakes) > 0 {
		slices.SortStableFunc(l.mistakes, func(x, y Mistake) int {
			return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
		})
		return nil, Mistakes(slices.Compact(l.mistakes))
	}
	a.Warnings = l.warnings
	return a, nil
}

// read takes the app's files into memory: all but web/, which is served from disk, and hidden ones.
func (a *App) read() error {
	total := 0
	err := filepath.WalkDir(a.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(a.Dir, p)
		rel = filepath.ToSlash(rel)
		switch {
		case rel != "." && strings.HasPrefix(d.Name(), "."), rel == "web", d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(p, "wake.db")); err == nil {
				return fs.SkipDir // a data folder
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0 && a.inside(p):
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if total += len(b); total > MaxBytes {
			return fmt.Errorf("the files of the app exceed %d MiB (at %s): only web/ may be larger", MaxBytes>>20, rel)
		}
		a.files[rel] = b
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read the app: there is no folder %s: %w", a.Dir, os.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("cannot read the app: %w", err)
	}
	if _, ok := a.files["main.lua"]; !ok {
		return fmt.Errorf("cannot read the app: %s: %w", filepath.Join(a.Dir, "main.lua"), errors.Join(os.ErrNotExist))
	}
	return nil
}

// inside says whether a link leads to a file of the app's own folder, as in a mounted ConfigMap.
func (a *App) inside(link string) bool {
	root, err := filepath.EvalSymlinks(a.Dir)
	if err != nil {
		return false
	}
	to, err := filepath.EvalSymlinks(link)
	if err != nil || !strings.HasPrefix(to, root+string(filepath.Separator)) {
		return false
	}
	info, err := os.Stat(to)
	return err == nil && info.Mode().IsRegular()
}

// File gives an app file by its slash path within the app's folder.
func (a *App) File(name string) ([]byte, bool) {
	b, ok := a.files[path.Clean(name)]
	return b, ok
}

// chunk compiles a file of the app once.
func (a *App) chunk(name string) (*luavm.Chunk, error) {
	if c := a.chunks[name]; c != nil {
		return c, nil
	}
	c, err := luavm.Compile(name, a.files[name])
	if err == nil {
		a.chunks[name] = c
	}
	return c, err
}

// migrations reads a class's folder of .sql files.
func (a *App) migrations(dir string) (all []Migration, found bool) {
	prefix := path.Clean(dir) + "/"
	for name, b := range a.files {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, "/") {
			found = true
			if strings.HasSuffix(rest, ".sql") {
				all = append(all, Migration{Name: rest, SQL: string(b)})
			}
		}
	}
	slices.SortFunc(all, func(x, y Migration) int { return cmp.Compare(x.Name, y.Name) })
	return all, found
}
