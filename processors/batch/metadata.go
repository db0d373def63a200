package batch

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// metadata reads the headers by which requests are separated, and limits the number of their
// combinations.
type metadata struct {
	names []string // in lower case
	limit int      // 0: none

	mu    sync.RWMutex
	known map[otlpdata.Metadata]struct{} // combinations, if there is a limit
}

func newMetadata(c *Config) *metadata {
	if len(c.MetadataKeys) == 0 {
		return nil
	}
	m := &metadata{limit: c.MetadataLimit, known: map[otlpdata.Metadata]struct{}{}}
	for _, name := range c.MetadataKeys {
		m.names = append(m.names, strings.ToLower(name))
	}
	return m
}

// keep returns b with these headers only, and the headers. As in the OpenTelemetry Collector, other
// headers are not passed on, and a request with too many combinations is refused permanently.
func (m *metadata) keep(b *otlpdata.Batch) (*otlpdata.Batch, otlpdata.Metadata, error) {
	values := b.Meta().Metadata.Only(m.names)
	if m.limit > 0 && !m.isKnown(values) && !m.addValues(values) {
		return nil, values, pipeline.Permanent(fmt.Errorf("metadata_cardinality_limit: more than %d combinations of values of the headers %s",
			m.limit, strings.Join(m.names, ", ")))
	}
	return b.WithMetadata(values), values, nil
}

func (m *metadata) isKnown(values otlpdata.Metadata) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, known := m.known[values]
	return known
}

// addValues adds a combination. It returns false if there are too many.
func (m *metadata) addValues(values otlpdata.Metadata) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.known[values]; !known && len(m.known) >= m.limit {
		return false
	}
	m.known[values] = struct{}{}
	return true
}
