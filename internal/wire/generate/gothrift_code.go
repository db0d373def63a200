package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/wire/generate/idl"
)

// initialisms are words that Go writes in capitals.
var initialisms = []string{"id", "ok"}

// goName is how Go writes a name: trace_id_high and traceIdHigh are TraceIDHigh.
func goName(name string) string {
	var words []string
	start := 0
	for i, c := range name + "_" {
		if c == '_' || i > 0 && 'A' <= c && c <= 'Z' {
			words = append(words, strings.Trim(name[start:i], "_"))
			start = i
		}
	}
	var b strings.Builder
	for _, w := range words {
		switch {
		case w == "":
		case slices.Contains(initialisms, strings.ToLower(w)):
			b.WriteString(strings.ToUpper(w))
		default:
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// kindOf is the kind of a field's type, which check has looked up before.
func (g *thriftGenerator) kindOf(f idl.Field) kind {
	k, _ := g.files.kind(g.name, f.Type)
	return k
}

// pointer says whether nil stands for the absence of the field. For lists and binaries it does without one.
func (g *thriftGenerator) pointer(f idl.Field) bool {
	return f.Requiredness == idl.Optional && !f.HasDefault && !f.Type.List && f.Type.Name != "binary"
}

func (g *thriftGenerator) goType(f idl.Field) string {
	t := bases[f.Type.Name]
	if t == "" {
		t = g.goReference(f.Type.Name)
	}
	switch {
	case f.Type.List:
		return "[]" + t
	case g.pointer(f):
		return "*" + t
	}
	return t
}

func (g *thriftGenerator) goReference(name string) string {
	other, typ, qualified := strings.Cut(name, ".")
	if !qualified {
		return goName(name)
	}
	return g.files[other].Namespaces["go"] + "." + goName(typ)
}

func (g *thriftGenerator) read(name string, s idl.Struct) {
	g.p("// Read replaces x by the struct that in holds.")
	g.p("func (x *%s) Read(ctx context.Context, in thrift.TProtocol) error {", name)
	g.p("*x = %s{}", name)
	g.p("r := thriftio.NewReader(ctx, in)\nfor r.Next() {\nswitch r.ID() {")
	for _, f := range s.Fields {
		g.p("case %d:\nthriftio.%s(r, &x.%s)", f.ID, g.reader(f), goName(f.Name))
	}
	g.p("default:\nr.Skip()\n}\n}")
	for _, f := range s.Fields {
		if f.Requiredness == idl.Required {
			g.p("r.Require(%d, %q)", f.ID, f.Name)
		}
	}
	g.p("return r.End()\n}\n")
}

func (g *thriftGenerator) reader(f idl.Field) string {
	switch k := g.kindOf(f); {
	case f.Type.List:
		return "ReadStructs"
	case k == structure && g.pointer(f):
		return "ReadOptionalStruct"
	case k == structure:
		return "ReadStruct"
	case k == enumeration:
		return "ReadEnum"
	case g.pointer(f):
		return "ReadOptional"
	}
	return "Read"
}

func (g *thriftGenerator) write(name string, s idl.Struct) {
	g.p("// Write writes x.")
	g.p("func (x *%s) Write(ctx context.Context, out thrift.TProtocol) error {", name)
	g.p("w := thriftio.NewWriter(ctx, out, %q)", s.Name)
	for _, f := range s.Fields {
		call := fmt.Sprintf("thriftio.%s(w, %d, %q, %s)", g.writer(f), f.ID, f.Name, g.written(f))
		if cond := g.present(f); cond != "" {
			call = fmt.Sprintf("if %s {\n%s\n}", cond, call)
		}
		g.p("%s", call)
	}
	g.p("return w.End()\n}\n")
}

func (g *thriftGenerator) writer(f idl.Field) string {
	switch k := g.kindOf(f); {
	case f.Type.List:
		return "WriteStructs"
	case k == structure:
		return "WriteStruct"
	case g.pointer(f):
		return "WriteOptional"
	}
	return "Write"
}

// written is the expression for the value of a field that is written.
func (g *thriftGenerator) written(f idl.Field) string {
	x := "x." + goName(f.Name)
	switch g.kindOf(f) {
	case enumeration:
		return "int32(" + x + ")"
	case structure:
		if !f.Type.List && !g.pointer(f) {
			return "&" + x
		}
	}
	return x
}

// present is the condition under which a field is written, "" if it always is or the writer knows.
func (g *thriftGenerator) present(f idl.Field) string {
	x := "x." + goName(f.Name)
	switch {
	case f.Requiredness != idl.Optional:
		return ""
	case f.HasDefault && f.Type.Name == "bool":
		return x
	case f.HasDefault:
		return x + " != 0"
	case f.Type.List || f.Type.Name == "binary" || g.kindOf(f) == structure:
		return x + " != nil"
	}
	return ""
}
