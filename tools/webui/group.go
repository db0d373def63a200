package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// esbuild makes a chunk for every combination of entry points. Small files compress badly, and each
// costs a request, so chunks become groups.
const (
	sharedBy  = 6    // a chunk that at least this many pages need at their start is loaded with every page
	smallSize = 3072 // a group with fewer bytes of chunks and style sheets is joined with another one
)

// group is a script of the build.
type group struct {
	name      string
	chunks    []string
	script    string
	sheet     string          // name of its style sheet, which several groups may have; "" if it has none
	imports   map[string]bool // names of the groups that it needs, also its own
	everyPage bool            // loaded with every page
}

// makeGroups puts the chunks into groups. The chunks that the root needs are a group. Each other
// entry point is a group of its own, and so are the chunks that the same entry points need. If
// these are small, they go to the group of what is needed by the same entry points that the root
// imports, or to the group of a chunk that they import, or to what every page loads.
func (b *bundle) makeGroups() error {
	importers := b.countUsers()
	isPage := func(user string) bool {
		return slices.Contains(importers[user], b.root) && strings.HasPrefix(b.chunks[user].entry, pageFolder)
	}
	atStart := func(c *chunk) (n int) {
		for _, user := range c.users {
			if isPage(user) {
				n++
			}
		}
		return n
	}
	keys := map[string]string{}
	assign := func(key func(c *chunk, isSmall func(key string) bool) string) {
		sizes := map[string]int{}
		for name, c := range b.chunks {
			sizes[keys[name]] += len(c.text)
		}
		for _, s := range b.sheets {
			sizes[keys[s.chunk]] += len(s.text)
		}
		isSmall := func(key string) bool { return key == "" || strings.Contains(key, " ") && sizes[key] < smallSize }
		assigned := maps.Clone(keys)
		for name, c := range b.chunks {
			if isSmall(keys[name]) {
				assigned[name] = key(c, isSmall)
			}
		}
		keys = assigned
	}
	const shared = "shared"
	assign(func(c *chunk, _ func(string) bool) string {
		switch {
		case slices.Contains(c.users, b.root):
			return b.root
		case c.entry == "" && atStart(c) >= sharedBy:
			return shared
		}
		return strings.Join(c.users, " ")
	})
	assign(func(c *chunk, _ func(string) bool) string {
		return strings.Join(b.rootImports(c.users, importers), " ")
	})
	assign(func(c *chunk, isSmall func(string) bool) string {
		for _, i := range c.imports {
			if k := keys[i]; k != shared && k != b.root && !isSmall(k) {
				return k // what needs the chunk loads this group anyway
			}
		}
		return shared
	})

	for _, name := range sorted(b.chunks) {
		k, c := keys[name], b.chunks[name]
		groupName := shared
		if k != shared {
			groupName = b.groupName(k)
		}
		if b.groups[groupName] == nil {
			b.groups[groupName] = &group{name: groupName, imports: map[string]bool{}, everyPage: k == shared || k == b.root}
		}
		c.group = b.groups[groupName]
		c.group.chunks = append(c.group.chunks, name)
		if keys[c.group.chunks[0]] != k {
			return fmt.Errorf("%s: another part of the web UI has the same name; rename the source", c.entry)
		}
	}
	for _, c := range b.chunks {
		for _, i := range c.imports {
			c.group.imports[b.chunks[i].group.name] = true
		}
	}
	b.makeSheets(isPage, importers)
	return b.checkCycles()
}

// makeSheets joins the style sheets of each group. Groups that no page loads at its start share a
// style sheet if the same pages load them.
func (b *bundle) makeSheets(isPage func(string) bool, importers map[string][]string) {
	atStart := map[*group]bool{}
	for name, c := range b.chunks {
		if isPage(name) {
			for _, g := range b.start(c.group) {
				atStart[g] = true
			}
		}
	}
	for _, s := range b.sheets {
		c := b.chunks[s.chunk]
		g := c.group
		switch {
		case g.sheet != "":
		case g.everyPage || atStart[g]:
			g.sheet = g.name
		default:
			g.sheet = b.groupName(strings.Join(b.rootImports(c.users, importers), " ")) + "-later"
		}
		b.styles[g.sheet] += s.text
	}
}

// countUsers notes the entry points that need each chunk, without those that can only be imported
// when another one has been loaded. It returns for each entry point the users of the chunks that
// import it.
func (b *bundle) countUsers() (importers map[string][]string) {
	importers = map[string][]string{}
	for _, name := range sorted(b.chunks) {
		if b.chunks[name].entry != "" {
			walk(name, func(n string) []string { return b.chunks[n].imports }, func(n string) {
				b.chunks[n].users = append(b.chunks[n].users, name)
			})
		}
	}
	for _, c := range b.chunks {
		for _, to := range c.later {
			importers[to] = append(importers[to], c.users...)
		}
	}
	for _, c := range b.chunks {
		for _, user := range slices.Clone(c.users) {
			others := slices.DeleteFunc(slices.Clone(c.users), func(u string) bool { return u == user })
			if user != b.root && !slices.ContainsFunc(importers[user], func(u string) bool { return !slices.Contains(others, u) }) {
				c.users = others
			}
		}
	}
	return importers
}

// rootImports returns the entry points that the root imports later and that lead to the users.
func (b *bundle) rootImports(users []string, importers map[string][]string) []string {
	found := map[string]bool{}
	for _, u := range users {
		walk(u, func(n string) []string {
			if slices.Contains(importers[n], b.root) {
				found[n] = true
				return nil
			}
			return importers[n]
		}, func(string) {})
	}
	return sorted(found)
}

// groupName returns the name of a group: the names of the sources that use it, or of their folders.
func (b *bundle) groupName(users string) string {
	var names []string
	for user := range strings.SplitSeq(users, " ") {
		source := b.chunks[user].entry
		name := strings.TrimSuffix(path.Base(source), path.Ext(source))
		if name == "index" {
			name = path.Base(path.Dir(source))
		}
		names = append(names, name)
	}
	return strings.Join(names, "-")
}

// checkCycles returns an error if groups need each other: a module would run before what it needs.
func (b *bundle) checkCycles() error {
	for name, g := range b.groups {
		for _, other := range b.start(g) {
			if other != g && other.imports[name] {
				return fmt.Errorf("parts %s and %s of the web UI need each other; change smallSize in tools/webui/group.go", name, other.name)
			}
		}
	}
	return nil
}

// start returns a group and those that it needs.
func (b *bundle) start(g *group) (list []*group) {
	walk(g.name, func(n string) []string { return sorted(b.groups[n].imports) }, func(n string) { list = append(list, b.groups[n]) })
	return list
}
