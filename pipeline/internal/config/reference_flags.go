package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// flagsPage returns the page of flags and environment variables.
func flagsPage(factories []pipeline.Factory) string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Flags and environment variables\n\n%s\n"+
		"Each flag is also an environment variable: its name in upper case, with `_` for `-` and `.`. "+
		"So `--query.base-path` is `QUERY_BASE_PATH`. Exceptions are stated.\n", written)
	rows, similar, without := flagRows(Flags(factories))
	if len(rows) > 0 {
		fmt.Fprint(&w, "\n## Flags that set a key to their text\n\n| Flag | Key |\n|---|---|\n")
		for _, r := range rows {
			if r.doc == "" {
				fmt.Fprintf(&w, "| `%s` | %s |\n", strings.Join(r.names, "`, `"), r.effect)
			}
		}
		fmt.Fprint(&w, "\n## Other flags\n\n| Flag | Key | Meaning |\n|---|---|---|\n")
		for _, r := range rows {
			if r.doc != "" {
				fmt.Fprintf(&w, "| `%s` | %s | %s |\n", strings.Join(r.names, "`, `"), r.effect, cell(r.doc))
			}
		}
	}
	writeBlockFlags(&w, similar)
	if len(without) > 0 {
		fmt.Fprint(&w, "\n## Flags without effect\n\nThey are accepted with a warning, unless stated otherwise.\n\n"+
			"| Flag | Reason |\n|---|---|\n")
		for _, r := range without {
			fmt.Fprintf(&w, "| `%s` | %s |\n", strings.Join(r.names, "`, `"), cell(r.doc))
		}
	}
	fmt.Fprint(&w, "\n## Other environment variables\n\n| Variable | Meaning |\n|---|---|\n")
	for _, v := range commands.Variables() {
		fmt.Fprintf(&w, "| `%s` | %s |\n", v.Name, cell(v.Doc))
	}
	return w.String()
}

// flagRow documents flags with the same effect.
type flagRow struct {
	names       []string
	effect, doc string
}

// flagRows returns the rows of flags that set keys, the flags of similar blocks, and the flags
// without an effect.
func flagRows(flags []Flag) (rows []flagRow, similar []Flag, without []flagRow) {
	families := map[string]bool{}
	for _, f := range flags {
		if f.blockKey() != "" {
			similar = append(similar, f)
			continue
		}
		d := f.doc()
		if f.Family != "" && families[d.Name] {
			continue
		}
		families[d.Name] = true
		r := flagRow{names: []string{"--" + d.Name}, doc: f.Doc}
		switch {
		case f.Instead != "":
			r.doc = f.Instead + "."
			without = joined(without, r)
			continue
		case f.Refused != "":
			r.doc = "Error: " + f.Refused + "."
			without = joined(without, r)
			continue
		}
		r.effect = f.effect()
		if f.plain() {
			r.doc = ""
		}
		switch {
		case f.CommandLine:
			r.doc += " No environment variable."
		case f.Variable != "":
			r.doc += " Variable: `" + f.Variable + "`."
		}
		rows = joined(rows, r)
	}
	return withEarlierNames(rows), similar, without
}

// effect describes the effect of a flag in all components that have it.
func (f Flag) effect() string {
	const maxListed = 4
	var effects []string
	for _, o := range f.owners {
		effects = append(effects, o.shortEffect())
	}
	if len(effects) <= maxListed {
		return strings.Join(effects, ", ")
	}
	var keys, components []string // keys without the blocks around them
	for _, o := range f.owners {
		key := strings.Split(o.flag.Key, "::")
		keys = append(keys, "`"+strings.Join(key[max(0, len(key)-2):], ".")+"`")
		components = append(components, "`"+strings.Split(o.path(), ".")[1]+"`")
	}
	slices.Sort(keys)
	slices.Sort(components)
	return strings.Join(slices.Compact(keys), ", ") + " of " + strings.Join(slices.Compact(components), ", ")
}

// withEarlierNames moves old names of flags to the rows of the new names.
func withEarlierNames(rows []flagRow) []flagRow {
	return slices.DeleteFunc(slices.Clone(rows), func(old flagRow) bool {
		name, earlier := strings.CutPrefix(old.doc, "Earlier name of ")
		i := slices.IndexFunc(rows, func(r flagRow) bool {
			return earlier && r.effect == old.effect && r.names[0] == "--"+strings.TrimSuffix(name, ".")
		})
		if i >= 0 {
			rows[i].names = append(rows[i].names, old.names...)
		}
		return i >= 0
	})
}

