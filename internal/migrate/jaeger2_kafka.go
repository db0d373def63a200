package migrate

import "slices"

// kafka replaces receivers and exporters for Kafka, which this program does not have, so that the
// pipelines still begin and end somewhere.
func (m *jaeger2) kafka() {
	for _, id := range m.doc.componentsOf(receivers, "kafka") {
		all := m.doc.root.block(receivers)
		all.note(decide, id, "%s: nothing is read from Kafka. Let collectors send to this process over OTLP, with a queue on disk in front of "+
			"the connection, which takes the place of the topic: exporter otlp with sending_queue: {storage: disk}", id)
		all.remove(id)
		if m.replaceIn(receivers, id, "otlp") && !all.has("otlp") {
			all.set("otlp", "protocols:\n  grpc:\n    endpoint: localhost:4317\n  http:\n    endpoint: localhost:4318\n")
		}
	}
	for _, id := range m.doc.componentsOf(exporters, "kafka") {
		all := m.doc.root.block(exporters)
		all.note(decide, id, "%s: nothing is written to Kafka. disk stores the spans in this process instead. To send them to another one, use "+
			"the exporter otlp with sending_queue: {storage: disk}; the queue takes the place of the topic", id)
		all.remove(id)
		if m.replaceIn(exporters, id, "disk") && !all.has("disk") {
			m.doc.root.ensure(exporters, "disk")
		}
	}
}

// replaceIn removes a component from all pipelines. Pipelines that have no other one of its kind
// get another component instead; replaceIn reports whether there are any.
func (m *jaeger2) replaceIn(section, id, by string) (replaced bool) {
	m.doc.eachList(section, func(b *block, key string) {
		switch items := b.texts(key); {
		case !slices.Contains(items, id):
		case len(items) > 1:
			b.dropItem(key, id)
			b.note(dropped, key, "%s", id)
		default:
			b.replaceItemBy(key, id, by)
			b.note(changed, key, "%s takes the place of %s", by, id)
			replaced = true
		}
	})
	return replaced
}
