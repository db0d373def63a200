package repo_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// referencePages returns the pages that `tracing docs` writes, by their name below docs.
func referencePages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if code, _, stderr := inprocess.RunCommand(t, "docs", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pages := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		pages[filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestConfigurationReferenceIsCurrent compares docs/configuration.md and docs/configuration with
// the output of `tracing docs`.
func TestConfigurationReferenceIsCurrent(t *testing.T) {
	docs := filepath.Join(harness.Root(t), "docs")
	pages := referencePages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		golden.Check(t, filepath.Join(docs, filepath.FromSlash(name)), pages[name])
	}
	files, err := os.ReadDir(filepath.Join(docs, "configuration"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := pages["configuration/"+f.Name()]; !ok {
			t.Errorf("docs/configuration/%s is not a page of the reference; delete it", f.Name())
		}
	}
}

// maxListedDepth is the number of nested blocks whose keys `tracing components` lists for components
// of the OpenTelemetry Collector. Shared blocks of the reference may have deeper ones.
const maxListedDepth = 3

// TestReferenceHasEveryKey checks that the pages of the reference, with the shared blocks that they
// name, have every key of every component once, with its type and default.
func TestReferenceHasEveryKey(t *testing.T) {
	pages := referencePages(t)
	total := 0
	for _, f := range tracing.Components() {
		code, text, stderr := inprocess.RunCommand(t, "components", f.Type())
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		want := componentKeys(text, f.Kind().String()+" "+f.Type()+"\n")
		got := newReader(t, pages).page("configuration/" + f.Kind().String() + "-" + f.Type() + ".md")
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] {
				t.Errorf("%s %s: key %s is %q in the reference, not %q", f.Kind(), f.Type(), path, got[path], want[path])
			}
		}
		for _, path := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[path]; !ok && strings.Count(path, ".") < maxListedDepth {
				t.Errorf("%s %s: the reference has the key %s", f.Kind(), f.Type(), path)
			}
		}
		if f.Kind() == pipeline.KindProcessor {
			for _, path := range withoutMeaning(text) {
				t.Errorf("processor %s: key %s has no meaning; add it to internal/collectorkeys", f.Type(), path)
			}
		}
		total += len(want)
	}
	t.Logf("%d keys", total)
	if total < 1000 {
		t.Errorf("only %d keys found", total)
	}
}

var componentKey = regexp.MustCompile(`(?m)^  ([a-z]\S*)  \((.*)\)$`)

// componentKeys returns the types and defaults of the keys in the output of `tracing components`,
// for the component whose part begins with first.
func componentKeys(text, first string) map[string]string {
	_, text, _ = strings.Cut("\n"+text, "\n"+first)
	if i := regexp.MustCompile(`(?m)^(receiver|processor|exporter|connector|extension) [a-z_]+$`).FindStringIndex(text); i != nil {
		text = text[:i[0]]
	}
	keys := map[string]string{}
	for _, m := range componentKey.FindAllStringSubmatch(text, -1) {
		keys[m[1]] = m[2]
	}
	return keys
}

// withoutMeaning returns the keys without a meaning in the output of `tracing components`. Keys of
// components of this program have one by [TestEveryConfigFieldIsDocumented].
func withoutMeaning(text string) (paths []string) {
	for _, m := range componentKey.FindAllStringSubmatchIndex(text, -1) {
		if !strings.HasPrefix(text[m[1]:], "\n      ") {
			paths = append(paths, text[m[2]:m[3]])
		}
	}
	return paths
}

// reader collects the keys of a page and of the blocks that it refers to.
type reader struct {
	t     *testing.T
	pages map[string]string
	keys  map[string]string // type and default, by path
}

func newReader(t *testing.T, pages map[string]string) *reader {
	return &reader{t, pages, map[string]string{}}
}

var (
	referenceRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|`]*?)(?:, `([^`]*)`)? \\| (.*) \\|$")
	sharedLink   = regexp.MustCompile(`\]\((?:shared\.md)?#([a-z-]+)\)`)
	sameKeys     = regexp.MustCompile("Keys as in `([^`]+)`\\.$")
)

// page returns the keys of a page.
func (r *reader) page(name string) map[string]string {
	content, ok := r.pages[name]
	if !ok {
		r.t.Fatalf("the reference has no page %s", name)
	}
	_, content, _ = strings.Cut(content, "-->\n")
	r.section(content, "", name)
	return r.keys
}

// section adds the keys of a text. Their paths follow prefix.
func (r *reader) section(text, prefix, where string) {
	for line := range strings.Lines(text) {
		row := referenceRow.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if row == nil {
			if strings.HasPrefix(line, "Keys: ") {
				r.links(line, prefix)
			}
			continue
		}
		path := prefix + row[1]
		value := row[2]
		if row[3] != "" {
			value += ", default " + row[3]
		}
		if _, known := r.keys[path]; known && row[4] != "" {
			r.t.Errorf("%s: two rows about %s", where, path)
		}
		r.keys[path] = value
		inner := path + "."
		switch {
		case strings.HasPrefix(value, "list of maps"):
			inner = path + "[]."
		case strings.HasPrefix(value, "map of maps"):
			inner = path + ".<name>."
		}
		if _, below, ok := strings.Cut(row[4], "Keys: "); ok {
			r.links(below, inner)
		}
		if m := sameKeys.FindStringSubmatch(row[4]); m != nil {
			for known, value := range maps.Clone(r.keys) {
				if rest, ok := strings.CutPrefix(known, prefix+m[1]+"."); ok {
					r.keys[inner+rest] = value
				}
			}
		}
	}
}

// links adds the keys of the shared blocks that a text links to.
func (r *reader) links(text, prefix string) {
	for _, m := range sharedLink.FindAllStringSubmatch(text, -1) {
		found := false
		for _, part := range strings.Split(r.pages["configuration/shared.md"], "\n## ")[1:] {
			title, rows, _ := strings.Cut(part, "\n")
			if strings.ReplaceAll(strings.ToLower(title), " ", "-") != m[1] {
				continue
			}
			found = true
			// The rows of a block that always has the same name begin with it.
			name := prefix[strings.LastIndexByte(strings.TrimSuffix(prefix, "."), '.')+1:]
			if n := len(referenceRow.FindAllString(rows, -1)); n > 0 && strings.Count(rows, "\n| `"+name) == n {
				r.section(rows, strings.TrimSuffix(prefix, name), title)
			} else {
				r.section(rows, prefix, title)
			}
		}
		if !found {
			r.t.Errorf("the page of shared blocks has no section %s", m[1])
		}
	}
}

// TestExamplesOfComponents checks that every component has a complete configuration, which contains
// it and loads without warnings.
func TestExamplesOfComponents(t *testing.T) {
	for _, f := range tracing.Components() {
		name := f.Kind().String() + " " + f.Type()
		example := f.ExampleConfig()
		if !strings.Contains(example, f.Kind().Section()+":\n") || !strings.Contains(example, "\n  "+f.Type()) {
			t.Errorf("%s: the example does not have the component:\n%s", name, example)
		}
		_, err := app.Load(app.LoadOptions{
			Factories: tracing.Components(), Files: []string{"example.yaml"}, Strict: true,
			ReadFile:  func(string) ([]byte, error) { return []byte(example), nil },
			LookupEnv: func(string) (string, bool) { return "", false },
		})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, example)
		}
	}
}
