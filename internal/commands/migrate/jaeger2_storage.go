package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// backend is a storage backend of Jaeger 2. Here, a store is an exporter.
type backend struct {
	name     string
	typ      string // in Jaeger: badger, elasticsearch, ...
	id       string // of the exporter
	settings *block // of the exporter
	placed   bool   // it has an exporter in the section exporters
	archive  bool   // it stores archived traces
}

// storeTypes are the backends with an equivalent exporter, and its type. All others are databases,
// which the `disk` exporter replaces.
var storeTypes = map[string]string{"memory": "memory", "badger": "disk", "grpc": "grpc", "clickhouse": "clickhouse"}

// readBackends reads the backends of all extensions jaeger_storage and drops these extensions.
func (m *jaeger2) readBackends() {
	for _, id := range m.doc.componentsOf(extensions, "jaeger_storage") {
		storage := m.doc.root.block(extensions, id)
		all := storage.block("backends")
		for _, name := range all.keys() {
			if b := all.block(name); len(b.keys()) > 0 {
				m.addBackend(name, b.keys()[0], b.block(b.keys()[0]))
			}
		}
		for _, typ := range storage.keys() { // in the first releases, types contained names
			if b := storage.block(typ); typ != "backends" && typ != "metric_backends" {
				for _, name := range b.keys() {
					m.addBackend(name, typ, b.block(name))
				}
			}
		}
	}
	m.nameBackends()
	for _, id := range m.doc.componentsOf(extensions, "jaeger_storage") {
		all := m.doc.root.block(extensions)
		at := all.index(id)
		if all.has(id, "metric_backends") {
			all.noteAt(at, dropped, "metric_backends: built in: call rates, errors and durations are calculated from the "+
				"stored spans and served at /api/metrics")
			at += 2
		}
		all.remove(id)
		all.noteAt(at, changed, "%s: stores are exporters: %s", id, m.list())
		m.doc.unlistComponent(extensions, id)
	}
}

