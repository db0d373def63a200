package migrate

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/app"
)

// kafkaDefault is a key of the receiver kafka whose default is another one here.
type kafkaDefault struct{ key, value string }

// kafkaDefaults writes down the Collector's defaults of the receiver kafka, so that it continues
// where the Collector has stopped.
func (c *collector) kafkaDefaults() {
	for _, id := range c.componentsOf(receivers, "kafka") {
		b := c.root.ensure(receivers, id)
		for _, d := range []kafkaDefault{{"group_id", "otel-collector"}, {"initial_offset", "latest"}} {
			if !b.has(d.key) {
				b.setText(d.key, d.value)
				b.note(changed, d.key, "the default of the Collector")
			}
		}
	}
}

// ingesterDefaults writes down the defaults of jaeger-ingester for the keys that no flag has set,
// so that the preset continues where it has stopped.
func (d *document) ingesterDefaults(edits []app.FlagEdit) {
	path := []string{receivers, "kafka"}
	for _, v := range []kafkaDefault{{"topic", "jaeger-spans"}, {"encoding", "jaeger_proto"}, {"group_id", "jaeger-ingester"}} {
		if slices.ContainsFunc(edits, func(e app.FlagEdit) bool { return slices.Equal(e.Path, below(path, v.key)) }) {
			continue
		}
		b := d.root.ensure(path...)
		b.setText(v.key, v.value)
		b.note(changed, v.key, "the default of jaeger-ingester")
	}
}
