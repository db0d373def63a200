package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// ListComponents writes all component types or, if typ is not "", the keys and flags of that type,
// which several kinds may have.
func ListComponents(w io.Writer, factories []pipeline.Factory, typ string) error {
	if typ == "" {
		listTypes(w, factories)
		return nil
	}
	var types []string
	found := false
	for _, f := range sorted(factories) {
		if f.Type() == typ {
			if found {
				fmt.Fprintln(w)
			}
			found = true
			writeComponent(w, f)
		}
		types = append(types, f.Type())
	}
	if !found {
		return fmt.Errorf("unknown component type %q%s", typ, yamltree.Suggest(typ, slices.Compact(slices.Sorted(slices.Values(types))), "known"))
	}
	return nil
}

// sorted returns the factories by kind, then by type.
func sorted(factories []pipeline.Factory) []pipeline.Factory {
	return slices.SortedFunc(slices.Values(factories), func(a, b pipeline.Factory) int {
		if a.Kind() != b.Kind() {
			return int(a.Kind()) - int(b.Kind())
		}
		return strings.Compare(a.Type(), b.Type())
	})
}

func listTypes(out io.Writer, factories []pipeline.Factory) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var kind pipeline.Kind
	for _, f := range sorted(factories) {
		if f.Kind() != kind {
			kind = f.Kind()
			fmt.Fprintf(w, "%s:\n", kind.Section())
		}
		fmt.Fprintf(w, "  %s\t%s\n", f.Type(), f.Summary())
	}
	w.Flush() //nolint:errcheck // standard output
}

func writeComponent(w io.Writer, f pipeline.Factory) {
	fmt.Fprintf(w, "%s %s\n%s\n", f.Kind(), f.Type(), f.Summary())
	if address := documentation(f); address != "" {
		fmt.Fprintf(w, "Documentation of the keys: %s\n", address)
	}
	if len(f.Aliases()) > 0 {
		fmt.Fprintf(w, "also accepted as: %s\n", strings.Join(f.Aliases(), ", "))
	}
	keys := describe(f.Defaults())
	if !documented(keys) {
		fmt.Fprintln(w)
	}
	for _, k := range keys {
		typ := k.typ
		if k.defaults != "" {
			typ += ", default " + k.defaults
		}
		if k.doc == "" {
			fmt.Fprintf(w, "  %s  (%s)\n", k.path, typ)
			continue
		}
		fmt.Fprintf(w, "\n  %s  (%s)\n      %s\n", k.path, typ, k.doc)
	}
	var flags []Flag
	for _, o := range flagOwners(f) {
		if !o.flag.Whole {
			flags = append(flags, Flag{Flag: o.flag, owners: []flagOwner{o}})
		}
	}
	for i, d := range flagDocs(flags) {
		if i == 0 {
			fmt.Fprintf(w, "\nflags and environment variables:\n")
		}
		fmt.Fprintf(w, "  --%s, %s: %s\n", d.Name, d.Env, d.effect)
	}
}

// WriteReference writes the reference of the whole configuration as Markdown.
func WriteReference(w io.Writer, factories []pipeline.Factory) {
	fmt.Fprint(w, docsHead)
	fmt.Fprint(w, "\n## service\n\n")
	defaults := defaultService()
	writeKeys(w, describe(&defaults))
	var kind pipeline.Kind
	for _, f := range sorted(factories) {
		if f.Kind() != kind {
			kind = f.Kind()
			fmt.Fprintf(w, "\n## %s\n", kind.Section())
		}
		fmt.Fprintf(w, "\n### %s: %s\n\n%s\n\n", f.Kind(), f.Type(), f.Summary())
		if len(f.Aliases()) > 0 {
			fmt.Fprintf(w, "Also accepted as `%s`.\n\n", strings.Join(f.Aliases(), "`, `"))
		}
		if address := documentation(f); address != "" {
			fmt.Fprintf(w, "The keys are those of the [component's own documentation](%s).\n\n", address)
		}
		writeKeys(w, describe(f.Defaults()))
	}
	writeFlags(w, factories)
	fmt.Fprint(w, "\n## Environment variables\n\nIn addition to those of the flags:\n\n| Variable | Meaning |\n|---|---|\n")
	for _, v := range commands.Variables() {
		fmt.Fprintf(w, "| `%s` | %s |\n", v.Name, v.Doc)
	}
}

const docsHead = `# Configuration reference

<!-- Written by ` + "`tracing docs`" + `; do not edit. -->

A configuration file has the sections ` + "`receivers`, `processors`, `exporters`, `connectors`, `extensions`" + ` and
` + "`service`" + `. In the first five, each key is the id of a component, ` + "`type` or `type/name`" + `, and holds
the keys that are listed here for the type. A block that is "off unless given" is enabled by its key,
even if the block is empty. In a key, ` + "`<name>`" + ` is a name of your choice and ` + "`[]`" + ` is an item of a list.

Durations are written ` + "`250ms`, `5s`, `1h30m` or `7d`" + `. Sizes are written ` + "`64MiB`, `50GiB`" + `, as a number
of bytes, or as a percentage of the memory that the process may use: ` + "`10%`" + `.
` + "`${NAME}`, `${NAME:-default}` and `${file:/path}`" + ` in a value are replaced by the environment variable
or the content of the file; ` + "`$$`" + ` is a dollar sign.
`

// documentation returns the address of the documentation of keys that the framework does not know,
// or "".
func documentation(f pipeline.Factory) string {
	t, ok := f.Defaults().(yamltree.TreeConfig)
	if !ok {
		return ""
	}
	_, address := t.TreeKeys()
	return address
}

func writeKeys(w io.Writer, keys []keyDoc) {
	if len(keys) == 0 {
		fmt.Fprintln(w, "No keys.")
		return
	}
	if !documented(keys) {
		fmt.Fprint(w, "| Key | Type | Default |\n|---|---|---|\n")
		for _, k := range keys {
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", k.path, k.typ, code(k.defaults))
		}
		return
	}
	fmt.Fprint(w, "| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", k.path, k.typ, code(k.defaults), cell(k.doc))
	}
}

func writeFlags(w io.Writer, factories []pipeline.Factory) {
	fmt.Fprint(w, "\n## Flags and environment variables\n\n"+
		"Later sources override earlier ones: preset, files, environment variables, flags, `--set`.\n\n"+
		"| Flag | Environment variable | Effect | Meaning |\n|---|---|---|---|\n")
	for _, d := range FlagDocs(factories) {
		meaning := d.Doc
		if strings.HasPrefix(d.effect, "no effect: ") || strings.HasPrefix(d.effect, "error: ") {
			meaning = ""
		}
		fmt.Fprintf(w, "| `--%s` | %s | %s | %s |\n", d.Name, code(d.Env), cell(d.effect), cell(meaning))
	}
}

// documented reports whether a key has a documentation, which keys that the framework does not know
// have not.
func documented(keys []keyDoc) bool {
	return slices.ContainsFunc(keys, func(k keyDoc) bool { return k.doc != "" })
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell escapes text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
