package main

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
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

// linker makes the script of each group from its chunks.
type linker struct {
	*bundle
	modules map[string]string      // what esbuild reads, by name: chunks, groups, and stubs of groups
	aliases map[[2]string]string   // by chunk and export: the name of the export in its group
	needed  map[[2]string][]string // by group and other group: aliases that it needs
}

// link makes the scripts of the groups.
func (b *bundle) link(ui string) error {
	l := &linker{b, map[string]string{}, map[[2]string]string{}, map[[2]string][]string{}}
	for _, name := range sorted(b.chunks) {
		l.modules[name] = l.linkImports(b.chunks[name].group.name, l.linkLater(b.chunks[name].text))
	}
	for pair, aliases := range l.needed {
		l.modules[stub(pair)] = fmt.Sprintf("export {%s} from %q", strings.Join(aliases, ","), scriptOf(pair[1]))
	}
	o := options(ui, api.Plugin{Name: "groups", Setup: l.setup})
	for _, g := range sorted(b.groups) {
		o.EntryPoints = append(o.EntryPoints, g)
		for _, name := range b.groups[g].chunks {
			l.modules[g] += fmt.Sprintf("export {%s} from %q\n", strings.Join(l.exports(name), ","), "./"+name)
		}
	}
	result := api.Build(o)
	for _, f := range result.OutputFiles {
		b.groups[strings.TrimSuffix(path.Base(f.Path), ".js")].script = string(f.Contents)
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

// stub is the name of the module with what a group needs of another one.
func stub(pair [2]string) string { return pair[0] + "<" + pair[1] }

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

// firstImport matches an import as esbuild writes it at the start of a chunk.
var firstImport = regexp.MustCompile(`^import(?:\{([^}]*)\}from)?"\./([^"]+)";`)

// linkImports makes the text of a chunk import the exports of other groups by their aliases.
func (l *linker) linkImports(from, text string) string {
	var head strings.Builder
	for m := firstImport.FindStringSubmatch(text); m != nil; m = firstImport.FindStringSubmatch(text) {
		text = text[len(m[0]):]
		pair := [2]string{from, l.chunks[m[2]].group.name}
		if pair[0] == pair[1] {
			head.WriteString(m[0])
			continue
		}
		var list []string
		needed := l.needed[pair]
		for item := range strings.SplitSeq(m[1], ",") {
			if item == "" {
				continue // only runs the module
			}
			export, local, renamed := strings.Cut(item, " as ")
			if !renamed {
				local = export
			}
			alias := l.alias(m[2], export)
			list = append(list, alias+" as "+local)
			if !slices.Contains(needed, alias) {
				needed = append(needed, alias)
			}
		}
		l.needed[pair] = needed
		fmt.Fprintf(&head, "import{%s}from%q;", strings.Join(list, ","), stub(pair))
	}
	return head.String() + text
}

// alias returns the name of an export of a chunk in its group.
func (l *linker) alias(name, export string) string {
	key := [2]string{name, export}
	if l.aliases[key] == "" {
		g := l.chunks[name].group
		l.aliases[key] = "$" + strconv.FormatInt(int64(g.aliases), 36)
		g.aliases++
	}
	return l.aliases[key]
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
		if !n.everyPage && n.style != "" {
			files = append(files, "./"+n.name+"-"+hashPlace+".css")
		}
	}
	return files
}
