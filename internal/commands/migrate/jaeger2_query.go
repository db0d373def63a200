package migrate

import "strings"

// queries translates the query service.
func (m *jaeger2) queries() {
	for _, id := range m.doc.componentsOf(extensions, "jaeger_query") {
		to := "query" + nameOf(id)
		q := m.doc.root.ensure(extensions, id)
		m.doc.renameComponent(extensions, id, to)
		m.queryStorage(q)
		m.queryUI(q)
		q.rename("max_clock_skew_adjust", "max_clock_skew_adjustment")
		q.drop("enable_tracing", "service.telemetry.traces enables spans of the program")
		q.drop("ai", "there is no chat in the web UI")
		q.drop("otlp_proxy", "the web UI sends no spans")
		if q.text("max_trace_size") == "0" {
			q.drop("max_trace_size", "the default is 200000 spans")
		}
		q.decideOn("header_forwarding", "only bearer tokens are forwarded, with bearer_token_propagation")
		m.listener(q, "http", "16686")
		m.listener(q, "grpc", "16685")
		m.moveTenancy(q, q.block("http"), q.block("grpc"))
	}
}

// listener makes Jaeger's default address explicit: it is on all interfaces.
func (m *jaeger2) listener(b *block, key, port string) {
	m.setEndpoint(b.ensure(key), port)
}

func (m *jaeger2) setEndpoint(l *block, port string) {
	if l.text("endpoint") == "" {
		l.setText("endpoint", "0.0.0.0:"+port)
		l.note(changed, "endpoint", "the default of Jaeger; the default here is localhost:%s", port)
	}
}

// queryStorage translates the references to backends.
func (m *jaeger2) queryStorage(q *block) {
	traces := firstOf(q.text("storage", "traces"), q.text("trace_storage"))
	old := "storage"
	if q.has("trace_storage") {
		old = "trace_storage"
	}
	if b, ok := m.storeOf(traces); ok {
		q.insertAfter(old, "_storage", textNode(b.id))
	} else {
		q.note(decide, old, "storage.traces names no backend of jaeger_storage; name a store of exporters here")
	}
	m.archive(q, traces)
	q.drop("metrics_store", builtInMetrics)
	q.block("storage").drop("metrics", builtInMetrics)
	q.block("storage").remove("traces")
	q.remove("trace_storage")
	q.remove("storage")
	if at := q.index("_storage"); at >= 0 {
		q.node.Content[at].Value = "storage"
		q.note(changed, "storage", "storage was storage.traces: the store that was called %s", traces)
	}
}

const builtInMetrics = "built in: /api/metrics is calculated from the stored spans"

// archive translates the reference to the backend of archived traces.
func (m *jaeger2) archive(q *block, traces string) {
	for _, path := range [][]string{{"storage", "traces_archive"}, {"trace_storage_archive"}, {"trace_archive"}} {
		at, key := q.block(path[:len(path)-1]...), path[len(path)-1]
		name := at.text(key)
		b, ok := m.storeOf(name)
		if !ok || name == traces || q.has("archive_storage") {
			at.drop(key, "the archive must not be the store of the traces")
			continue
		}
		b.archive = true
		at.remove(key)
		q.insertAfter("_storage", "archive_storage", textNode(b.id))
		q.note(changed, "archive_storage", "archive_storage was %s", strings.Join(path, "."))
	}
}

// queryUI translates the settings of the web UI. Settings of the Jaeger UI depend on a build of it.
func (m *jaeger2) queryUI(q *block) {
	q.drop("ui_config", "settings of the Jaeger UI; the web UI in the program needs none")
	ui := q.block("ui")
	ui.rename("assets_path", "path")
	ui.drop("log_access", "requests are counted, not logged")
	if ui.has("config_file") && ui.text("path") == "" {
		ui.drop("config_file", "settings of the Jaeger UI; the web UI in the program needs none. To serve a build of the Jaeger UI "+
			"instead, set path to its folder and keep this key")
	}
}

// moveTenancy moves the settings for tenants to listeners.
func (m *jaeger2) moveTenancy(from *block, listeners ...*block) {
	v := from.value("multi_tenancy")
	if v == nil {
		return
	}
	if from.text("multi_tenancy", "enabled") == "false" {
		from.drop("multi_tenancy", "not enabled")
		return
	}
	for _, l := range listeners {
		l.setNode("tenancy", copyNode(v))
		l.note(changed, "tenancy", "tenancy was multi_tenancy")
	}
	m.tenancy = v
	m.doc.markListed(v)
	from.remove("multi_tenancy")
}

// receiverTenancy lets receivers separate tenants if the query service does. In Jaeger, the store
// reads the header, which receivers and batch pass on.
func (m *jaeger2) receiverTenancy() {
	if m.tenancy == nil {
		return
	}
	for _, id := range m.doc.root.block(receivers).keys() {
		r := m.doc.root.ensure(receivers, id)
		listeners := []*block{r}
		if protocols := r.block("protocols"); protocols != nil {
			listeners = []*block{protocols.block("grpc"), protocols.block("http"), protocols.block("thrift_http")}
		}
		for _, l := range listeners {
			if typ := typeOf(id); l == nil || typ != "otlp" && typ != "jaeger" && typ != "zipkin" {
				continue
			}
			l.setNode("tenancy", copyNode(m.tenancy))
			l.note(changed, "tenancy", "receivers read the tenant of a request")
		}
	}
}

// remoteStorage translates the servers that let other processes use a backend.
func (m *jaeger2) remoteStorage() {
	for _, id := range m.doc.componentsOf(extensions, "remote_storage") {
		s := m.doc.root.ensure(extensions, id)
		if b, ok := m.storeOf(s.text("storage")); ok {
			s.setText("storage", b.id)
			s.note(changed, "storage", "the store that %s stood for", b.name)
		}
		m.setEndpoint(s, "17271")
		m.moveTenancy(s, s)
	}
}
