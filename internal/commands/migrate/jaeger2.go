package migrate

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// fromJaeger2 translates Jaeger 2's additions to a Collector configuration: storage, query service,
// sampling, and components for its own tests.
func fromJaeger2(d *document) {
	m := &jaeger2{doc: d, backends: map[string]*backend{}}
	m.readBackends()
	m.storageExporters()
	m.storageWriters()
	m.queries()
	m.remoteStorage()
	m.receiverTenancy()
	m.sampling()
	m.placeBackends()
	for _, id := range d.componentsOf(extensions, "jaeger_mcp") {
		d.dropComponent(extensions, id, "there is no MCP server; its clients can use the HTTP API of the query extension")
	}
	for _, id := range d.componentsOf(extensions, "sigv4auth") {
		d.dropComponent(extensions, id, "signs requests to databases, and there is no database")
	}
	for _, id := range d.componentsOf(extensions, "storage_cleaner") {
		d.dropComponent(extensions, id, "used by tests of Jaeger only")
	}
	m.dropEmptyPipelines()
}

// jaeger2 is the state of a translation.
type jaeger2 struct {
	doc      *document
	backends map[string]*backend // by name
	order    []string            // their names in the order of the file
	tenancy  *yaml.Node          // settings of listeners that separate tenants; nil if there are none
}

// isJaeger2 reports whether a document has a component that only Jaeger 2 has.
func isJaeger2(d *document) bool {
	for _, section := range []string{exporters, connectors, extensions} {
		for _, id := range d.root.block(section).keys() {
			if typ := typeOf(id); strings.HasPrefix(typ, "jaeger_") || typ == "remote_sampling" {
				return true
			}
		}
	}
	return false
}

// dropEmptyPipelines drops pipelines from nop to nop, which exist only because the Collector
// requires a pipeline.
func (m *jaeger2) dropEmptyPipelines() {
	pipelines := m.doc.root.block("service", "pipelines")
	for _, name := range pipelines.keys() {
		from, to := pipelines.texts(name, receivers), pipelines.texts(name, exporters)
		if len(from) == 1 && typeOf(from[0]) == "nop" && len(to) == 1 && typeOf(to[0]) == "nop" {
			pipelines.drop(name, "without spans; a query service needs no pipeline")
		}
	}
	for _, section := range []string{receivers, processors, exporters} {
		m.dropUnused(section)
	}
}

// dropUnused drops components of the types nop and batch that no pipeline lists.
func (m *jaeger2) dropUnused(section string) {
	for _, id := range m.doc.root.block(section).keys() {
		used := false
		m.doc.eachList(section, func(b *block, key string) {
			for _, item := range b.texts(key) {
				used = used || item == id
			}
		})
		if typ := typeOf(id); !used && (typ == "nop" || typ == "batch") {
			m.doc.root.block(section).drop(id, "no pipeline lists it")
		}
	}
}
