package migrate

// sampling translates the extension that serves sampling strategies, and the processor that
// adaptive sampling needs.
func (m *jaeger2) sampling() {
	id := ""
	for _, old := range m.doc.componentsOf(extensions, "remote_sampling") {
		id = "sampling" + nameOf(old)
		s := m.doc.root.ensure(extensions, old)
		m.doc.renameComponent(extensions, old, id)
		if adaptive := s.block("adaptive"); adaptive != nil {
			m.samplingStore(adaptive)
		}
		if file := s.block("file"); file.has("path") && file.text("path") == "" {
			file.remove("path")
			if len(file.keys()) == 0 {
				file.set("default_sampling_probability", "0.001")
				file.note(changed, "default_sampling_probability", "the default: there is no file of strategies")
			}
		}
		for key, port := range map[string]string{"http": "5778", "grpc": "5779"} {
			if s.has(key) {
				m.listener(s, key, port)
			}
		}
	}
	for _, p := range m.doc.componentsOf(processors, "adaptive_sampling") {
		if id == "" {
			m.doc.dropComponent(processors, p, "there is no extension remote_sampling")
			continue
		}
		settings := m.doc.root.ensure(processors, p)
		settings.setText("sampling", id)
		settings.note(changed, "sampling", "the extension must be named")
	}
}

// samplingStore translates the reference of adaptive sampling to a backend.
func (m *jaeger2) samplingStore(adaptive *block) {
	name := adaptive.text("sampling_store")
	b, ok := m.storeOf(name)
	if !ok {
		adaptive.note(decide, "sampling_store", "sampling_store names no backend of jaeger_storage; name a store of exporters here")
		return
	}
	if b.storeType() == "grpc" {
		adaptive.note(decide, "sampling_store", "a store in another process cannot hold the probabilities; they are held in memory by %s",
			"the memory exporter")
		m.doc.root.ensure(exporters, "memory")
		adaptive.setText("sampling_store", "memory")
	} else {
		adaptive.setText("sampling_store", b.id)
	}
	adaptive.rename("sampling_store", "storage")
}
