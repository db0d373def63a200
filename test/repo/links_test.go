package repo_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// links are the symbolic links of the repository and their targets.
var links = map[string]string{"deploy/helm/tracing/monitoring": "../../monitoring"}

// TestLinks checks that the symbolic links of the repository are not files or folders, into which
// git without the setting core.symlinks and some ways of copying turn them.
func TestLinks(t *testing.T) {
	root := harness.Root(t)
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && notSources(d.Name()) {
			return filepath.SkipDir
		}
		if d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.Readlink(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if found[name] != links[name] {
			t.Errorf("%s: not a symbolic link to %s; check out the repository with symbolic links", name, links[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, ok := links[name]; !ok {
			t.Errorf("%s: symbolic link that is not in the list; add it to test/repo/links_test.go", name)
		}
	}
}
