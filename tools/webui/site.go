package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// site is the build before compression.
type site struct {
	files map[string]string
	pages map[string][]string // by name of the page: the files that it needs before it shows something
}

const (
	mainSource = "src/main.tsx"
	pageFolder = "src/pages/"
	scriptTag  = `    <script type="module" src="./` + mainSource + `"></script>` + "\n"
)

// build makes the files of the web UI.
func build(ui string) (*site, error) {
	s := &site{files: map[string]string{}, pages: map[string][]string{}}
	sheets, workers, err := s.find(ui)
	if err != nil {
		return nil, err
	}
	scripts := map[string]string{} // of workers, by the names of their sources
	var inputs []string
	for _, source := range workers {
		b, err := s.addBundle(ui, source, nil, scripts)
		if err != nil {
			return nil, err
		}
		scripts[path.Base(source)] = path.Base(b.file(b.chunks[b.root].group.name, ".js"))
		inputs = append(inputs, b.inputs...)
	}
	b, err := s.addBundle(ui, mainSource, sheets, scripts)
	if err != nil {
		return nil, err
	}
	s.notePages(b)
	if s.files["THIRD_PARTY_LICENSES.txt"], err = licenses(ui, append(inputs, b.inputs...)); err != nil {
		return nil, err
	}
	return s, s.addIndex(ui, b)
}

// find adds the files in the folder public. It returns the style sheets and the sources of workers:
// worker.ts and NAME-worker.ts.
func (s *site) find(ui string) (sheets, workers []string, err error) {
	err = fs.WalkDir(os.DirFS(ui), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case strings.HasPrefix(name, "src/") && path.Ext(name) == ".css":
			sheets = append(sheets, name)
		case strings.HasPrefix(name, "src/") && strings.HasSuffix(name, "worker.ts"):
			workers = append(workers, name)
		case strings.HasPrefix(name, "public/") && !d.IsDir():
			b, err := os.ReadFile(filepath.Join(ui, name))
			s.files[strings.TrimPrefix(name, "public/")] = string(b)
			return err
		}
		return nil
	})
	return sheets, workers, err
}

// addBundle makes a bundle and adds its files.
func (s *site) addBundle(ui, entry string, sheets []string, workers map[string]string) (*bundle, error) {
	b, err := split(ui, entry, sheets)
	if err != nil {
		return nil, err
	}
	if len(sheets) > 0 {
		b.chunks[loadName] = &chunk{text: loadScript, exports: []string{"load"}, users: []string{b.root}}
	}
	if err := b.makeGroups(); err != nil {
		return nil, err
	}
	if err := b.link(ui); err != nil {
		return nil, err
	}
	if err := b.linkWorkers(workers); err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, name := range sorted(b.groups) {
		fmt.Fprintf(sum, "%q%q", name, b.groups[name].script)
	}
	for _, name := range sorted(b.styles) {
		fmt.Fprintf(sum, "%q%q", name, b.styles[name])
	}
	b.hash = hex.EncodeToString(sum.Sum(nil))[:8]
	for name, content := range b.assets {
		s.files["assets/"+name] = content
	}
	for name, g := range b.groups {
		s.files[b.file(name, ".js")] = strings.ReplaceAll(g.script, hashPlace, b.hash)
	}
	for name, text := range b.styles {
		s.files[b.file(name, ".css")] = text
	}
	return b, nil
}

// file returns the name of a file of a group. The hash is the hash of the bundle: its files load
// each other, and so the name of one is in another.
func (b *bundle) file(group, extension string) string {
	return "assets/" + group + "-" + b.hash + extension
}

// workerURL matches the address of a worker as esbuild writes it.
var workerURL = regexp.MustCompile(`new URL\("\./([^"]+)",import\.meta\.url\)`)

// linkWorkers sets the addresses of workers.
func (b *bundle) linkWorkers(scripts map[string]string) error {
	for _, g := range b.groups {
		for _, m := range workerURL.FindAllStringSubmatch(g.script, -1) {
			if scripts[m[1]] == "" {
				return fmt.Errorf("%s: not the source of a worker; name it worker.ts or NAME-worker.ts", m[1])
			}
			g.script = strings.ReplaceAll(g.script, m[0], fmt.Sprintf("new URL(%q,import.meta.url)", "./"+scripts[m[1]]))
		}
	}
	return nil
}

// addIndex adds index.html, with what every page loads, and a copy for each page, with what only
// that page loads: the browser loads it while the first script runs.
func (s *site) addIndex(ui string, b *bundle) error {
	page, err := os.ReadFile(filepath.Join(ui, "index.html"))
	if err != nil {
		return err
	}
	root := b.chunks[b.root].group
	var tags string
	for _, name := range sorted(b.assets) {
		if path.Ext(name) != fontExt {
			continue
		}
		// Loaded early: a font that comes late is not used.
		tags += fmt.Sprintf("    <link rel=\"preload\" as=\"font\" type=\"font/woff2\" crossorigin href=\"./assets/%s\">\n", name)
	}
	tags += fmt.Sprintf("    <script type=\"module\" crossorigin src=\"./%s\"></script>\n", b.file(root.name, ".js"))
	for _, name := range sorted(b.groups) {
		g := b.groups[name]
		if g.everyPage && g != root {
			tags += fmt.Sprintf("    <link rel=\"modulepreload\" crossorigin href=\"./%s\">\n", b.file(name, ".js"))
		}
		if g.everyPage && g.sheet != "" {
			tags += fmt.Sprintf("    <link rel=\"stylesheet\" crossorigin href=\"./%s\">\n", b.file(g.sheet, ".css"))
		}
	}
	before, after, found := strings.Cut(string(page), scriptTag)
	if !found {
		return errors.New("index.html: no line " + strings.TrimSpace(scriptTag))
	}
	withTags := func(tags string) string { return strings.Replace(before+after, "  </head>\n", tags+"  </head>\n", 1) }
	s.files[indexName] = withTags(tags)
	for page, files := range s.pages {
		own := tags
		for _, name := range files {
			switch {
			case s.files[name] == "" || strings.Contains(tags, name):
			case path.Ext(name) == ".css":
				own += fmt.Sprintf("    <link rel=\"stylesheet\" crossorigin href=\"./%s\">\n", name)
			default:
				own += fmt.Sprintf("    <link rel=\"modulepreload\" crossorigin href=\"./%s\">\n", name)
			}
		}
		s.files["pages/"+page+".html"] = withTags(own)
	}
	return nil
}

// notePages notes the files at the start of each page: of each source in pageFolder that the root
// imports later.
func (s *site) notePages(b *bundle) {
	for _, name := range b.chunks[b.root].group.chunks {
		for _, later := range b.chunks[name].later {
			if !strings.HasPrefix(b.chunks[later].entry, pageFolder) {
				continue
			}
			page := b.chunks[later].group
			needed := b.start(page)
			for _, g := range b.groups {
				if g.everyPage && !slices.Contains(needed, g) {
					needed = append(needed, g)
				}
			}
			var files []string
			for _, g := range needed {
				files = append(files, b.file(g.name, ".js"), b.file(g.sheet, ".css"))
			}
			s.pages[page.name] = files
		}
	}
}
