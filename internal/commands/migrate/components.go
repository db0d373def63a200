package migrate

import "strings"

// Sections of a configuration file, the same in Collector and Jaeger 2 files.
const (
	receivers  = "receivers"
	processors = "processors"
	exporters  = "exporters"
	connectors = "connectors"
	extensions = "extensions"
)

// typeOf returns the type of a component id: otlp of otlp/internal.
func typeOf(id string) string {
	typ, _, _ := strings.Cut(id, "/")
	return typ
}

// nameOf returns the name of a component id with its slash: /internal of otlp/internal, or "".
func nameOf(id string) string { return strings.TrimPrefix(id, typeOf(id)) }

// componentsOf returns the ids of the components of a type in a section.
func (d *document) componentsOf(section, typ string) (ids []string) {
	for _, id := range d.root.block(section).keys() {
		if typeOf(id) == typ {
			ids = append(ids, id)
		}
	}
	return ids
}

// eachList calls f for the lists of service that can name components of a section: extensions, or
// the section's list of every pipeline.
func (d *document) eachList(section string, f func(b *block, key string)) {
	service := d.root.block("service")
	if section == extensions {
		f(service, extensions)
		return
	}
	pipelines := service.block("pipelines")
	for _, name := range pipelines.keys() {
		if p := pipelines.block(name); p != nil {
			f(p, section)
		}
	}
}

// renameComponent gives a component another id, in its section and in all lists.
func (d *document) renameComponent(section, id, to string) {
	d.root.block(section).rename(id, to)
	d.eachList(section, func(b *block, key string) {
		if b.replaceItemBy(key, id, to) {
			b.note(changed, key, "%s was %s", to, id)
		}
	})
}

// addExtension adds an extension and lists it, unless it exists. It returns its settings.
func (d *document) addExtension(id string) *block {
	b := d.root.ensure(extensions, id)
	d.root.ensure("service").addItem(extensions, id)
	return b
}

// dropComponent removes a component from its section, with a note there, and from all lists.
func (d *document) dropComponent(section, id, format string, args ...any) {
	d.root.block(section).drop(id, format, args...)
	d.unlistComponent(section, id)
}

// unlistComponent removes a component from all lists, each with a note.
func (d *document) unlistComponent(section, id string) {
	d.eachList(section, func(b *block, key string) {
		if b.dropItem(key, id) {
			b.note(dropped, key, "%s", id)
		}
	})
}
