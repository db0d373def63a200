package grpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var (
	errArchiveSearch = errors.New("remote storage archive cannot be searched; read traces by id")
	errNeedsService  = errors.New("remote storage server cannot search without a service name; specify a service")
)

// errStop ends a call whose caller wants no further results.
var errStop = errors.New("stopped")

// traceReader returns the reader for the version of the server, and its capabilities. ctx must have
// the metadata of [exporter.withReadMetadata], because servers with tenancy require it even for
// capabilities.
func (e *exporter) traceReader(ctx context.Context) (traceReader, *capabilities, error) {
	c, err := e.server.capabilities(ctx)
	switch {
	case err != nil:
		return nil, nil, e.readError(ctx, err)
	case e.cfg.Archive && !c.archive:
		return nil, nil, pipeline.Permanent(errNoArchive)
	case c.version == v2Name:
		return protocolV2{e.server.conn}, c, nil
	}
	return protocolV1{e.server.conn, e.cfg.Archive}, c, nil
}

// catalogReader is like traceReader, for catalogs and dependencies.
func (e *exporter) catalogReader(ctx context.Context) (catalogReader, error) {
	if e.cfg.Archive {
		return nil, pipeline.Permanent(errArchiveSearch)
	}
	c, err := e.server.capabilities(ctx)
	if err != nil {
		return nil, e.readError(ctx, err)
	}
	if c.version == v2Name {
		return protocolV2{e.server.conn}, nil
	}
	return protocolV1{originalNames: e.server.conn}, nil
}

// readError returns the error for a failed read, which is the error of ctx if ctx has ended.
func (e *exporter) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer, delay := pipeline.HTTPStatus(err)
	code := status.Code(err)
	switch code {
	case codes.Canceled:
		err = errors.Join(context.Canceled, err)
	case codes.DeadlineExceeded: // the server ended the query, which may have a lower limit
		text := fmt.Sprintf("remote storage server %s did not finish in time; narrow the query", e.cfg.Endpoint)
		return &classified{text, context.DeadlineExceeded, err}
	}
	if text := status.Convert(err).Message(); code == codes.ResourceExhausted && strings.Contains(text, "larger than max") {
		// gRPC refused the message. Its status is omitted because retrying does not help.
		return fmt.Errorf("%w: remote storage server %s: %s; increase max_recv_msg_size_mib",
			tracestore.ErrAnswerTooLarge, e.cfg.Endpoint, text)
	}
	err = fmt.Errorf("reading from remote storage server %s: %w", e.cfg.Endpoint, err)
	switch {
	case code == codes.Unavailable:
		e.watch.suspect()
		return pipeline.Unavailable(err, delay)
	case answer == http.StatusTooManyRequests:
		return pipeline.Overloaded(err, delay)
	}
	return err
}

// Traces implements tracestore.Reader. With the standard protocols it requests one trace after the
// other, so that their order does not depend on the server.
func (e *exporter) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		if own, err := e.storeService(e.withReadMetadata(ctx, tenant)); err != nil {
			yield(tracestore.Trace{}, err)
			return
		} else if own {
			e.storeTraces(e.withReadMetadata(ctx, tenant), tenant, refs, yield)
			return
		}
		var damage tracestore.Reasons
		for _, ref := range refs {
			incomplete, err := e.trace(ctx, tenant, ref, func(b *otlpdata.Batch) error {
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
			damage.Add(tracestore.Because(tracestore.ReasonDamage, incomplete)...)
		}
		if !damage.Complete() {
			yield(tracestore.Trace{}, &tracestore.DamagedError{Reasons: damage})
		}
	}
}

// trace calls each with the pieces of a trace. incomplete describes the spans that cannot be read,
// or is "". An error of each ends the call and is returned.
func (e *exporter) trace(ctx context.Context, tenant string, ref tracestore.TraceRef, each func(*otlpdata.Batch) error) (
	incomplete string, err error,
) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx = e.withReadMetadata(ctx, tenant)
	r, _, err := e.traceReader(ctx)
	if err != nil {
		return "", err
	}
	var stopped error
	incomplete, err = r.trace(ctx, ref, func(otlp []byte) error {
		return pieces(ctx, otlp, tenant, func(id otlpdata.TraceID, b *otlpdata.Batch) error {
			if id != ref.ID {
				return fmt.Errorf("requested trace %s, received spans of trace %s", ref.ID, id)
			}
			stopped = each(b)
			return stopped
		})
	})
	if stopped != nil {
		return "", stopped
	}
	if err != nil {
		return "", e.readError(ctx, err)
	}
	return incomplete, nil
}

// pieces calls each with the spans of a message: all together, or one by one if they belong to
// several traces, which the protocol does not permit.
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
		// A malicious message may take long, because each span gets a copy of its resource.
		if err := ctx.Err(); err != nil {
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
func (e *exporter) Services(ctx context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, err error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if own, err := e.storeService(ctx); err != nil {
		return nil, false, err
	} else if own {
		list, err := askNow[storewire.Names](ctx, e, "Services", &storewire.Services{Names: q})
		return list.Names, list.More, err
	}
	l, err := e.catalogReader(ctx)
	if err != nil {
		return nil, false, err
	}
	names, incomplete, err := l.services(ctx)
	if err != nil {
		return nil, false, e.readError(ctx, err)
	}
	slices.Sort(names)
	names, more = storequery.SelectServices(slices.Compact(names), q)
	return names, more || incomplete, nil
}

// Operations implements tracestore.Catalog.
func (e *exporter) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if own, err := e.storeService(ctx); err != nil {
		return nil, false, err
	} else if own {
		list, err := askNow[storewire.OperationList](ctx, e, "Operations", &storewire.Operations{Service: service, Kind: kind, Names: q})
		return list.Operations, list.More, err
	}
	l, err := e.catalogReader(ctx)
	if err != nil {
		return nil, false, err
	}
	ops, incomplete, err := l.operations(ctx, service, kind)
	if err != nil {
		return nil, false, e.readError(ctx, err)
	}
	for i := range ops {
		if ops[i].Kind == "unspecified" { // sent by some servers
			ops[i].Kind = ""
		}
	}
	ops = slices.DeleteFunc(ops, func(op tracestore.Operation) bool { return kind != "" && op.Kind != kind })
	slices.SortFunc(ops, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	ops, more = storequery.SelectOperations(slices.Compact(ops), q)
	return ops, more || incomplete, nil
}

// Dependencies implements tracestore.Edges. Errors, durations and messaging are known only if the
// server is this program.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if own, err := e.storeService(ctx); err != nil {
		return tracestore.Graph{}, err
	} else if own {
		return askNow[tracestore.Graph](ctx, e, "Dependencies", &storewire.Window{From: from, To: to})
	}
	l, err := e.catalogReader(ctx)
	if err != nil {
		return tracestore.Graph{}, err
	}
	edges, incomplete, err := l.dependencies(ctx, from, to)
	if err != nil {
		return tracestore.Graph{}, e.readError(ctx, err)
	}
	var calls storequery.CallCounter
	for i := range edges {
		if edges[i].Calls > 0 {
			calls.AddEdge(&edges[i])
		}
	}
	return tracestore.Graph{Edges: calls.Edges(), Reasons: tracestore.Because(tracestore.ReasonDamage, incomplete)}, nil
}
