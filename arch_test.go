// Package weir_test holds the law of the repository's structure: who may import whom, what every package says of
// itself, and how large a file may be.
package weir_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestImports keeps the arrows pointing one way: main → *d → internal → pkg.
func TestImports(t *testing.T) {
	forbidden := []struct{ from, to, why string }{
		{"weir/pkg/", "weir/services/", "pkg is what services share, and knows none of them"},
		{"weir/pkg/", "weir/cmd/", "pkg knows no command"},
		{"weir/pkg/edge", "github.com/nats-io", "the protocol is pure"},
		{"weir/pkg/edge", "zombiezen.com", "the protocol is pure"},
		{"weir/services/host/", "weir/services/router", "services meet in pkg/wire only"},
		{"weir/services/host/", "weir/services/gateway", "services meet in pkg/wire only"},
		{"weir/services/router/", "weir/services/host", "services meet in pkg/wire only"},
		{"weir/services/router/", "weir/services/gateway", "services meet in pkg/wire only"},
		{"weir/services/gateway/", "weir/services/host", "services meet in pkg/wire only"},
		{"weir/services/gateway/", "weir/services/router", "services meet in pkg/wire only"},
		{"weir/services/host/internal/objectdb", "weir/services/host/internal/", "the file knows nothing of who uses it"},
		{"weir/services/host/internal/relay", "weir/services/host/internal/", "the relay knows its object by an interface"},
		{"weir/pkg/luavm", "weir/", "the VM knows nothing of Weir"},
		{"weir/pkg/objectid", "weir/", "names know nothing of Weir"},
	}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "weir/services/host/bench") {
			continue // it measures the whole
		}
		for _, i := range p.Imports {
			for _, f := range forbidden {
				if strings.HasPrefix(p.ImportPath+"/", f.from) && strings.HasPrefix(i, f.to) && !strings.HasPrefix(i, f.from) && p.ImportPath != i {
					t.Errorf("%s imports %s: %s", p.ImportPath, i, f.why)
				}
			}
		}
	}
}

// TestPackagesSayWhatTheyAre: every package has a doc comment, and no package a name that says nothing.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 40 {
			t.Errorf("%s has no doc comment that says what it is", p.ImportPath)
		}
		switch name := filepath.Base(p.ImportPath); name {
		case "util", "utils", "common", "types", "manager", "helpers", "misc", "shared":
			t.Errorf("%s: %q says nothing", p.ImportPath, name)
		}
	}
}

// TestFileSizes: a file over 300 lines is looked at and named here with its reason, or split; none has over 700.
func TestFileSizes(t *testing.T) {
	large := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); n++ {
		}
		switch _, known := large[filepath.ToSlash(path)]; {
		case n > 700:
			t.Errorf("%s has %d lines", path, n)
		case n > 300 && !known && !strings.HasSuffix(path, "_test.go"):
			t.Errorf("%s has %d lines: is it one idea? Split it, or name it here with the reason", path, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
