package config

import "github.com/tracing-backend/tracing/pipeline"

// warnHolders warns about pipelines whose exporters keep acknowledged spans on disk behind a
// processor that acknowledges them earlier.
func (l *loader) warnHolders() {
	for _, p := range l.config.Pipelines {
		h := p.Holder()
		if h == nil {
			continue
		}
		for _, e := range l.config.ExportersBehind(p) {
			if d, ok := e.Value.(pipeline.DurableConfig); ok && d.KeepsOnDisk() {
				path := []string{"service", "pipelines", p.ID.String()}
				l.warn(l.tree.KeyPos(path...), path, "%s acknowledges spans and then holds them in memory: if the process is killed, "+
					"these are lost, although %s keeps spans on disk", h.Key, e.Key)
				break
			}
		}
	}
}
