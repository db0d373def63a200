package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Way is a successor of a component: the first processor of a pipeline, or one of its exporters.
type Way struct {
	Pipeline pipeline.ID
	Signal   otlpdata.Signal // of the pipeline
	To       pipeline.Consumer
}

// NewSignals returns the Consumer behind a receiver, where spans and log records each have their
// own ways.
func NewSignals(ways []Way) pipeline.Consumer {
	var of [2][]Way
	for _, w := range ways {
		of[w.Signal] = append(of[w.Signal], w)
	}
	s := &signals{noWay{}, noWay{}}
	for signal, ways := range of {
		if len(ways) > 0 {
			s[signal] = NewSuccessor(ways)
		}
	}
	return s
}

// signals passes spans and log records to different Consumers, by otlpdata.Signal.
type signals [2]pipeline.Consumer

// Consume passes b on. A Gate does the same itself.
func (s *signals) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return s[b.Meta().Signal].Consume(ctx, b)
}

// noWay refuses the signal that no pipeline takes. The receiver has asked before, so a reload came
// between. When the client tries again, the receiver rejects the signal as usual.
type noWay struct{}

// Consume returns an Unavailable error.
func (noWay) Consume(_ context.Context, b *otlpdata.Batch) error {
	return errclass.Unavailable(fmt.Errorf("no pipeline takes %s since the configuration was reloaded", b.Meta().Signal.Items()), 0)
}

// NewSuccessor returns the Consumer behind a processor: the only way, or a fan-out of all ways.
func NewSuccessor(ways []Way) pipeline.Consumer {
	if len(ways) == 1 {
		return ways[0].To
	}
	f := &fanOut{}
	for _, w := range ways {
		f.branches = append(f.branches, w.To)
	}
	return f
}

// NewBranches returns the Consumer behind the gate of a connector: a fan-out with a branch for each
// pipeline. It counts the spans that each pipeline gets.
func NewBranches(ways []Way, m *Metrics, connector string) pipeline.Consumer {
	f := &fanOut{}
	for len(ways) > 0 {
		id := ways[0].Pipeline
		n := slices.IndexFunc(ways, func(w Way) bool { return w.Pipeline != id })
		if n < 0 {
			n = len(ways)
		}
		counter := func(outcome string) prometheus.Counter {
			return m.branches.WithLabelValues(connector, id.String(), outcome)
		}
		f.pipelines = append(f.pipelines, id)
		f.branches = append(f.branches, &branchEdge{next: NewSuccessor(ways[:n]),
			accepted: counter(outcomeAccepted), refused: counter(outcomeRefused)})
		ways = ways[n:]
	}
	return f
}

// branchEdge counts the spans that a connector passes to a pipeline.
type branchEdge struct {
	next              pipeline.Consumer
	accepted, refused prometheus.Counter
}

// Consume passes b to the pipeline.
func (e *branchEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	err := e.next.Consume(ctx, b)
	bad := rejected(b.Len(), err)
	e.refused.Add(float64(bad))
	e.accepted.Add(float64(b.Len() - bad))
	return err
}

// ConnectorBranches implements [pipeline.Branches] over the gate of a connector.
type ConnectorBranches struct{ *Gate }

var _ pipeline.Branches = ConnectorBranches{}

// Only returns a Consumer that passes batches to some pipelines.
func (c ConnectorBranches) Only(ids ...pipeline.PipelineID) pipeline.Consumer {
	return &selection{c.Gate, ids}
}

// selection passes batches to some of the pipelines behind a gate.
type selection struct {
	gate *Gate
	ids  []pipeline.PipelineID
}

// Consume passes b on. While the gate is closed, it waits until ctx ends.
func (s *selection) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return s.gate.consumeBy(ctx, b, func(f *fanOut) (some []pipeline.Consumer) {
		for i, id := range f.pipelines {
			if slices.Contains(s.ids, pipeline.PipelineID{ID: id}) {
				some = append(some, f.branches[i])
			}
		}
		return some
	})
}
