package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Page is a page of the configuration reference.
type Page struct {
	Name     string // file name below the folder of the reference: `configuration/receiver-otlp.md`
	Markdown string
}

// ReferencePages returns the reference of the whole configuration: an overview, which is the first
// page, and a page for each component, for the section service, for flags, and for blocks that
// several components have.
func ReferencePages(factories []pipeline.Factory) []Page {
	service := defaultService()
	r := &reference{factories: sorted(factories)}
	sections := []*section{{title: "service", file: "service", block: describe(&service), example: serviceExample,
		intro: "Settings of the whole process, and the pipelines.\n"}}
	for _, f := range r.factories {
		sections = append(sections, componentSection(f))
	}
	r.share(sections)
	pages := []Page{{indexFile, r.index()}}
	for _, s := range sections {
		pages = append(pages, Page{pageFile(s.file), r.page(s)})
	}
	pages = append(pages, Page{pageFile("flags"), flagsPage(factories)})
	if len(r.shared) > 0 {
		pages = append(pages, Page{pageFile(sharedFile), r.sharedPage()})
	}
	return pages
}

const (
	indexFile  = "configuration.md"
	sharedFile = "shared"
	written    = "<!-- Generated. -->\n"
)

func pageFile(name string) string { return "configuration/" + name + ".md" }

// reference is what all pages need.
type reference struct {
	factories []pipeline.Factory
	shared    []sharedBlock // blocks that several sections have
}

// section is a component, or the section service of a configuration.
type section struct {
	title, file, intro, example string
	block                       *blockDoc
}

func componentSection(f pipeline.Factory) *section {
	s := &section{title: f.Type() + " " + f.Kind().String(), file: f.Kind().String() + "-" + f.Type(), example: f.ExampleConfig(),
		intro: f.Summary() + "\n", block: describe(f.Defaults())}
	if len(f.Aliases()) > 0 {
		s.intro += "Also accepted as `" + strings.Join(f.Aliases(), "`, `") + "`.\n"
	}
	if address := documentation(f); address != "" {
		s.intro += fmt.Sprintf("From the OpenTelemetry Collector: [documentation](%s).\n", address)
	}
	return s
}

// page returns the page of a section.
func (r *reference) page(s *section) string {
	var w strings.Builder
	fmt.Fprintf(&w, "# %s\n\n%s\n%s", s.title, written, s.intro)
	if s.example != "" {
		fmt.Fprintf(&w, "\n```yaml\n%s```\n", s.example)
	}
	t := &table{reference: r, sharedPage: sharedFile + ".md"}
	t.keys(s.block, true)
	t.write(&w)
	return w.String()
}

// sharedBlock is a block that several sections have.
type sharedBlock struct {
	goType string // end of package and name of the Go type
	title  string
	block  *blockDoc // with the defaults that most sections have
}

// sharedBlocks are the blocks that get a section in the shared page if several components have
// them. Large blocks that components embed get one too.
var sharedBlocks = []sharedBlock{
	{goType: "pipeline/server.HTTPConfig", title: "HTTP listener"},
	{goType: "pipeline/server.GRPCConfig", title: "gRPC listener"},
	{goType: "pipeline/server.SecurityConfig", title: "Security of a listener"},
	{goType: "pipeline/server.TLSConfig", title: "TLS of a listener"},
	{goType: "pipeline/server.AuthConfig", title: "Authentication of clients"},
	{goType: "pipeline/server.TenancyConfig", title: "Tenancy"},
	{goType: "pipeline/server.RequestLimits", title: "Limits of a request"},
	{goType: "pipeline/client.HTTPConfig", title: "HTTP client"},
	{goType: "pipeline/client.GRPCConfig", title: "gRPC client"},
	{goType: "pipeline/client.GRPCSettings", title: "gRPC connection"},
	{goType: "pipeline/client.TLSConfig", title: "TLS of a client"},
	{goType: "pipeline/client.AuthConfig", title: "Credentials of a client"},
	{goType: "pipeline/client.NextHopConfig", title: "Next hop"},
	{goType: "pipeline.Delivery", title: "Delivery"},
	{goType: "pipeline.RetryConfig", title: "Retries"},
	{goType: "pipeline.QueueConfig", title: "Sending queue"},
	{goType: "internal/filter/filterconfig.MatchProperties", title: "Conditions on spans"},
	{goType: "internal/coreinternal/attraction.ActionKeyValue", title: "Changes of attributes"},
}

// minEmbedded is the number of keys from which an embedded block gets a section in the shared page.
const minEmbedded = 5

