package grpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var (
	errArchiveByID  = errors.New("the archive of a remote store can be read by trace ids only")
	errNeedsService = errors.New("the remote store finds traces of a service only: name one")
)

// errStop ends a call whose caller wants no more.
var errStop = errors.New("stopped")

// reader returns what reads spans of the other side, and its capabilities. ctx says who asks, see [exporter.reading]: servers with tenants
// answer nobody else, not even what they can do. So it is with lister.
func (e *exporter) reader(ctx context.Context) (spansReader, *capabilities, error) {
	c, err := e.peer.capabilities(ctx)
	switch {
	case err != nil:
		return nil, nil, e.failed(ctx, err)
	case e.cfg.Archive && !c.archive:
		return nil, nil, pipeline.Permanent(errNoArchive)
	case c.version == v2Name:
		return wireV2{e.peer.conn}, c, nil
	}
	return wireV1{e.peer.conn, e.cfg.Archive}, c, nil
}

func (e *exporter) lister(ctx context.Context) (lister, error) {
	if e.cfg.Archive {
		return nil, pipeline.Permanent(errArchiveByID)
	}
	c, err := e.peer.capabilities(ctx)
	if err != nil {
		return nil, e.failed(ctx, err)
	}
	if c.version == v2Name {
		return wireV2{e.peer.conn}, nil
	}
	return wireV1{field: e.peer.conn}, nil
}

// failed is the error of a read. That of a context which has ended is that of the context.
func (e *exporter) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch status.Code(err) {
	case codes.Canceled:
		err = errors.Join(context.Canceled, err)
	case codes.DeadlineExceeded:
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return fmt.Errorf("reading the remote store at %s: %w", e.cfg.Endpoint, err)
}

// Traces implements tracestore.Reader: it asks for one trace after the other, which keeps their order whatever the other side does.
func (e *exporter) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			err := e.trace(ctx, tenant, ref, func(b *otlpdata.Batch) error {
				if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, nil) {
					return errStop
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(tracestore.Trace{}, err)
				return
			}
		}
	}
}

// trace gives the pieces of a trace to each, whose error ends it and is returned.
func (e *exporter) trace(ctx context.Context, tenant string, ref tracestore.TraceRef, each func(*otlpdata.Batch) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = e.reading(ctx, tenant)
	r, _, err := e.reader(ctx)
	if err != nil {
		return err
	}
	var stopped error
	err = r.trace(ctx, ref, func(otlp []byte) error {
		return pieces(ctx, otlp, tenant, func(id otlpdata.TraceID, b *otlpdata.Batch) error {
			if id != ref.ID {
				return fmt.Errorf("asked for trace %s, it sent spans of trace %s", ref.ID, id)
			}
			stopped = each(b)
			return stopped
		})
	})
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return e.failed(ctx, err)
	}
	return nil
}

// pieces gives the spans of a message to each: all at once, or one by one where they are of several traces, which the protocol excludes.
func pieces(ctx context.Context, otlp []byte, tenant string, each func(otlpdata.TraceID, *otlpdata.Batch) error) error {
	b, err := batch(otlp, tenant)
	if err != nil || b.Len() == 0 {
		return err
	}
	var first otlpdata.TraceID
	spans, several := 0, false
	if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if spans == 0 {
			first = s.TraceID
		}
		spans++
		several = several || s.TraceID != first
		return nil
	}); err != nil {
		return err
	}
	if !several {
		return each(first, b)
	}
	return tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if err := ctx.Err(); err != nil { // every span gets a copy of its resource: a message may be made to take long
			return err
		}
		one, err := batch(otlpdata.AppendResourceSpans(nil, s.Resource, s.Scope, s.Raw), tenant)
		if err != nil {
			return err
		}
		return each(s.TraceID, one)
	})
}

// Services implements tracestore.Catalog.
func (e *exporter) Services(ctx context.Context, tenant string) ([]string, error) {
	ctx = e.reading(ctx, tenant)
	l, err := e.lister(ctx)
	if err != nil {
		return nil, err
	}
	names, err := l.services(ctx)
	if err != nil {
		return nil, e.failed(ctx, err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Operations implements tracestore.Catalog.
func (e *exporter) Operations(ctx context.Context, tenant, service, kind string) ([]tracestore.Operation, error) {
	ctx = e.reading(ctx, tenant)
	l, err := e.lister(ctx)
	if err != nil {
		return nil, err
	}
	ops, err := l.operations(ctx, service, kind)
	if err != nil {
		return nil, e.failed(ctx, err)
	}
	for i := range ops {
		if ops[i].Kind == "unspecified" { // so some servers call no kind
			ops[i].Kind = ""
		}
	}
	ops = slices.DeleteFunc(ops, func(op tracestore.Operation) bool { return kind != "" && op.Kind != kind })
	slices.SortFunc(ops, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(ops), nil
}

// Dependencies implements tracestore.Dependencies. Errors, durations and what is messaging only stores of ours can tell.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	ctx = e.reading(ctx, tenant)
	l, err := e.lister(ctx)
	if err != nil {
		return tracestore.Graph{}, err
	}
	edges, incomplete, err := l.dependencies(ctx, from, to)
	if err != nil {
		return tracestore.Graph{}, e.failed(ctx, err)
	}
	var calls storequery.CallCounter
	for i := range edges {
		if edges[i].Calls > 0 {
			calls.AddEdge(&edges[i])
		}
	}
	return tracestore.Graph{Edges: calls.Edges(), Complete: incomplete == "", Reason: incomplete}, nil
}
