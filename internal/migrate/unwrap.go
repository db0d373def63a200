package migrate

import (
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxDocuments is the maximum number of YAML documents in a file in which a configuration is
// searched.
const maxDocuments = 100

// openDocument parses a configuration file. If it is the manifest, the values of a chart, or the
// compose file in which a configuration is embedded, the document is that configuration.
func openDocument(text string) (*document, error) {
	d, err := newDocument(text)
	switch {
	case err == nil && isConfiguration(d):
		return d, nil
	case err == nil:
		if inner := embedded(d); inner != nil {
			return inner, nil
		}
		return d, nil
	case len(text) > maxInput:
		return nil, err
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for range maxDocuments {
		var n yaml.Node
		if e := dec.Decode(&n); errors.Is(e, io.EOF) || e != nil {
			return nil, err
		}
		d, e := documentOf(&n, text)
		if e != nil {
			continue
		}
		if inner := embedded(d); inner != nil {
			return inner, nil
		}
	}
	return nil, err
}

// isConfiguration reports whether a document has the sections of the Collector.
func isConfiguration(d *document) bool {
	service := d.root.block("service")
	return service.has("pipelines") || service.has(extensions) ||
		d.root.has(receivers) && (d.root.has(exporters) || d.root.has(connectors))
}

// embedded returns the configuration in a document of another kind, or nil.
func embedded(d *document) *document {
	switch kind := d.root.text("kind"); {
	case kind == "OpenTelemetryCollector":
		return d.inner("the key spec.config of an OpenTelemetryCollector", d.root.block("spec"), "config")
	case kind == "ConfigMap":
		data := d.root.block("data")
		return d.inner("a ConfigMap", data, data.keys()...)
	case d.root.has("services"):
		configs := d.root.block("configs")
		for _, name := range configs.keys() {
			if found := d.inner("the configuration "+name+" of a compose file", configs.block(name), "content"); found != nil {
				return found
			}
		}
	}
	for _, at := range []*block{d.root, d.root.block("jaeger")} {
		if found := d.inner("the values of a chart", at, "userconfig", "config"); found != nil {
			return found
		}
	}
	return nil
}

// inner returns the configuration that is the value of one of the keys: a map, or text.
func (d *document) inner(where string, b *block, keys ...string) *document {
	for _, key := range keys {
		inner := &document{head: d.head, source: d.source}
		switch v := b.value(key); {
		case v == nil:
			continue
		case v.Kind == yaml.MappingNode:
			inner.root = &block{inner, v}
		default:
			parsed, err := newDocument(v.Value)
			if err != nil {
				continue
			}
			inner = parsed
		}
		if isConfiguration(inner) {
			inner.root.noteAt(0, changed, "this was in %s; the rest of the file is not translated", where)
			return inner
		}
	}
	return nil
}
