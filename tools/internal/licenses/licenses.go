// Package licenses collects the licenses of what is linked into the program: the standard library,
// other Go modules, and packages of the web UI.
package licenses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Item is something that is linked into the program and has licenses.
type Item struct {
	Name    string   // of a Go module or an npm package, or "Go"
	Version string   // with "v" for Go modules
	IDs     []string // SPDX identifiers of the licenses, sorted
	Files   []File
}

// File is a license, or a notice that belongs to it.
type File struct {
	Name string // within the module
	Text string
}

// Target is a system to build for.
type Target struct{ OS, Arch string }

// goPackage is what `go list` tells about a package.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// Modules returns the standard library and all modules that the program in the folder of the
// repository links for at least one of the targets, sorted by name. A module without a license is
// an error.
func Modules(ctx context.Context, dir string, targets []Target) ([]Item, error) {
	root, version, err := toolchain(ctx, dir)
	if err != nil {
		return nil, err
	}
	standard := collector{name: "Go", version: version, dir: root, seen: map[string]bool{}}
	if err := standard.add(root); err != nil {
		return nil, err
	}
	modules := map[string]*collector{"": &standard}
	for _, t := range targets {
		packages, err := list(ctx, dir, t)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if p.Standard || p.Module.Main {
				continue
			}
			c := modules[p.Module.Path]
			if c == nil {
				c = &collector{name: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir, seen: map[string]bool{}}
				modules[p.Module.Path] = c
			}
			if err := c.add(p.Dir); err != nil {
				return nil, err
			}
		}
	}
	var items []Item
	for _, c := range modules {
		item, err := c.item()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}

// toolchain returns the folder and the version of the Go toolchain.
func toolchain(ctx context.Context, dir string) (root, version string, err error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return "", "", fmt.Errorf("go env: %d lines, want 2", len(lines))
	}
	return lines[0], strings.TrimPrefix(lines[1], "go"), nil
}

// list returns all packages of the program for a target.
func list(ctx context.Context, dir string, t Target) (packages []goPackage, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/tracing")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+t.OS, "GOARCH="+t.Arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		packages = append(packages, p)
	}
}

// collector collects the license files of a module.
type collector struct {
	name, version, dir string
	seen               map[string]bool // folders
	files              []File
}

// fileName matches the names of license files, as opposed to sources.
var fileName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// add adds the files of a package's folder, and of all folders up to that of the module: packages
// with code of others have licenses of their own.
func (c *collector) add(dir string) error {
	for ; !c.seen[dir]; dir = filepath.Dir(dir) {
		c.seen[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !fileName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(c.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			c.files = append(c.files, File{filepath.ToSlash(name), string(text)})
		}
		if dir == c.dir {
			return nil
		}
	}
	return nil
}

// item returns the module with its files, those of its own folder first.
func (c *collector) item() (Item, error) {
	slices.SortFunc(c.files, func(a, b File) int {
		if d := strings.Count(a.Name, "/") - strings.Count(b.Name, "/"); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	i := Item{Name: c.name, Version: c.version, IDs: identify(c.files), Files: c.files}
	return i, i.check()
}

// allowed are the licenses under which code and fonts may be linked into the program.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "OFL-1.1"}

// check returns an error if an item has no license, or one that is not allowed.
func (i Item) check() error {
	if len(i.IDs) == 0 {
		return fmt.Errorf("%s: no known license; do not link it", i.Name)
	}
	for _, id := range i.IDs {
		if !slices.Contains(allowed, id) {
			return fmt.Errorf("%s: license %s is not allowed; do not link it", i.Name, id)
		}
	}
	return nil
}

// identify returns the SPDX identifiers of the licenses in files.
func identify(files []File) (ids []string) {
	for _, f := range files {
		for _, m := range licensecheck.Scan([]byte(f.Text)).Match {
			if !m.IsURL && m.ID != "GooglePatentsFile" && m.ID != "GooglePatentClause" {
				ids = append(ids, m.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
