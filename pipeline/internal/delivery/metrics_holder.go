package delivery

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
)

// holderMetrics collects the number of spans that processors hold. A component has several holders
// if several pipelines list it.
type holderMetrics struct {
	desc *prometheus.Desc

	mu      sync.Mutex
	holders map[Component][]pipeline.Holder
}

func newHolderMetrics() *holderMetrics {
	return &holderMetrics{holders: map[Component][]pipeline.Holder{},
		desc: prometheus.NewDesc("tracing_held_spans", "Spans that the processor has accepted and not passed on yet.",
			[]string{"component"}, nil)}
}

func (m *holderMetrics) add(c Component, h pipeline.Holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders[c] = append(m.holders[c], h)
}

func (m *holderMetrics) remove(c Component, h pipeline.Holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders[c] = slices.DeleteFunc(m.holders[c], func(other pipeline.Holder) bool { return other == h })
	if len(m.holders[c]) == 0 {
		delete(m.holders, c)
	}
}

// spans returns the number of held spans of each component.
func (m *holderMetrics) spans() map[Component]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make(map[Component]int64, len(m.holders))
	for c, holders := range m.holders {
		for _, h := range holders {
			held[c] += h.Held()
		}
	}
	return held
}

// Describe describes the metric.
func (m *holderMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect asks the holders.
func (m *holderMetrics) Collect(ch chan<- prometheus.Metric) {
	for c, held := range m.spans() {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(held), c.ID)
	}
}
