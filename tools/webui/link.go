package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// loadScript is the module that loads parts of the UI with their style sheets. It is a chunk of the
// root, if the bundle has style sheets.
//
//go:embed load.js
var loadScript string

const loadName = "load.js"

// hashPlace is the hash in the names of files, until it is known.
const hashPlace = "%hash%"

// linker makes the script of each group from its chunks. What a group needs of another one has the
// same name in both, so that imports are short: it is a global variable for esbuild, which keeps
// the name, and gets its import afterwards.
type linker struct {
	*bundle
	modules map[string]string      // what esbuild reads, by name: chunks and groups
	aliases map[[2]string]string   // by chunk and export: the name in all groups
	needed  map[[2]string][]string // by group and other group: aliases that it needs
}

// link makes the scripts of the groups.
func (b *bundle) link(ui string) error {
	l := &linker{b, map[string]string{}, map[[2]string]string{}, map[[2]string][]string{}}
	for _, name := range sorted(b.chunks) {
		text, renamed := l.linkImports(name, l.linkLater(b.chunks[name].text))
		r := api.Transform(text, api.TransformOptions{Define: renamed, Format: api.FormatESModule, Charset: api.CharsetUTF8,
			MinifyWhitespace: true})
		if len(r.Errors) > 0 {
			return fmt.Errorf("%s: %s", name, r.Errors[0].Text)
		}
		l.modules[name] = string(r.Code)
	}
	l.shorten()
	o := options(ui, api.Plugin{Name: "groups", Setup: l.setup})
	o.Pure = []string{styleCall}
	for _, g := range sorted(b.groups) {
		o.EntryPoints = append(o.EntryPoints, g)
		for _, name := range b.groups[g].chunks {
			l.modules[g] += fmt.Sprintf("export {%s} from %q\n", strings.Join(l.exports(name), ","), "./"+name)
		}
	}
	result := api.Build(o)
	for _, f := range result.OutputFiles {
		name := strings.TrimSuffix(path.Base(f.Path), ".js")
		b.groups[name].script = l.imports(name) + string(f.Contents)
	}
	return failure(result)
}

// setup lets esbuild read the modules.
func (l *linker) setup(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		if strings.Contains(a.Path, hashPlace) {
			return api.OnResolveResult{Path: a.Path, External: true}, nil
		}
		return api.OnResolveResult{Path: path.Base(a.Path), Namespace: "module"}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "module"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text := l.modules[a.Path]
		return api.OnLoadResult{Contents: &text}, nil
	})
}

// scriptOf is the address of a group's script for other groups.
func scriptOf(group string) string { return "./" + group + "-" + hashPlace + ".js" }

// exports returns what a group exports of a chunk: for import(), everything of an entry point, and
// for other groups what they need, with an alias.
func (l *linker) exports(name string) (list []string) {
	for _, e := range l.chunks[name].exports {
		if l.chunks[name].entry != "" {
			list = append(list, e)
		}
		if alias := l.aliases[[2]string{name, e}]; alias != "" {
			list = append(list, e+" as "+alias)
		}
	}
	return list
}

// imports returns the imports of a group.
func (l *linker) imports(group string) string {
	var head strings.Builder
	for _, other := range sorted(l.groups) {
		if aliases := l.needed[[2]string{group, other}]; len(aliases) > 0 {
			fmt.Fprintf(&head, "import{%s}from%q;", strings.Join(aliases, ","), scriptOf(other))
		} else if l.groups[group].imports[other] && other != group && other != l.chunks[l.root].group.name {
			fmt.Fprintf(&head, "import%q;", scriptOf(other))
		}
	}
	return head.String()
}

// firstImport matches an import as esbuild writes it at the start of a chunk.
var firstImport = regexp.MustCompile(`^import(?:\{([^}]*)\}from)?"\./([^"]+)";`)

// lastExport matches the exports as esbuild writes them at the end of a chunk.
var lastExport = regexp.MustCompile(`export\{([^}]*)\};?\s*$`)

