package delivery

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Way is a successor of a component: the first processor of a pipeline, or one of its exporters.
type Way struct {
	Pipeline pipeline.ID
	To       pipeline.Consumer
}

// NewSuccessor returns the Consumer behind a receiver or processor: a fan-out of all ways.
func NewSuccessor(ways []Way, log *zap.Logger) pipeline.Consumer {
	consumers := make([]pipeline.Consumer, len(ways))
	for i, w := range ways {
		consumers[i] = w.To
	}
	return NewFanOut(consumers, log)
}

// branches is the Consumer behind the gate of a connector: a branch for each pipeline.
type branches struct {
	pipelines []pipeline.ID
	consumers []pipeline.Consumer // of pipelines
	all       pipeline.Consumer
	log       *zap.Logger
}

// NewBranches returns the Consumer behind the gate of a connector. It counts the spans that each
// pipeline gets.
func NewBranches(ways []Way, m *Metrics, connector string, log *zap.Logger) pipeline.Consumer {
	b := &branches{log: log}
	for len(ways) > 0 {
		id := ways[0].Pipeline
		n := slices.IndexFunc(ways, func(w Way) bool { return w.Pipeline != id })
		if n < 0 {
			n = len(ways)
		}
		counter := func(outcome string) prometheus.Counter {
			return m.branches.WithLabelValues(connector, id.String(), outcome)
		}
		b.pipelines = append(b.pipelines, id)
		b.consumers = append(b.consumers, &branchEdge{next: NewSuccessor(ways[:n], log),
			accepted: counter(outcomeAccepted), refused: counter(outcomeRefused)})
		ways = ways[n:]
	}
	b.all = NewFanOut(b.consumers, log)
	return b
}

// Consume passes b to all pipelines.
func (s *branches) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return s.all.Consume(ctx, b)
}

// only returns the branches of some pipelines.
func (s *branches) only(ids []pipeline.PipelineID) pipeline.Consumer {
	var some []pipeline.Consumer
	for i, id := range s.pipelines {
		if slices.Contains(ids, pipeline.PipelineID{ID: id}) {
			some = append(some, s.consumers[i])
		}
	}
	return NewFanOut(some, s.log)
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

// Refusing returns the part of the pipeline that refused a batch with err.
func (e *branchEdge) Refusing(err error) pipeline.Consumer {
	return &branchEdge{refusing(e.next, err), e.accepted, e.refused}
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
	w, err := s.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer s.gate.leave(w)
	next := w.next
	if all, ok := next.(*branches); ok { // otherwise the connector has stopped
		next = all.only(s.ids)
	}
	return next.Consume(ctx, b)
}