// share finds the blocks that several sections have, and their usual defaults.
func (r *reference) share(sections []*section) {
	found := map[string][]*blockDoc{}
	users := map[string]int{}
	var embedded []string
	for _, s := range sections {
		seen := map[string]bool{}
		s.block.each(func(b *blockDoc) {
			found[b.goType] = append(found[b.goType], b)
			if !seen[b.goType] {
				seen[b.goType] = true
				users[b.goType]++
			}
			for _, item := range b.items {
				if item.embedded != nil && len(item.embedded.all()) >= minEmbedded && !slices.Contains(embedded, item.embedded.goType) {
					embedded = append(embedded, item.embedded.goType)
				}
			}
		})
	}
	share := func(goType, title string) {
		if users[goType] > 1 && r.sharedAs(found[goType][0]) == nil {
			r.shared = append(r.shared, sharedBlock{goType, title, usual(found[goType])})
		}
	}
	for _, known := range sharedBlocks {
		for goType := range found {
			if strings.HasSuffix(goType, "/"+known.goType) {
				share(goType, known.title)
			}
		}
	}
	for _, goType := range embedded {
		share(goType, titleOf(goType))
	}
}

// titleOf returns a title for a Go type: `Disk client` for disk.ClientConfig.
func titleOf(goType string) string {
	name, typ, _ := strings.Cut(goType[strings.LastIndexByte(goType, '/')+1:], ".")
	return strings.ToUpper(name[:1]) + name[1:] + " " + strings.ToLower(strings.TrimSuffix(typ, "Config"))
}

// each calls visit for a block and all blocks in it.
func (b *blockDoc) each(visit func(*blockDoc)) {
	visit(b)
	for _, item := range b.items {
		switch {
		case item.embedded != nil:
			item.embedded.each(visit)
		case item.key.block != nil:
			item.key.block.each(visit)
		}
	}
}

// usual returns a block with the most frequent defaults of the given blocks, which have the same
// type. Its keys have short paths: `tls.cert_file` if all blocks are called tls, otherwise
// `cert_file`.
func usual(blocks []*blockDoc) *blockDoc {
	prefix := commonName(blocks)
	largest := blocks[0]
	counts := map[string]map[[2]string]int{} // by path: type and default
	for _, b := range blocks {
		if len(b.all()) > len(largest.all()) {
			largest = b
		}
		for _, k := range b.all() {
			path := strings.TrimPrefix(k.path, b.prefix)
			if counts[path] == nil {
				counts[path] = map[[2]string]int{}
			}
			counts[path][[2]string{k.typ, k.defaults}]++
		}
	}
	edit := func(k keyDoc) keyDoc {
		path := strings.TrimPrefix(k.path, largest.prefix)
		best := [2]string{k.typ, k.defaults}
		for value, n := range counts[path] {
			if most := counts[path][best]; n > most || n == most && slices.Compare(value[:], best[:]) < 0 {
				best = value
			}
		}
		k.path, k.typ, k.defaults = prefix+path, best[0], best[1]
		return k
	}
	return largest.rewritten(edit, func(p string) string { return prefix + strings.TrimPrefix(p, largest.prefix) })
}

// commonName returns the key of all blocks followed by a dot, or "" if their keys differ.
func commonName(blocks []*blockDoc) string {
	name := func(b *blockDoc) string {
		path := strings.TrimSuffix(b.prefix, ".")
		return path[strings.LastIndexByte(path, '.')+1:]
	}
	first := name(blocks[0])
	if first == "" || slices.ContainsFunc(blocks, func(b *blockDoc) bool { return name(b) != first }) {
		return ""
	}
	return first + "."
}

// rewritten returns a copy of a block with other keys and prefixes.
func (b *blockDoc) rewritten(edit func(keyDoc) keyDoc, prefix func(string) string) *blockDoc {
	out := &blockDoc{goType: b.goType, prefix: prefix(b.prefix)}
	for _, item := range b.items {
		if item.embedded != nil {
			item.embedded = item.embedded.rewritten(edit, prefix)
		} else {
			item.key = edit(item.key)
			if item.key.block != nil {
				item.key.block = item.key.block.rewritten(edit, prefix)
			}
		}
		out.items = append(out.items, item)
	}
	return out
}

// sharedPage returns the page of the blocks that several sections have.
func (r *reference) sharedPage() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Shared blocks\n\n%s\nBlocks of several components, whose pages list the defaults that differ.\n", written)
	for _, s := range r.shared {
		fmt.Fprintf(&w, "\n## %s\n", s.title)
		t := &table{reference: r}
		t.keys(s.block, true)
		t.write(&w)
	}
	return w.String()
}

