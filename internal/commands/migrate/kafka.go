package migrate

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/app"
)

// ingesterDefaults sets the keys that no flag has set to the defaults of jaeger-ingester, so that
// the preset continues where the ingester stopped.
func (d *document) ingesterDefaults(edits []app.FlagEdit) {
	path := []string{receivers, "kafka"}
	for _, v := range []struct{ key, value string }{{"topic", "jaeger-spans"}, {"encoding", "jaeger_proto"}, {"group_id", "jaeger-ingester"}} {
		if slices.ContainsFunc(edits, func(e app.FlagEdit) bool { return slices.Equal(e.Path, below(path, v.key)) }) {
			continue
		}
		b := d.root.ensure(path...)
		b.setText(v.key, v.value)
		b.note(changed, v.key, "the default of jaeger-ingester")
	}
}