// linkImports removes the imports of other groups from the text of a chunk, and returns the aliases
// of what it imports by the names in the text.
func (l *linker) linkImports(name, text string) (string, map[string]string) {
	var head strings.Builder
	renamed := map[string]string{}
	from := l.chunks[name].group.name
	exported := map[string]bool{} // names in the text that are exported: these must be declared
	if m := lastExport.FindStringSubmatch(text); m != nil {
		for item := range strings.SplitSeq(m[1], ",") {
			local, _, _ := strings.Cut(item, " as ")
			exported[local] = true
		}
	}
	for m := firstImport.FindStringSubmatch(text); m != nil; m = firstImport.FindStringSubmatch(text) {
		text = text[len(m[0]):]
		pair := [2]string{from, l.chunks[m[2]].group.name}
		if pair[0] == pair[1] {
			head.WriteString(m[0])
			continue
		}
		for item := range strings.SplitSeq(m[1], ",") {
			if item == "" {
				continue // only runs the module
			}
			export, local, found := strings.Cut(item, " as ")
			if !found {
				local = export
			}
			key := [2]string{m[2], export}
			if l.aliases[key] == "" {
				l.aliases[key] = fmt.Sprintf("$alias%d$", len(l.aliases))
			}
			if exported[local] {
				fmt.Fprintf(&head, "import{%s as %s}from%q;", l.aliases[key], local, scriptOf(pair[1]))
				continue
			}
			renamed[local] = l.aliases[key]
			if !slices.Contains(l.needed[pair], l.aliases[key]) {
				l.needed[pair] = append(l.needed[pair], l.aliases[key])
			}
		}
	}
	return head.String() + text, renamed
}

var (
	longAlias = regexp.MustCompile(`\$alias\d+\$`) // an alias before it gets its short name
	aliasName = regexp.MustCompile(`\$[\w$]*`)     // what can be an alias
)

// shorten gives the aliases short names, the shortest to those that are used most.
func (l *linker) shorten() {
	uses := map[string]int{} // also of the names that esbuild has given to others
	for _, text := range l.modules {
		for _, name := range aliasName.FindAllString(text, -1) {
			uses[name]++
		}
	}
	short := map[string]string{}
	byUse := slices.SortedFunc(maps.Values(l.aliases), func(a, b string) int {
		return cmp.Or(uses[b]-uses[a], strings.Compare(a, b))
	})
	next := 0
	for _, alias := range byUse {
		for short[alias] == "" || uses[short[alias]] > 0 {
			short[alias] = "$" + shortName(next)
			next++
		}
	}
	for name, text := range l.modules {
		l.modules[name] = longAlias.ReplaceAllStringFunc(text, func(a string) string { return short[a] })
	}
	for key, alias := range l.aliases {
		l.aliases[key] = short[alias]
	}
	for _, list := range l.needed {
		for i, alias := range list {
			list[i] = short[alias]
		}
		slices.Sort(list)
	}
}

// laterImport matches import() as esbuild writes it.
var laterImport = regexp.MustCompile(`\bimport\("\./([^"]+)"\)`)

// linkLater makes the text of a chunk import groups later, with the other files that they need.
func (l *linker) linkLater(text string) string {
	loads := false
	text = laterImport.ReplaceAllStringFunc(text, func(s string) string {
		g := l.chunks[laterImport.FindStringSubmatch(s)[1]].group
		s = fmt.Sprintf("import(%q)", scriptOf(g.name))
		if files := l.files(g); len(files) > 0 && l.chunks[loadName] != nil {
			loads = true
			s = fmt.Sprintf("$load(%s,%q)", s, strings.Join(files, " "))
		}
		return s
	})
	if loads {
		text = `import{load as $load}from"./` + loadName + `";` + text
	}
	return text
}

// files returns the files that a group needs besides its script and what every page loads.
func (l *linker) files(g *group) (files []string) {
	for _, n := range l.start(g) {
		if !n.everyPage && n != g {
			files = append(files, scriptOf(n.name))
		}
		style := "./" + n.sheet + "-" + hashPlace + ".css"
		if !n.everyPage && n.sheet != "" && !slices.Contains(files, style) {
			files = append(files, style)
		}
	}
	return files
}
