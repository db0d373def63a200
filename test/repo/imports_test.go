package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/test/harness"
)

const module = "github.com/tracing-backend/tracing"

// rooms says which packages of this module a folder may import; the longest prefix that fits
// counts. It is the table of ARCHITECTURE.md. "." is the module's root; "+" before a prefix allows
// everything below it.
var rooms = map[string][]string{
	".":                                   {"+"},
	"cmd":                                 {".", "pipeline/app"},
	"config-examples":                     {},
	"pipeline":                            {"pipeline/otlpdata", "pipeline/status", "pipeline/storage/vfs", "pipeline/internal/errclass", "pipeline/internal/queueopt", "pipeline/internal/sysmem"},
	"pipeline/internal":                   {},
	"pipeline/otlpdata":                   {},
	"pipeline/sampling":                   {},
	"pipeline/sampling/samplingtest":      {"pipeline/sampling"},
	"pipeline/tracestore":                 {"pipeline/otlpdata"},
	"pipeline/tracestore/storequery":      {"pipeline/otlpdata", "pipeline/tracestore"},
	"pipeline/tracestore/storeadmin":      {"pipeline", "pipeline/otlpdata", "pipeline/tracestore"},
	"pipeline/storage":                    {"+pipeline/storage"},
	"pipeline/server":                     {"pipeline", "pipeline/otlpdata", "+pipeline/internal/certs", "+pipeline/server"},
	"pipeline/client":                     {"pipeline", "pipeline/server", "+pipeline/internal/certs"},
	"pipeline/pipelinetest":               {"pipeline", "pipeline/app", "pipeline/otlpdata"},
	"pipeline/tracestore/storetest":       {"pipeline", "pipeline/otlpdata", "pipeline/tracestore", "pipeline/tracestore/storequery"},
	"receivers":                           {"+pipeline", "+internal/wire", "+internal/translate"},
	"processors":                          {"+pipeline"},
	"exporters":                           {"+pipeline", "+internal/wire", "+internal/translate"},
	"exporters/disk":                      {"+pipeline", "+exporters/disk/internal"},
	"extensions":                          {"+pipeline", "+internal/wire", "+internal/translate", "internal/traceql"},
	"extensions/query":                    {"+pipeline", "+internal/wire", "+internal/translate", "internal/traceql", "+extensions/query/internal"},
	"extensions/query/internal/querytest": {"+pipeline", "+extensions/query/internal", "exporters/memory", "internal/golden"},
	"examples":                            {".", "+pipeline"},
	"internal/wire":                       {"+internal/wire"},
	"internal/translate":                  {"+pipeline/otlpdata", "pipeline/sampling", "+internal/wire", "+internal/translate"},
	"internal/canary":                     {"pipeline", "pipeline/otlpdata", "pipeline/server"},
	"internal/traceql":                    {"pipeline/otlpdata", "+pipeline/tracestore"},
	"internal/tracecli":                   {"pipeline", "internal/traceql"},
	"internal/compatflags":                {"pipeline"},
	"internal/golden":                     {},
	"internal/soak":                       {},
	"test/harness":                        {".", "pipeline", "pipeline/app", "pipeline/otlpdata", "+internal/wire", "internal/golden", "+test/bench"},
	"test/bench":                          {"pipeline/otlpdata", "+test/bench"},
	"test/simulation":                     {"test/simulation/simnet"},

	// The host: cli uses host, host uses config and delivery.
	"pipeline/app":                      {"pipeline", "pipeline/status", "pipeline/internal/cli", "pipeline/internal/config", "pipeline/internal/host"},
	"pipeline/status":                   {},
	"pipeline/internal/cli":             {"pipeline", "pipeline/status", "+pipeline/internal/config", "pipeline/internal/host"},
	"pipeline/internal/config":          {"pipeline"},
	"pipeline/internal/config/yamltree": {},
	"pipeline/internal/delivery":        {"pipeline", "pipeline/otlpdata", "+pipeline/storage", "pipeline/internal/errclass", "pipeline/internal/queueopt"},
	"pipeline/internal/errclass":        {"pipeline/otlpdata"},
	"pipeline/internal/hosttest":        {"pipeline", "pipeline/app", "pipeline/otlpdata", "pipeline/storage/vfs"},
	"pipeline/internal/host":            {"pipeline", "pipeline/otlpdata", "pipeline/status", "pipeline/internal/config", "pipeline/internal/delivery", "pipeline/internal/sysmem"},

	// Files and memory of the span store.
	"exporters/disk/internal/column":        {},
	"exporters/disk/internal/rows":          {"pipeline/otlpdata"},
	"exporters/disk/internal/rows/rowstest": {"pipeline/otlpdata", "exporters/disk/internal/rows"},
	"exporters/disk/internal/stats":         {"pipeline/otlpdata", "pipeline/tracestore"},
	"exporters/disk/internal/source":        {"pipeline/otlpdata", "exporters/disk/internal/rows", "exporters/disk/internal/stats"},
	"exporters/disk/internal/block":         {"pipeline/otlpdata", "exporters/disk/internal/column", "exporters/disk/internal/rows", "exporters/disk/internal/source"},
	"exporters/disk/internal/segment":       {"pipeline/otlpdata", "pipeline/storage/vfs", "exporters/disk/internal/block", "exporters/disk/internal/column", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/stats"},
	"exporters/disk/internal/memtable":      {"pipeline/otlpdata", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/stats"},
	"exporters/disk/internal/tombstone":     {"pipeline/otlpdata", "pipeline/storage/vfs", "exporters/disk/internal/rows", "exporters/disk/internal/source"},
	"exporters/disk/internal/directory":     {"pipeline/storage/vfs"},

	// Queries of the span store: find, aggregate, graph and names import scan, and not each other.
	"exporters/disk/internal/scan":          {"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/stats"},
	"exporters/disk/internal/scan/scantest": {"+pipeline", "exporters/disk/internal/memtable", "exporters/disk/internal/rows", "exporters/disk/internal/scan", "exporters/disk/internal/segment", "exporters/disk/internal/source"},
	"exporters/disk/internal/find":          {"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/scan"},
	"exporters/disk/internal/aggregate":     {"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/scan", "exporters/disk/internal/stats"},
	"exporters/disk/internal/graph":         {"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/scan", "exporters/disk/internal/block", "exporters/disk/internal/stats"},
	"exporters/disk/internal/names":         {"+pipeline", "exporters/disk/internal/rows", "exporters/disk/internal/source", "exporters/disk/internal/scan"},
}

// Components may import the framework, never each other.
func TestImportsKeepToTheirRooms(t *testing.T) {
	seen := 0
	eachGoFile(t, parser.ImportsOnly, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		seen++
		room := roomOf(dir)
		if room == "" {
			t.Errorf("%s: folder %s is in no room; add it to the table in test/repo/imports_test.go and in ARCHITECTURE.md", file, dir)
			return
		}
		for _, imp := range f.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			below, ours := strings.CutPrefix(target, module)
			if !ours {
				continue
			}
			below = strings.TrimPrefix(below, "/")
			if below == "" {
				below = "."
			}
			if !allowed(rooms[room], dir, below) {
				t.Errorf("%s: a package in %s must not import %s", file, room, target)
			}
		}
	})
	if seen < 20 {
		t.Fatalf("only %d files were looked at", seen)
	}
}