// table is a table of keys.
type table struct {
	*reference
	sharedPage string // where shared blocks are; "" for the same page

	rows  []keyDoc
	above []string             // shared blocks whose keys are not in the table but in the same block
	seen  map[string]*blockDoc // blocks in the table, by signature
}

// keys adds the keys of a block. Shared blocks are named above the table if whole is set, otherwise
// in the row of the block.
func (t *table) keys(b *blockDoc, whole bool) {
	for _, item := range b.items {
		if item.embedded == nil {
			t.key(item.key)
			continue
		}
		s := t.sharedAs(item.embedded)
		if s == nil {
			t.keys(item.embedded, whole)
			continue
		}
		if whole {
			t.above = append(t.above, t.link(s))
		}
		t.differences(item.embedded, s.block)
	}
}

// key adds a key, and the keys below it.
func (t *table) key(k keyDoc) {
	b := k.block
	if b == nil {
		t.rows = append(t.rows, k)
		return
	}
	as, where := t.documented(b)
	if as != nil {
		k.doc += where
		t.rows = append(t.rows, k)
		t.differences(b, as)
		return
	}
	if names := t.embedded(b); len(names) > 0 {
		k.doc += " Keys: " + strings.Join(names, ", ")
		if len(names) < len(b.items) {
			k.doc += ", and those below"
		}
		k.doc += "."
	}
	t.rows = append(t.rows, k)
	if t.seen == nil {
		t.seen = map[string]*blockDoc{}
	}
	t.seen[b.signature()] = b
	t.keys(b, false)
}

// documented returns the block that already documents the keys of b, and a sentence that says
// where. It returns nil if there is none.
func (t *table) documented(b *blockDoc) (as *blockDoc, where string) {
	if s := t.sharedAs(b); s != nil {
		return s.block, " Keys: " + t.link(s) + "."
	}
	if first := t.seen[b.signature()]; first != nil && len(b.all()) > 1 {
		return first, fmt.Sprintf(" Keys as in `%s`.", strings.TrimSuffix(first.prefix, "."))
	}
	return nil, ""
}

// signature is the same for blocks with equal keys, apart from defaults.
func (b *blockDoc) signature() string {
	var s strings.Builder
	for _, k := range b.all() {
		fmt.Fprintf(&s, "%s\n%s\n%s\n", strings.TrimPrefix(k.path, b.prefix), k.typ, k.doc)
	}
	return s.String()
}

// embedded returns links to the shared blocks whose keys are directly in b.
func (t *table) embedded(b *blockDoc) (links []string) {
	for _, item := range b.items {
		if item.embedded == nil {
			continue
		}
		if s := t.sharedAs(item.embedded); s != nil {
			links = append(links, t.link(s))
		} else {
			links = append(links, t.embedded(item.embedded)...)
		}
	}
	return links
}

// differences adds the keys of b whose types or defaults differ from usual.
func (t *table) differences(b, usual *blockDoc) {
	documented := map[string]keyDoc{}
	for _, k := range usual.all() {
		documented[strings.TrimPrefix(k.path, usual.prefix)] = k
	}
	for _, k := range b.all() {
		if d := documented[strings.TrimPrefix(k.path, b.prefix)]; d.typ != k.typ || d.defaults != k.defaults {
			if k.doc == d.doc {
				k.doc = ""
			}
			t.rows = append(t.rows, k)
		}
	}
}

// sharedAs returns the shared block of the same type, or nil.
func (r *reference) sharedAs(b *blockDoc) *sharedBlock {
	i := slices.IndexFunc(r.shared, func(s sharedBlock) bool { return s.goType == b.goType })
	if i < 0 {
		return nil
	}
	return &r.shared[i]
}

func (t *table) link(s *sharedBlock) string {
	return fmt.Sprintf("[%s](%s#%s)", s.title, t.sharedPage, strings.ReplaceAll(strings.ToLower(s.title), " ", "-"))
}

// write writes the table.
func (t *table) write(w *strings.Builder) {
	switch {
	case len(t.rows) == 0 && len(t.above) == 0:
		fmt.Fprint(w, "\nNo keys.\n")
		return
	case len(t.above) > 0:
		fmt.Fprintf(w, "\nKeys: %s", strings.Join(t.above, ", "))
		if len(t.rows) > 0 {
			fmt.Fprint(w, ", and:")
		} else {
			fmt.Fprint(w, ".")
		}
		fmt.Fprintln(w)
	}
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprint(w, "\n| Key | Type, default | Meaning |\n|---|---|---|\n")
	for _, k := range t.rows {
		typ := k.typ
		if k.defaults != "" {
			typ += ", `" + cell(k.defaults) + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", k.path, typ, cell(k.doc))
	}
}

// cell escapes text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
