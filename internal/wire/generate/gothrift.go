package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/wire/generate/idl"
)

// thriftFiles are the parsed files of a folder by their names without the ending, which is what they call each other.
type thriftFiles map[string]*idl.File

func parseThrift(dir string) (thriftFiles, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.thrift"))
	if err != nil {
		return nil, err
	}
	files := thriftFiles{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := idl.Parse(filepath.Base(name), string(src))
		if err != nil {
			return nil, err
		}
		files[strings.TrimSuffix(filepath.Base(name), ".thrift")] = f
	}
	for name, f := range files {
		if err := files.check(name, f); err != nil {
			return nil, fmt.Errorf("%s.thrift: %w", name, err)
		}
	}
	return files, nil
}

// check finds names of types that stand for nothing.
func (files thriftFiles) check(name string, f *idl.File) error {
	for _, s := range structsOf(f) {
		for _, field := range s.Fields {
			if _, err := files.kind(name, field.Type); err != nil {
				return fmt.Errorf("%s of %s: %w", field.Name, s.Name, err)
			}
		}
	}
	return nil
}

// structsOf are the structs that are declared, and those of methods' arguments.
func structsOf(f *idl.File) []idl.Struct {
	all := slices.Clone(f.Structs)
	for _, s := range f.Services {
		for _, m := range s.Methods {
			all = append(all, argsOf(m))
		}
	}
	return all
}

func argsOf(m idl.Method) idl.Struct {
	doc := fmt.Sprintf("%s are the arguments of the method %s.", goName(m.Name+"_args"), m.Name)
	return idl.Struct{Doc: append([]string{doc}, m.Doc...), Name: m.Name + "_args", Fields: m.Args.Fields}
}

// kind is what generated code does with values of a type.
type kind int

const (
	value kind = iota
	enumeration
	structure
)

// bases are the Go types of Thrift's base types.
var bases = map[string]string{
	"bool": "bool", "byte": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "double": "float64",
	"string": "string", "binary": "[]byte",
}

// kind looks up a type that the file of that name mentions.
func (files thriftFiles) kind(file string, t idl.Type) (kind, error) {
	if bases[t.Name] != "" && !t.List {
		return value, nil
	}
	other, name, qualified := strings.Cut(t.Name, ".")
	if !qualified {
		other, name = file, t.Name
	} else if !slices.Contains(files[file].Includes, other+".thrift") || files[other] == nil {
		return 0, fmt.Errorf("%s is of a file that is not included", t.Name)
	}
	switch {
	case slices.ContainsFunc(files[other].Structs, func(s idl.Struct) bool { return s.Name == name }):
		return structure, nil
	case slices.ContainsFunc(files[other].Enums, func(e idl.Enum) bool { return e.Name == name }) && !t.List:
		return enumeration, nil
	}
	return 0, fmt.Errorf("%s is no type that fields may have", t.Name)
}

// goThrift writes the Go code of every file with a namespace for go, which is the name of the package and its folder below out.
func goThrift(dir, out string) error {
	files, err := parseThrift(dir)
	if err != nil {
		return err
	}
	for name, f := range files {
		pkg := f.Namespaces["go"]
		if pkg == "" {
			continue
		}
		g := &thriftGenerator{files: files, name: name, file: f}
		src, err := g.generate(pkg)
		if err != nil {
			return fmt.Errorf("%s.thrift: %w", name, err)
		}
		if err := writeFile(out, path.Join(pkg, name+".thrift.go"), src); err != nil {
			return err
		}
	}
	return nil
}

// thriftGenerator writes the code of one file.
type thriftGenerator struct {
	files thriftFiles
	name  string
	file  *idl.File
	buf   bytes.Buffer
}

func (g *thriftGenerator) p(format string, args ...any) { fmt.Fprintf(&g.buf, format+"\n", args...) }

func (g *thriftGenerator) doc(lines []string) {
	for _, l := range lines {
		g.p("%s", strings.TrimRight("// "+l, " "))
	}
}

func (g *thriftGenerator) generate(pkg string) ([]byte, error) {
	g.p("// Code generated from %s.thrift by internal/wire/generate. DO NOT EDIT.\n", g.name)
	if doc := g.file.Doc; len(doc) > 0 {
		g.doc(append([]string{fmt.Sprintf("Package %s is generated from %s.thrift.", pkg, g.name), ""}, doc...))
	}
	g.p("package %s\n", pkg)
	g.imports()
	for _, c := range g.file.Consts {
		g.doc(c.Doc)
		g.p("const %s = %q", goName(strings.ToLower(c.Name)), c.Value)
	}
	for _, e := range g.file.Enums {
		g.enum(e)
	}
	for _, s := range g.file.Services {
		for _, m := range s.Methods {
			g.p("\n// Method%s is the name of a method of the service %s.", goName(m.Name), s.Name)
			g.p("const Method%s = %q", goName(m.Name), m.Name)
		}
	}
	for _, s := range structsOf(g.file) {
		g.structure(s)
	}
	return format.Source(g.buf.Bytes())
}

func (g *thriftGenerator) imports() {
	g.p("import (\n%q\n\n%q\n", "context", "github.com/apache/thrift/lib/go/thrift")
	for _, i := range g.file.Includes {
		g.p("%q", wirePackage+"/"+g.files[strings.TrimSuffix(i, ".thrift")].Namespaces["go"])
	}
	g.p("%q\n)", wirePackage+"/thriftio")
}

func (g *thriftGenerator) enum(e idl.Enum) {
	g.p("")
	g.doc(e.Doc)
	g.p("type %s int32\n", goName(e.Name))
	g.p("// The values of %s.", goName(e.Name))
	g.p("const (")
	for _, v := range e.Values {
		g.doc(v.Doc)
		g.p("%s%s %[1]s = %[3]d", goName(e.Name), goName(strings.ToLower(v.Name)), v.Number)
	}
	g.p(")")
}

func (g *thriftGenerator) structure(s idl.Struct) {
	name := goName(s.Name)
	g.p("")
	g.doc(s.Doc)
	g.p("type %s struct {", name)
	for _, f := range s.Fields {
		g.doc(f.Doc)
		g.p("%s %s", goName(f.Name), g.goType(f))
	}
	g.p("}\n")
	g.read(name, s)
	g.write(name, s)
}
