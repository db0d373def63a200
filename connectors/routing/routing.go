// Package routing provides the `routing` connector of the OpenTelemetry Collector, which passes
// spans to pipelines by conditions on the spans, their resource, or the request that contained
// them.
package routing

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Factory returns the factory of connectors of type routing.
func Factory() pipeline.Factory {
	return pipeline.Connector("routing", func() config { return config{ErrorMode: modePropagate} }, build).
		Doc("Passes spans to pipelines by a table of conditions.")
}

// connector distributes spans among pipelines.
type connector struct {
	routes   []route
	defaults []pipeline.PipelineID
	mode     string
	next     pipeline.Branches
	lines    *pipeline.RepeatLog
}

var (
	_ pipeline.Dropper = (*connector)(nil)
	_ pipeline.Stopper = (*connector)(nil)
)

// route is a row of the table.
type route struct {
	condition
	copies    bool
	pipelines []pipeline.PipelineID
}

func build(set pipeline.Settings, c config, next pipeline.Branches) (*connector, error) {
	out := &connector{defaults: c.DefaultPipelines, mode: c.ErrorMode, next: next, lines: pipeline.NewRepeatLog(set)}
	for i := range c.Table {
		r := &c.Table[i]
		compiled, err := r.compile(set.Logger)
		if err != nil {
			return nil, err
		}
		out.routes = append(out.routes, route{compiled, r.Action == actionCopy, r.Pipelines})
	}
	return out, nil
}

// Stop ends the log lines about conditions.
func (c *connector) Stop(context.Context) error {
	c.lines.Close()
	return nil
}

// Consume is like ConsumeDropping.
func (c *connector) Consume(ctx context.Context, b *otlpdata.Batch) error {
	_, err := c.ConsumeDropping(ctx, b)
	return err
}

// ConsumeDropping passes each span to the pipelines of its routes. Spans without a route are
// dropped.
func (c *connector) ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	parts, dropped, err := c.divide(ctx, b)
	if err != nil {
		return 0, pipeline.Permanent(err)
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = c.next.Only(p.to).Consume(ctx, p.batch) })
	}
	wg.Wait()
	return dropped, outcome(parts, errs, b.Len(), b.Len()-dropped)
}

// outcome returns the error for a batch of spans if pipelines have refused parts of it: a temporary
// error, so that the sender resends all spans, or the number of routed spans that one or several
// pipelines refused permanently.
func outcome(parts []part, errs []error, spans, routed int) error {
	var refusal error
	rejected, lost := 0, make(selection, spans)
	for i, err := range errs {
		var partial *pipeline.Partial
		switch {
		case err == nil:
			continue
		case errors.As(err, &partial):
			rejected += partial.Rejected
		case !pipeline.IsPermanent(err):
			return err
		default:
			lost.add(parts[i].spans)
		}
		refusal = err
	}
	rejected = min(rejected+lost.len(), routed)
	if refusal == nil || rejected == routed && pipeline.IsPermanent(refusal) {
		return refusal
	}
	return &pipeline.Partial{Rejected: rejected, Err: refusal}
}

// failed is called with the error of a condition, and returns the error of the batch.
func (c *connector) failed(err error) error {
	switch {
	case err == nil:
	case c.mode == modePropagate:
		return err
	case c.mode == modeIgnore:
		c.lines.Warn("condition of a route cannot be evaluated", zap.Error(err))
	}
	return nil
}

// part is what one pipeline gets of a batch.
type part struct {
	to    pipeline.PipelineID
	spans selection
	batch *otlpdata.Batch
}

// divide divides a batch among pipelines, and returns the number of spans that no pipeline gets.
func (c *connector) divide(ctx context.Context, b *otlpdata.Batch) (parts []part, dropped int, err error) {
	v := &view{batch: b}
	left := newSelection(b.Len())
	give := func(to []pipeline.PipelineID, spans selection) {
		for _, p := range to {
			i := slices.IndexFunc(parts, func(have part) bool { return have.to == p })
			if i < 0 {
				i = len(parts)
				parts = append(parts, part{to: p, spans: make(selection, b.Len())})
			}
			parts[i].spans.add(spans)
		}
	}
	for i := range c.routes {
		met, err := v.met(ctx, &c.routes[i].condition, left, c.failed)
		if err != nil {
			return nil, 0, err
		}
		give(c.routes[i].pipelines, met)
		if !c.routes[i].copies {
			left.remove(met)
		}
	}
	give(c.defaults, left)
	reached := make(selection, b.Len())
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.spans.len() == 0 })
	for i := range parts {
		reached.add(parts[i].spans)
		if parts[i].batch, err = v.part(parts[i].spans); err != nil {
			return nil, 0, err
		}
	}
	return parts, b.Len() - reached.len(), nil
}
