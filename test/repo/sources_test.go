package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// notSources reports whether a folder of this name has no files of the repository, except for .ci.
// Tests do not even list it: Go repeats tests when a folder that they have listed has changed.
func notSources(folder string) bool {
	return strings.HasPrefix(folder, ".") || slices.Contains([]string{"bin", "data", "dist", "node_modules"}, folder)
}

// eachGoFile parses every Go file of the module and calls visit.
func eachGoFile(t *testing.T, mode parser.Mode, visit func(dir, file string, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	root := harness.Root(t)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || p != root && notSources(d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, mode)
		if err != nil {
			return err
		}
		p, err = filepath.Rel(root, p)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(p)), filepath.ToSlash(p), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryTestPackageChecksForLeaks checks that every package with tests has a TestMain that calls
// goleak.
func TestEveryTestPackageChecksForLeaks(t *testing.T) {
	tests, leak := map[string]bool{}, map[string]bool{}
	eachGoFile(t, parser.SkipObjectResolution, func(dir, file string, f *ast.File) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		tests[dir] = true
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "TestMain" && imports(f, "go.uber.org/goleak") {
				leak[dir] = true
			}
		}
	})
	for dir := range tests {
		if !leak[dir] {
			t.Errorf("%s: no TestMain that calls goleak", dir)
		}
	}
}

// imports reports whether a file imports a package.
func imports(f *ast.File, pkg string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(pkg) })
}

// TestExportedNamesAreDocumented checks that every exported name has a doc comment.
func TestExportedNamesAreDocumented(t *testing.T) {
	eachGoFile(t, parser.ParseComments|parser.SkipObjectResolution, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(dir, "internal/wire") {
			return
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no doc comment", file, name)
			}
		}
	})
}

// undocumented returns the exported names of a declaration that have no doc comment.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d)) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Doc == nil && s.Doc == nil && s.Comment == nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
					names = append(names, s.Names[0].Name)
				}
			}
		}
		return names
	}
	return nil
}

// exportedReceiver reports whether the receiver type of a method is exported.
func exportedReceiver(d *ast.FuncDecl) bool {
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// TestOptionalStoreInterfaces checks that optional interfaces of stores are found with
// tracestore.As: a type assertion ignores what a store in another process supports.
func TestOptionalStoreInterfaces(t *testing.T) {
	assertion := regexp.MustCompile(`\.\(tracestore\.(Aggregator|Deleter|Edges|Follower|Metrics|PathProfiler|UsageReporter)\)`)
	root := harness.Root(t)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && notSources(d.Name()) {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if found := assertion.Find(text); found != nil {
			t.Errorf("%s: use tracestore.As instead of %s", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
