package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// ListComponents writes all component types or, if typ is not "", the keys and flags of that type.
// Several kinds may have a type of this name.
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
	keys := describe(f.Defaults()).all()
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

// documentation returns the URL of the documentation of keys that the framework does not know, or
// "".
func documentation(f pipeline.Factory) string {
	t, ok := f.Defaults().(yamltree.TreeConfig)
	if !ok {
		return ""
	}
	_, address := t.TreeKeys()
	return address
}

// documented reports whether a key is documented. Keys that the framework does not know are not.
func documented(keys []keyDoc) bool {
	return slices.ContainsFunc(keys, func(k keyDoc) bool { return k.doc != "" })
}