// plain reports whether a flag only sets one key to its text, so that the documentation of the key
// suffices.
func (f Flag) plain() bool {
	return f.Value == nil && f.Apply == nil && f.Key != "" && len(f.owners) == 1 && !f.Presence && !f.Selects && !f.Adds
}

// joined adds a row, or adds its names to a row with the same text.
func joined(rows []flagRow, r flagRow) []flagRow {
	for i := range rows {
		if rows[i].effect == r.effect && rows[i].doc == r.doc {
			rows[i].names = append(rows[i].names, r.names...)
			return rows
		}
	}
	return append(rows, r)
}

// shortEffect describes the effect of a flag for the column of keys.
func (o flagOwner) shortEffect() string {
	path := "`" + o.path() + "`"
	switch {
	case o.flag.Key == "" && o.kind != 0:
		return path + ": false removes it"
	case o.flag.Key == "":
		return ""
	case o.flag.Presence:
		return path + ": on or off"
	case o.flag.Adds:
		return path + "; adds the " + o.kind.String()
	}
	return path
}

// blockKey returns the end of a flag's name that selects a key in a block that several components
// have, such as TLS. It returns "" for other flags.
func (f Flag) blockKey() string {
	if f.Instead != "" || f.Refused != "" || f.CommandLine || f.Variable != "" {
		return ""
	}
	if prefix, key, found := strings.Cut(f.Name, ".tls."); found && prefix != "" {
		return key
	}
	if strings.HasPrefix(f.Name, "processor.") { // UDP listeners
		return f.Name[strings.LastIndexByte(f.Name, '.')+1:]
	}
	return ""
}

// blockFlags are the flags of blocks with the same names.
type blockFlags struct {
	blocks [][2]string // prefix of the flags, and block
	names  []flagRow
}

// writeBlockFlags writes the flags of similar blocks: for blocks with the same keys, a table of
// prefixes and a table of suffixes.
func writeBlockFlags(w *strings.Builder, flags []Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprint(w, "\n## Flags for TLS and UDP\n\nA flag is a prefix and a name of the table that follows: `--query.http.tls.cert`.\n")
	for _, g := range blockGroups(flags) {
		fmt.Fprint(w, "\n| Prefix | Block |\n|---|---|\n")
		for _, b := range g.blocks {
			fmt.Fprintf(w, "| `%s` | %s |\n", b[0], b[1])
		}
		fmt.Fprint(w, "\n| Name | Key | Meaning |\n|---|---|---|\n")
		for _, r := range g.names {
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", r.names[0], r.effect, cell(r.doc))
		}
	}
}

func blockGroups(flags []Flag) []*blockFlags {
	var groups []*blockFlags
	for len(flags) > 0 {
		prefix := flags[0].blockPrefix()
		g := &blockFlags{blocks: [][2]string{{prefix, flags[0].blocks()}}}
		for len(flags) > 0 && flags[0].blockPrefix() == prefix {
			g.names = append(g.names, flags[0].blockRow())
			flags = flags[1:]
		}
		i := slices.IndexFunc(groups, func(other *blockFlags) bool {
			return slices.EqualFunc(other.names, g.names, func(a, b flagRow) bool { return a.names[0] == b.names[0] && a.effect == b.effect })
		})
		if i < 0 {
			groups = append(groups, g)
		} else {
			groups[i].blocks = append(groups[i].blocks, g.blocks...)
		}
	}
	return groups
}

// blockPrefix returns the name of a flag without [Flag.blockKey].
func (f Flag) blockPrefix() string { return "--" + strings.TrimSuffix(f.Name, f.blockKey()) }

// blocks returns the blocks whose keys a flag sets.
func (f Flag) blocks() string {
	var blocks []string
	for _, o := range f.owners {
		path := o.path()
		if !o.flag.Presence {
			path = path[:strings.LastIndexByte(path, '.')]
		}
		blocks = append(blocks, "`"+path+"`")
	}
	return strings.Join(blocks, ", ")
}

// blockRow returns the row of the name without its prefix.
func (f Flag) blockRow() flagRow {
	path := f.owners[0].path()
	r := flagRow{names: []string{f.blockKey()}, effect: "`" + path[strings.LastIndexByte(path, '.')+1:] + "`", doc: f.Doc}
	switch {
	case f.blockKey() == "enabled":
		r.effect = "" // the block, or insecure in it
	case f.Value == nil:
		r.doc = ""
	}
	return r
}
