package pipeline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// listComponents writes all types, or everything about one, which may be a type of several kinds.
func (c *command) listComponents(w io.Writer, typ string) error {
	if typ == "" {
		c.listTypes(w)
		return nil
	}
	var types []string
	found := false
	for _, f := range c.factories() {
		if f.typ == typ {
			if found {
				fmt.Fprintln(w)
			}
			found = true
			writeComponent(w, f)
		}
		types = append(types, f.typ)
	}
	if !found {
		return fmt.Errorf("no component is of type %q%s", typ, conf.Suggest(typ, slices.Compact(slices.Sorted(slices.Values(types))), "known"))
	}
	return nil
}

// factories returns the factories by kind, then by type.
func (c *command) factories() []Factory {
	return slices.SortedFunc(slices.Values(c.load.Factories), func(a, b Factory) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return strings.Compare(a.typ, b.typ)
	})
}

func (c *command) listTypes(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var kind Kind
	for _, f := range c.factories() {
		if f.kind != kind {
			kind = f.kind
			fmt.Fprintf(w, "%s:\n", kind.section())
		}
		fmt.Fprintf(w, "  %s\t%s\n", f.typ, f.doc)
	}
	w.Flush() //nolint:errcheck // standard output
}

func writeComponent(w io.Writer, f Factory) {
	fmt.Fprintf(w, "%s %s\n%s\n", f.kind, f.typ, f.doc)
	for _, k := range describe(f.defaults()) {
		typ := k.typ
		if k.defaults != "" {
			typ += ", default " + k.defaults
		}
		fmt.Fprintf(w, "\n  %s  (%s)\n      %s\n", k.path, typ, k.doc)
	}
	for i, o := range f.flagOwners() {
		if i == 0 {
			fmt.Fprintf(w, "\nflags, and environment variables:\n")
		}
		fmt.Fprintf(w, "  --%s, %s: %s\n", o.flag.Name, o.flag.Env(), o.effect())
	}
}

func (f Factory) flagOwners() []flagOwner {
	owners := make([]flagOwner, len(f.flags))
	for i, flag := range f.flags {
		owners[i] = flagOwner{flag, f.kind, f.typ}
	}
	return owners
}

// effect says what a flag does to the configuration.
func (o flagOwner) effect() string {
	switch {
	case o.flag.Instead != "":
		return "no effect: " + o.flag.Instead
	case o.flag.Key == "" && o.kind != 0:
		return "false takes " + o.path() + " out of the configuration"
	case o.flag.Key == "":
		return "see its meaning"
	case o.flag.Presence:
		return "turns " + o.path() + " on or off"
	case o.flag.Adds:
		return "sets " + o.path() + "; adds the " + o.kind.String() + " where there is none"
	}
	return "sets " + o.path()
}

// writeDocs writes the reference of the whole configuration as Markdown.
func (c *command) writeDocs(w io.Writer) {
	fmt.Fprint(w, docsHead)
	fmt.Fprint(w, "\n## service\n\n")
	defaults := defaultService()
	writeKeys(w, describe(&defaults))
	var kind Kind
	for _, f := range c.factories() {
		if f.kind != kind {
			kind = f.kind
			fmt.Fprintf(w, "\n## %s\n", kind.section())
		}
		fmt.Fprintf(w, "\n### %s: %s\n\n%s\n\n", f.kind, f.typ, f.doc)
		writeKeys(w, describe(f.defaults()))
	}
	c.writeFlags(w)
}

const docsHead = `# Configuration reference

<!-- Written by ` + "`tracing docs`" + `; do not edit. -->

The sections of a configuration file are ` + "`receivers`, `processors`, `exporters`, `extensions`" + ` and ` + "`service`" + `. In all but the
last, each key is the id of a component, ` + "`type` or `type/name`" + `, and holds the keys that are listed here for the type. A block that is
"off unless given" does something only when its key is there, be it empty. In a key, ` + "`<name>`" + ` stands for a name of your choice and
` + "`[]`" + ` for each item of a list.

A duration is written ` + "`250ms`, `5s`, `1h30m` or `7d`" + `; a size ` + "`64MiB`, `50GiB`" + `, a number of bytes, or ` + "`10%`" + ` of the memory that
the process may use. ` + "`${NAME}`, `${NAME:-default}` and `${file:/path}`" + ` in a value are replaced by the environment variable or the file's
content; ` + "`$$`" + ` is a dollar.
`

func writeKeys(w io.Writer, keys []keyDoc) {
	if len(keys) == 0 {
		fmt.Fprintln(w, "No keys.")
		return
	}
	fmt.Fprint(w, "| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", k.path, k.typ, code(k.defaults), cell(k.doc))
	}
}

func (c *command) writeFlags(w io.Writer) {
	fmt.Fprint(w, "\n## Flags and environment variables\n\nSources in order, later ones win: preset, files, environment variables, flags, `--set`.\n\n"+
		"| Flag | Environment variable | Effect | Meaning |\n|---|---|---|---|\n")
	for _, f := range knownFlags(c.load.Factories) {
		effects := make([]string, len(f.owners))
		for i, o := range f.owners {
			effects[i] = o.effect()
		}
		fmt.Fprintf(w, "| `--%s` | `%s` | %s | %s |\n", f.Name, f.Env(), cell(strings.Join(effects, "; ")), cell(f.Doc))
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell escapes what would end a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
