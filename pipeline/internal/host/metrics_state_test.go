package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The states of components are metrics. Several pipelines with the same component have one series.
func TestStateMetrics(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Branching)
	check := func(prefix string, want ...string) {
		t.Helper()
		if got := p.Metrics(t, prefix); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
		}
	}
	degraded := func(names ...string) (lines []string) {
		for _, id := range []string{"hop exporter", "sink exporter", "sink/2 exporter", "source receiver", "source/2 receiver",
			"step processor"} {
			name, kind, _ := strings.Cut(id, " ")
			value := 0
			if slices.Contains(names, name) {
				value = 1
			}
			lines = append(lines, fmt.Sprintf(`tracing_component_degraded{component=%q,kind=%q} %d`, name, kind, value))
		}
		return lines
	}
	check("tracing_ready", "tracing_ready 1")
	check("tracing_component_degraded", degraded()...)
	w.Settings["hop"].Report(errors.New("slow"))
	w.Settings["step"].Report(errors.New("late"))
	check("tracing_ready", "tracing_ready 1")
	check("tracing_component_degraded", degraded("hop", "step")...)
	w.Settings["hop"].Report(pipeline.NotReady(errors.New("full")))
	w.Settings["step"].Report(nil)
	check("tracing_ready", "tracing_ready 0")
	check("tracing_component_degraded", degraded("hop")...)
	w.Settings["hop"].Report(nil)
	check("tracing_ready", "tracing_ready 1")
	check("tracing_component_degraded", degraded()...)
}

// A span that neither has an outcome nor belongs to a request in progress is not accounted for. The
// fake receiver reserves nothing for its requests.
func TestUnaccountedSpansMetric(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small)
	var during []string
	w.Accept = func(string, *otlpdata.Batch) error {
		during = p.Metrics(t, "tracing_pipeline_unaccounted_spans")
		return nil
	}
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(2, "a")); err != nil {
		t.Fatal(err)
	}
	if want := []string{`tracing_pipeline_unaccounted_spans{pipelines="traces"} 3`}; !slices.Equal(during, want) {
		t.Errorf("in the exporter: got %q, want %q", during, want)
	}
	if got := p.Metrics(t, "tracing_pipeline_unaccounted_spans"); !slices.Equal(got, []string{`tracing_pipeline_unaccounted_spans{pipelines="traces"} 0`}) {
		t.Errorf("afterwards: %q", got)
	}
}

// The fill level of a queue is relative to the limit that is reached first.
func TestQueueUsageMetrics(t *testing.T) {
	away := hosttest.NewNextHop(true)
	h := startHops(t, "to: away, "+fast+", sending_queue: {queue_size: 4, sizer: items, max_bytes: 1MiB}",
		map[string]*hosttest.NextHop{"away": away})
	h.send(t, "a")
	h.send(t, "b")
	for prefix, want := range map[string]string{"tracing_queue_usage_ratio": `tracing_queue_usage_ratio{component="net"} 0.5`,
		"tracing_queue_limit_bytes": `tracing_queue_limit_bytes{component="net"} 1.048576e+06`} {
		if got := h.Metrics(t, prefix); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	away.SetAway(false)
	away.Await(2)
}