func (m *jaeger2) addBackend(name, typ string, settings *block) {
	if settings == nil {
		settings = &block{m.doc, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
	}
	settings.node.Style &^= yaml.FlowStyle
	m.backends[name] = &backend{name: name, typ: typ, settings: settings}
	if !slices.Contains(m.order, name) {
		m.order = append(m.order, name)
	}
}

// nameBackends gives each backend the id of its exporter: the type, and the name if there are
// several backends of that type.
func (m *jaeger2) nameBackends() {
	count := map[string]int{}
	for _, b := range m.backends {
		count[b.storeType()]++
	}
	for _, b := range m.backends {
		b.id = b.storeType()
		if count[b.id] > 1 {
			b.id += "/" + strings.Join(strings.Fields(b.name), "_")
		}
	}
}

func (b *backend) storeType() string {
	if typ, ok := storeTypes[b.typ]; ok {
		return typ
	}
	return "disk"
}

// list describes where all backends are now.
func (m *jaeger2) list() string {
	var parts []string
	for _, name := range m.order {
		parts = append(parts, name+" is "+m.backends[name].id)
	}
	return strings.Join(parts, ", ")
}

// storageExporters replaces the exporters that write to a backend with the store itself.
func (m *jaeger2) storageExporters() {
	for _, id := range m.doc.componentsOf(exporters, "jaeger_storage_exporter") {
		all := m.doc.root.block(exporters)
		from := all.block(id)
		b := m.backends[from.text("trace_storage")]
		if b == nil {
			all.note(decide, id, "trace_storage names no backend of jaeger_storage; use a store such as disk instead")
			continue
		}
		m.moveDelivery(from, b)
		if b.placed {
			m.doc.dropComponent(exporters, id, "the store is %s, which is listed already", b.id)
			continue
		}
		b.placed = true
		from.remove("trace_storage")
		all.setNode(id, b.settings.node)
		m.doc.renameComponent(exporters, id, b.id)
	}
}

// storageWriters replaces connectors that write to a backend with the store itself, and drops the
// pipelines that get the spans that the backend refuses.
func (m *jaeger2) storageWriters() {
	pipelines := m.doc.root.block("service", "pipelines")
	for _, id := range m.doc.componentsOf(connectors, "jaeger_storage_writer") {
		from := m.doc.root.block(connectors, id)
		b := m.backends[from.text("trace_storage")]
		if b == nil {
			continue
		}
		m.moveDelivery(from, b)
		for _, name := range pipelines.keys() {
			p := pipelines.block(name)
			p.replaceItemBy(exporters, id, b.id)
			if slices.Contains(p.texts(receivers), id) {
				m.dropListed(p)
				pipelines.drop(name, "set service.dead_letter_dir to keep batches that a next hop refuses permanently")
			}
		}
		m.doc.root.block(connectors).drop(id, "the %s exporter is the store", b.id)
	}
	if all := m.doc.root.block(connectors); m.doc.root.has(connectors) && len(all.keys()) == 0 {
		m.doc.root.drop(connectors, "stores are exporters")
	}
}

// dropListed drops the exporters that only the given pipeline lists.
func (m *jaeger2) dropListed(pipeline *block) {
	for _, id := range pipeline.texts(exporters) {
		lists := 0
		m.doc.eachList(exporters, func(b *block, key string) {
			if slices.Contains(b.texts(key), id) {
				lists++
			}
		})
		if lists == 1 {
			m.doc.root.block(exporters).drop(id, "no pipeline lists it")
		}
	}
}

// moveDelivery moves the keys for queue and retries to the store if it runs in another process.
func (m *jaeger2) moveDelivery(from *block, to *backend) {
	for _, key := range []string{"queue", "sending_queue", "retry_on_failure", "timeout"} {
		switch v := from.value(key); {
		case v == nil:
		case to.typ == "grpc" || to.typ == "clickhouse":
			here := strings.Replace(key, "queue", "sending_queue", 1)
			here = strings.Replace(here, "sending_sending_", "sending_", 1)
			to.settings.setNode(here, v)
			to.settings.note(changed, here, "%s was %s of jaeger_storage_exporter", here, key)
		default:
			to.settings.noteAt(0, dropped, "%s: a request is acknowledged when its spans are in this store", key)
		}
	}
}

// storeOf returns the id of the exporter for a backend, and whether there is one.
func (m *jaeger2) storeOf(name string) (*backend, bool) {
	b, ok := m.backends[name]
	return b, ok
}

// placeBackends translates the settings of all backends, and adds exporters for backends that had
// no jaeger_storage_exporter.
func (m *jaeger2) placeBackends() {
	for _, name := range m.order {
		b := m.backends[name]
		if !b.placed {
			m.doc.root.ensure(exporters).setNode(b.id, b.settings.node)
			m.doc.root.block(exporters).note(changed, b.id, "%s was the backend %s", b.id, name)
		}
		switch b.typ {
		case "memory":
			b.settings.drop("max_traces", "the store is limited by its size: max_bytes, 256MiB by default")
		case "badger":
			b.fromBadger()
		case "grpc":
			b.fromGRPC()
		case "clickhouse":
			b.fromClickHouse()
		default:
			m.fromDatabase(b)
		}
		if b.archive && b.storeType() == "disk" && !b.settings.has("retention", "time") {
			b.settings.ensure("retention").set("time", "0s")
			b.settings.block("retention").note(changed, "time", "archived traces have no maximum age")
		}
	}
}

// fromBadger translates the settings of badger to settings of the `disk` exporter.
func (b *backend) fromBadger() {
	s := b.settings
	if dir := firstOf(s.text("directories", "keys"), s.text("directory_key")); dir != "" {
		for _, key := range []string{"directories", "directory_key"} {
			if s.has(key) {
				s.insertAfter(key, "directory", textNode(strings.TrimRight(dir, "/")+"/tracing"))
			}
		}
		s.block("directories").remove("keys")
		s.remove("directories")
		s.remove("directory_key")
		s.remove("directory_value")
		s.note(changed, "directory", "directory was the one for keys; the store has a folder of its own there, because it does not read "+
			"the files of badger; spans in them stay readable with Jaeger until their ttl ends")
	}
	for _, key := range []string{"span_store_ttl", "ttl"} {
		ttl := firstOf(s.text("ttl", "spans"), s.text("span_store_ttl"))
		if s.has(key) && ttl != "" {
			s.insertAfter(key, "retention", yamlNode("time: 72h"))
			s.block("retention").setText("time", ttl)
			s.note(changed, "retention", "retention.time was %s", map[string]string{"ttl": "ttl.spans"}[key]+strings.TrimPrefix(key, "ttl"))
		}
		s.block(key).remove("spans")
		s.remove(key)
	}
	if s.text("ephemeral") == "true" {
		s.drop("ephemeral", "spans stay over a restart; the memory exporter is the store whose spans do not")
	}
	s.drop("ephemeral", "spans stay over a restart")
	s.drop("consistency", "spans are always synced to disk before they are acknowledged")
	s.drop("maintenance_interval", "maintenance needs no settings")
	s.drop("metrics_update_interval", "metrics need no settings")
	if s.text("read_only") == "true" {
		s.decideOn("read_only", "the store is written by this process; read it from other processes with the remote_storage extension")
	}
	s.drop("read_only", "the store is written by this process")
}

// fromGRPC translates the settings of the client of a remote storage server.
func (b *backend) fromGRPC() {
	s := b.settings
	s.rename("server", "endpoint")
	s.drop("connection-timeout", "connect_timeout is 10s by default")
	if s.text("max_recv_msg_size_mib") == "0" {
		s.drop("max_recv_msg_size_mib", "the default is 64")
	}
	if s.has("multi_tenancy") {
		if header := s.text("multi_tenancy", "header"); header != "" {
			s.insertAfter("multi_tenancy", "tenant_header", textNode(header))
			s.note(changed, "tenant_header", "tenant_header was multi_tenancy.header")
		} else {
			s.note(dropped, "multi_tenancy", "multi_tenancy: the tenant is always sent, in the header x-tenant")
		}
		for _, key := range []string{"header", "enabled"} {
			s.block("multi_tenancy").remove(key)
		}
		s.remove("multi_tenancy")
	}
	s.decideOn("header_forwarding", "only bearer tokens are forwarded, with bearer_token_propagation of the query extension")
}

// databases are the official names of databases.
var databases = map[string]string{"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch", "cassandra": "Cassandra"}

// fromDatabase replaces the settings of a database server with settings of the `disk` exporter.
func (m *jaeger2) fromDatabase(b *backend) {
	s := b.settings
	given := strings.Join(s.keys(), ", ")
	ttl := firstOf(s.text("schema", "trace_ttl"), s.text("ttl"))
	m.doc.markListed(s.node)
	s.node.Content = takeNotes(s.node)
	if given != "" {
		s.noteAt(0, dropped, "%s: a store in local files needs none of these", given)
	}
	s.set("retention", "time: 72h\nsize: 50GiB")
	if ttl != "" {
		s.block("retention").setText("time", ttl)
		s.block("retention").note(changed, "time", "time was the ttl of %s", b.typ)
	} else if b.archive {
		s.block("retention").remove("time")
	}
	name := firstOf(databases[b.typ], b.typ)
	m.doc.root.block(exporters).note(decide, b.id, "the store of this program takes the place of %s: local files on a volume of this "+
		"process; set age and size below. Spans in %s stay there and age out; keep the old query service until then", name, name)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
