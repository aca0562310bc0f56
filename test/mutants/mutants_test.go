// Package mutants has deliberate bugs as patches: each breaks one promise, and names the tests that must notice. `make
// mutants` applies them one at a time and runs those tests. The test here sees that the patches still fit the code.
package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A patch applies to the tree as it is, names its guard, and stands in INVARIANTS.md by its name.
func TestPatches(t *testing.T) {
	patches, err := filepath.Glob("*.patch")
	if err != nil || len(patches) < 20 {
		t.Fatalf("%d patches: %v", len(patches), err)
	}
	text := read(t, "../../INVARIANTS.md")
	for _, p := range patches {
		data := read(t, p)
		if !regexp.MustCompile(`(?m)^guard: \./`).MatchString(data) {
			t.Errorf("%s names no guard", p)
		}
		name := strings.TrimSuffix(p, ".patch")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("INVARIANTS.md does not name the mutant %s", name)
		}
		cmd := exec.Command("git", "apply", "--check", filepath.Join("test", "mutants", p))
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply: make it anew\n%s", p, out)
		}
	}
}

// Every test that docs/guarantees.md and INVARIANTS.md name is there.
func TestNamedTestsExist(t *testing.T) {
	all := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && len(d.Name()) > 2) {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			all[d.Name()] = true
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				all[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(?:\\w+/)*((?:Test|Fuzz)\\w+|\\w+\\.txtar|\\w+_test\\.go)`")
	for _, doc := range []string{"../../docs/guarantees.md", "../../INVARIANTS.md"} {
		for _, m := range named.FindAllStringSubmatch(read(t, doc), -1) {
			if !all[m[1]] {
				t.Errorf("%s names %s, which is not there", doc, m[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
