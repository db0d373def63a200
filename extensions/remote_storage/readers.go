package remotestorage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// readers runs reads with limits.
type readers struct {
	tenants  tenants
	timeout  time.Duration
	patterns time.Duration
	slots    chan struct{}
	memory   *pipeline.Budget
	limit    int // traces
	scanned  int // spans
	chunk    int // bytes
}

// readMemory is the memory in bytes that each read reserves before it starts, for its goroutine and
// the buffers of messages. Stores reserve more.
const readMemory = 1 << 20

var errBusy = errors.New("too many concurrent queries (max_queries)")

// read calls f for one read, and returns its error as a gRPC status. The read ends after
// query_timeout even if it is blocked by a slow client.
func (r *readers) read(ctx context.Context, f func(ctx context.Context, tenant string) error) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		return pipeline.GRPCStatus(pipeline.Overloaded(errBusy, time.Second)).Err()
	}
	tenant, err := r.tenants.of(ctx)
	if err != nil {
		return err
	}
	account, err := r.memory.Reserve(readMemory)
	if err != nil {
		return pipeline.GRPCStatus(err).Err()
	}
	defer account.Release()
	limited, cancel := context.WithTimeout(tracestore.WithAccount(ctx, account), r.timeout)
	defer cancel()
	endCall := time.AfterFunc(r.timeout, func() { server.EndCall(ctx) })
	defer endCall.Stop()
	err = f(tracestore.WithPatternLimit(limited, cancel, r.patterns), tenant)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return statusOf(err)
}

// statusOf returns the gRPC status for the error of a read. An error that is already a status is
// returned unchanged.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, pipeline.ErrQueryMemory), pipeline.IsTemporary(err):
		return pipeline.GRPCStatus(err).Err()
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// find runs a query and calls each for each trace, newest first. The condition may use fields of
// the trace. It returns the position of the next page, and sets a trailer if the result is
// incomplete.
func (r *readers) find(ctx context.Context, store tracestore.Reader, q tracestore.Query, want tracestore.Want, trailer func(metadata.MD),
	each func(*tracestore.Result) error) (next tracestore.Cursor, err error) {
	requested := q.Limit
	q.Limit = min(q.Limit, r.limit)
	q.Budget.Spans = r.scanned
	set := storequery.Select{Where: q.Where}
	q.Where = nil
	results, err := storequery.Find(ctx, store, q, set, want)
	if err != nil {
		return next, err
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return next, err
	}
	defer memory.Release()
	for res, err := range results.All {
		if err == nil && res.Spans != nil {
			err = memory.Resize(int64(res.Spans.Size()))
		}
		if err != nil {
			return next, err
		}
		if err := each(&res); err != nil {
			return next, err
		}
	}
	outcome := results.Outcome()
	switch {
	case !outcome.Complete():
		trailer(incomplete(outcome.Text()))
	case outcome.Next.Set && q.Limit < requested:
		trailer(incomplete(fmt.Sprintf("a response contains at most max_limit (%d) traces", r.limit)))
	}
	return outcome.Next, nil
}

func incomplete(reason string) metadata.MD {
	return metadata.Pairs(remotestore.IncompleteTrailer, reason)
}

// traces calls send with each piece of the traces. If parts of the traces are damaged, it sets a
// trailer, or returns a status if nothing can be read.
func traces(
	ctx context.Context, all iter.Seq2[tracestore.Trace, error], trailer func(metadata.MD), send func(*otlpdata.Batch) error,
) error {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	found := false
	for t, err := range all {
		if d := (*tracestore.DamagedError)(nil); errors.As(err, &d) {
			if !found {
				return status.Error(codes.DataLoss, d.Text())
			}
			trailer(incomplete(d.Text()))
			return nil
		}
		if err == nil {
			err = memory.Resize(int64(t.Spans.Size()))
		}
		if err != nil {
			return err
		}
		found = true
		if err := send(t.Spans); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unaryTrailer returns a function that sets a trailer of a unary call. It ignores the error for a
// call that has already ended.
func unaryTrailer(ctx context.Context) func(metadata.MD) {
	return func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) }
}

// graph reads the calls between services.
func graph(ctx context.Context, store Store, tenant string, from, to time.Time) (tracestore.Graph, error) {
	d, ok := tracestore.As[tracestore.Edges](ctx, tenant, store)
	if !ok {
		return tracestore.Graph{}, status.Error(codes.Unimplemented, "not implemented")
	}
	return d.Dependencies(ctx, tenant, from, to)
}

// links returns the calls between different services, with messaging and other calls combined,
// because existing clients support nothing else. Edges must be sorted; links are in the same order.
func links(edges []tracestore.Edge) (out []tracestore.Edge) {
	for _, e := range edges {
		if e.Parent == e.Child {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Parent == e.Parent && out[n-1].Child == e.Child {
			out[n-1].Calls += e.Calls
			continue
		}
		out = append(out, e)
	}
	return out
}

// text returns a name as valid UTF-8, which protobuf strings require.
func text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// exactEdges converts edges with all fields, for clients that support them.
func exactEdges(edges []tracestore.Edge) []remotestore.Edge {
	out := make([]remotestore.Edge, len(edges))
	for i, e := range edges {
		out[i] = remotestore.Edge(e)
	}
	return out
}

// noteMissing tells the client of a unary call if a list of names is incomplete: because there are
// more, or because of a DamagedError. It returns other errors.
func noteMissing(ctx context.Context, listed int, more bool, err error) error {
	damaged := (*tracestore.DamagedError)(nil)
	switch {
	case errors.As(err, &damaged):
		unaryTrailer(ctx)(incomplete(damaged.Text()))
		return nil
	case more && err == nil:
		unaryTrailer(ctx)(incomplete(fmt.Sprintf("names after the first %d are left out", listed)))
	}
	return err
}