func roomOf(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		if _, ok := rooms[d]; ok && (d != "." || dir == ".") {
			return d
		}
		if d == "." {
			return ""
		}
	}
}

func allowed(may []string, dir, target string) bool {
	if strings.HasPrefix(target, dir+"/") && dir != "." {
		return true // a package of its own below
	}
	for _, m := range may {
		if tree, ok := strings.CutPrefix(m, "+"); ok && (tree == "" || target == tree || strings.HasPrefix(target, tree+"/")) {
			return true
		}
		if m == target {
			return true
		}
	}
	return false
}

func eachGoFile(t *testing.T, mode parser.Mode, visit func(dir, file string, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	root := harness.Root(t)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || p != root && strings.HasPrefix(d.Name(), ".")) {
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

// Every package with tests checks that they leave no goroutine behind.
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
			t.Errorf("%s: tests without a TestMain that calls goleak", dir)
		}
	}
}

func imports(f *ast.File, pkg string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(pkg) })
}

// Exported names say what they are.
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

// Every key of every component has a sentence that says what it does.
func TestEveryConfigFieldIsDocumented(t *testing.T) {
	for _, f := range tracing.Components() {
		if f.Summary() == "" {
			t.Errorf("%s %s: no summary", f.Kind(), f.Type())
		}
		fields := checkFields(t, f.Kind().String()+" "+f.Type(), reflect.TypeOf(f.Defaults()).Elem(), map[reflect.Type]bool{})
		t.Logf("%s %s: %d keys", f.Kind(), f.Type(), fields)
	}
}

func checkFields(t *testing.T, where string, typ reflect.Type, seen map[reflect.Type]bool) int {
	if seen[typ] {
		return 0
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return checkFields(t, where, typ.Elem(), seen)
	case reflect.Struct:
	default:
		return 0
	}
	if strings.HasPrefix(typ.Name(), "Optional[") {
		block, _ := typ.FieldByName("value")
		return checkFields(t, where, block.Type, seen)
	}
	n := 0
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, doc := f.Tag.Get("yaml"), f.Tag.Get("doc")
		switch {
		case !f.IsExported():
			continue
		case f.Anonymous && key == "":
		case key == "":
			t.Errorf("%s: field %s of %s has no yaml tag", where, f.Name, typ)
		case doc == "" || !strings.HasSuffix(doc, "."):
			t.Errorf("%s: key %s needs a doc tag that is a sentence, not %q", where, key, doc)
		default:
			n++
		}
		n += checkFields(t, where+"."+key, f.Type, seen)
	}
	return n
}
