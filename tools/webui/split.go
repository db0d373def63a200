package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// bundle is what esbuild makes from an entry point.
type bundle struct {
	root   string // chunk of the entry point
	chunks map[string]*chunk
	groups map[string]*group
	sheets []sheet           // in the order of their rules
	styles map[string]string // text of the style sheets of the build, by name
	inputs []string          // sources, each after those that it imports
	assets map[string]string // fonts and texts, by name
	hash   string            // of all files
}

// chunk is a module that esbuild makes from the sources that the same entry points need. An entry
// point is the entry point of the bundle, or a source that others import later, with import().
type chunk struct {
	entry   string // source of the entry point, or ""
	text    string
	exports []string
	imports []string // names of the chunks that it needs
	later   []string // names of the chunks that it imports later
	users   []string // names of the chunks of entry points that need it
	group   *group
}

// sheet is a style sheet, and the chunk with the source that imports it.
type sheet struct{ chunk, text string }

// metafile is what esbuild tells about a bundle.
type metafile struct {
	Inputs map[string]struct {
		Imports []struct{ Path string }
	}
	Outputs map[string]struct {
		EntryPoint string
		Exports    []string
		Imports    []struct{ Path, Kind string }
		Inputs     map[string]struct{}
	}
}

// Fonts, and texts of other languages, have the hash of their content in their names: browsers keep
// a file that has not changed when they load another version of the UI.
const (
	fontExt = ".woff2"
	textExt = ".json"
)

// options are the options of each use of esbuild.
func options(ui string, plugins ...api.Plugin) api.BuildOptions {
	return api.BuildOptions{
		AbsWorkingDir: ui,
		Outdir:        filepath.Join(ui, "dist"), // nothing is written
		Bundle:        true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		Loader:        map[string]api.Loader{fontExt: api.LoaderFile, textExt: api.LoaderFile},
		Plugins:       plugins,

		MinifyIdentifiers: true,
		MinifySyntax:      true,
		MinifyWhitespace:  true,
	}
}

// failure returns the messages of esbuild as an error, with the positions in the sources.
func failure(r api.BuildResult) error {
	messages := slices.Concat(r.Errors, r.Warnings)
	if len(messages) == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(strings.Join(api.FormatMessages(messages, api.FormatMessagesOptions{}), "")))
}

// split bundles a source with those that it needs. The style sheets are entry points too, so that
// each has an output of its own.
func split(ui, entry string, sheets []string) (*bundle, error) {
	c, err := readClasses(ui, sheets)
	if err != nil {
		return nil, err
	}
	o := options(ui, api.Plugin{Name: "classes", Setup: c.setup}, packages(ui), addresses)
	o.EntryPoints = append([]string{entry}, sheets...)
	o.EntryNames, o.ChunkNames, o.AssetNames = "[name]-[hash]", "[name]-[hash]", "[name]-[hash]"
	o.Splitting, o.Metafile = true, true
	result := api.Build(o)
	if err := failure(result); err != nil {
		return nil, err
	}
	var meta metafile
	if err := json.Unmarshal([]byte(result.Metafile), &meta); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, f := range result.OutputFiles {
		texts[filepath.Base(f.Path)] = string(f.Contents)
	}
	b := &bundle{chunks: map[string]*chunk{}, groups: map[string]*group{}, styles: map[string]string{}, assets: map[string]string{}}
	styles, chunkOf := map[string]string{}, map[string]string{} // by source
	for file, out := range meta.Outputs {
		name := filepath.Base(file)
		switch filepath.Ext(name) {
		case ".css":
			styles[out.EntryPoint] = texts[name]
			continue
		case fontExt, textExt:
			b.assets[name] = texts[name]
			continue
		}
		c := &chunk{entry: out.EntryPoint, text: texts[name], exports: out.Exports}
		for _, i := range out.Imports {
			switch i.Kind {
			case "dynamic-import":
				c.later = append(c.later, filepath.Base(i.Path))
			case "import-statement":
				c.imports = append(c.imports, filepath.Base(i.Path))
			}
		}
		for source := range out.Inputs {
			chunkOf[source] = name
		}
		if c.entry == entry {
			b.root = name
		}
		b.chunks[name] = c
	}
	imports := func(source string) (to []string) {
		for _, i := range meta.Inputs[source].Imports {
			to = append(to, i.Path)
		}
		return to
	}
	walk(entry, imports, func(source string) {
		b.inputs = append(b.inputs, source)
		if text := styles[strings.TrimPrefix(source, enumSpace+":")]; text != "" {
			b.sheets = append(b.sheets, sheet{cmp.Or(chunkOf[source], b.root), text})
		}
	})
	return b, nil
}

// walk visits everything that can be reached from a name, each name once and after those that it
// reaches.
func walk(name string, next func(string) []string, visit func(string)) {
	seen := map[string]bool{}
	var step func(string)
	step = func(n string) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, m := range next(n) {
			step(m)
		}
		visit(n)
	}
	step(name)
}

// sorted returns the keys of a map in a fixed order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
