package migrate

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxDocuments is the maximum number of YAML documents in a file.
const maxDocuments = 100

// split parses the YAML documents of a file, and the items of a List of Kubernetes. Empty documents
// are left out.
func split(text string) (found []*document, err error) {
	if len(text) > maxInput {
		return nil, fmt.Errorf("input too large: more than %d MiB", maxInput>>20)
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF) && len(found) == 0:
			return nil, errors.New("input is empty")
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		case len(n.Content) == 1 && n.Content[0].ShortTag() == "!!null" && n.Content[0].Value == "":
			continue
		}
		d, err := documentOf(&n, text)
		if err != nil {
			return nil, err
		}
		if found = append(found, d.items()...); len(found) > maxDocuments {
			return nil, fmt.Errorf("input too large: more than %d YAML documents", maxDocuments)
		}
	}
}

// items returns the items of a List of Kubernetes, or the document.
func (d *document) items() (items []*document) {
	list := d.root.value("items")
	others := slices.DeleteFunc(d.root.keys(), func(key string) bool {
		return slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, key)
	})
	if d.root.text("kind") != "List" || len(others) > 0 || list == nil || list.Kind != yaml.SequenceNode {
		return []*document{d}
	}
	for _, n := range list.Content {
		if n.Kind != yaml.MappingNode {
			return []*document{d}
		}
		item := &document{source: d.source}
		item.root = &block{item, n}
		items = append(items, item)
	}
	return items
}

// isConfiguration reports whether a document has the sections of the Collector.
func isConfiguration(d *document) bool {
	service := d.root.block("service")
	return service.has("pipelines") || service.has(extensions) ||
		d.root.has(receivers) && (d.root.has(exporters) || d.root.has(connectors))
}

// isFragment reports whether a document has a section of the Collector: it may be one of several
// files that form a configuration.
func isFragment(d *document) bool {
	return slices.ContainsFunc([]string{receivers, processors, exporters, connectors, extensions, "service"},
		func(section string) bool { return d.root.has(section) })
}

// sectionLine matches the start of a section of the Collector in a text that is not valid YAML.
var sectionLine = regexp.MustCompile(`(?m)^["']?(receivers|processors|exporters|connectors|extensions|service)["']?[ \t]*:`)

// title describes a document that is not a configuration: its kind and name, or its keys.
func (d *document) title() string {
	if kind := d.root.text("kind"); kind != "" {
		return strings.TrimSpace(kind + " " + d.root.text("metadata", "name"))
	}
	return strings.Join(d.root.keys(), ", ")
}

// embedded returns the configurations in a document of another kind.
func embedded(d *document) (found []part) {
	switch kind := d.root.text("kind"); {
	case kind == "OpenTelemetryCollector":
		return d.inner(d.title(), d.root.block("spec"), "config")
	case kind == "ConfigMap":
		data := d.root.block("data")
		return d.inner(d.title(), data, data.keys()...)
	case d.root.has("services"):
		configs := d.root.block("configs")
		for _, name := range configs.keys() {
			for _, p := range d.inner("the configuration "+name+" of a compose file", configs.block(name), "content") {
				p.name = name
				found = append(found, p)
			}
		}
		return found
	}
	for _, at := range []*block{d.root, d.root.block("jaeger")} {
		found = append(found, d.inner("the values of a chart", at, "userconfig", "config")...)
	}
	return found
}

// inner returns the configurations among the values of the keys: maps or texts.
func (d *document) inner(where string, b *block, keys ...string) (found []part) {
	for _, key := range keys {
		v, inner := b.value(key), &document{head: d.head, source: d.source}
		switch {
		case v == nil:
			continue
		case v.Kind == yaml.MappingNode:
			inner.root = &block{inner, v}
		default:
			parsed, err := newDocument(v.Value)
			if err != nil {
				if sectionLine.MatchString(v.Value) {
					d.broken, d.taken = append(d.broken, fmt.Sprintf("%s of %s: %v", key, where, err)), append(d.taken, v)
				}
				continue
			}
			inner = parsed
		}
		switch {
		case isConfiguration(inner):
			inner.root.noteAt(0, changed, "this was the key %s of %s", key, where)
			d.taken = append(d.taken, v)
			found = append(found, part{name: firstOf(d.root.text("metadata", "name"), key), key: key, doc: inner})
		case isFragment(inner):
			d.fragments, d.taken = append(d.fragments, key+" of "+where), append(d.taken, v)
		}
	}
	if len(found) > 1 {
		for i := range found {
			found[i].name += "/" + found[i].key
		}
	}
	return found
}

// rest returns the paths of everything in a document except its configurations and its name.
func (d *document) rest() (paths []string) {
	if slices.Contains(d.taken, d.root.node) {
		return nil
	}
	for _, key := range d.root.keys() {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, key) {
			paths = append(paths, d.restBelow(key, d.root.value(key))...)
		}
	}
	return paths
}

func (d *document) restBelow(path string, n *yaml.Node) (paths []string) {
	if slices.Contains(d.taken, n) {
		return nil
	}
	if !slices.ContainsFunc(d.taken, func(taken *yaml.Node) bool { return contains(n, taken) }) {
		return []string{path}
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			paths = append(paths, d.restBelow(path+"."+n.Content[i].Value, n.Content[i+1])...)
		}
		return paths
	}
	for i, item := range n.Content {
		paths = append(paths, d.restBelow(fmt.Sprintf("%s.%d", path, i), item)...)
	}
	return paths
}

// options returns the options with which containers in a document merge several files or change
// single values.
func (d *document) options() (words []string) {
	files, next := 0, false
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for _, c := range n.Content {
			walk(c)
		}
		if n.Kind != yaml.ScalarNode {
			return
		}
		for word := range strings.FieldsSeq(n.Value) {
			if name, _, hasValue := strings.Cut(word, "="); next || name == "--config" || name == "--set" {
				if name == "--config" {
					files++
				}
				words, next = append(words, word), !next && !hasValue
			}
		}
	}
	walk(d.root.node)
	if files < 2 && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--set") }) {
		return nil
	}
	return []string{strings.Join(words, " ")}
}

func contains(n, inner *yaml.Node) bool {
	return n == inner || slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return contains(c, inner) })
}
