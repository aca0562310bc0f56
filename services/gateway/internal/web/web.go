// Package web serves the files of an app's web/ folder.
package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// Files serves one folder. It is safe for concurrent use.
type Files struct {
	root *os.Root // nil: the app has no web/

	mu    sync.Mutex // guards etags
	etags map[string]etag
}

type etag struct {
	size int64
	time time.Time
	text string
}

// Open opens a folder that may be missing. Nothing outside it is ever opened, whatever a path or a link says.
func Open(dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &Files{}, nil
	}
	return &Files{root: root, etags: map[string]etag{}}, err
}

// Close closes the folder.
func (f *Files) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// Serve answers a GET or HEAD of a file, and says whether there was one.
func (f *Files) Serve(w http.ResponseWriter, r *http.Request) bool {
	if f.root == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	name := r.URL.Path
	if strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return false // hidden files are not served
		}
	}
	if info, err := f.root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false // to open a pipe would wait for its other end
	}
	file, err := f.root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	tag, err := f.tag(name, file, info)
	if err != nil {
		return false
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// ServeContent sees to the type, conditions and ranges, and redirects nothing.
	http.ServeContent(w, r, name, info.ModTime(), file)
	return true
}

// tag gives the file's ETag, a hash of its content that is computed again when the file has changed.
func (f *Files) tag(name string, file *os.File, info fs.FileInfo) (string, error) {
	f.mu.Lock()
	t, ok := f.etags[name]
	f.mu.Unlock()
	if ok && t.size == info.Size() && t.time.Equal(info.ModTime()) {
		return t.text, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	t = etag{info.Size(), info.ModTime(), `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`}
	f.mu.Lock()
	f.etags[name] = t
	f.mu.Unlock()
	return t.text, nil
}
