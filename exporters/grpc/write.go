package grpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

var errNoArchive = errors.New("remote storage server has no archive")

// Consume makes one attempt to write b. If one of several messages fails temporarily, the error
// applies to all spans. Spans that were already stored are then resent; stores return duplicates
// once.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	err := e.write(e.withTenant(ctx, b.Meta().Tenant), b)
	var partial *pipeline.Partial
	if err != nil && !errors.As(err, &partial) {
		err = fmt.Errorf("writing to remote storage server %s: %w", e.cfg.Endpoint, err)
	}
	return e.nextHop.Record(ctx, err)
}

func (e *exporter) write(ctx context.Context, b *otlpdata.Batch) error {
	if e.writer != nil {
		return e.export(ctx, e.writer, b)
	}
	c, err := e.server.capabilities(ctx)
	switch {
	case err != nil:
		return err
	case e.cfg.Archive && !c.archive:
		return pipeline.Permanent(errNoArchive)
	case e.cfg.Archive:
		return e.writeSpans(ctx, storage_v1.ArchiveSpanWriterPlugin_WriteArchiveSpan_FullMethodName, b)
	case c.version == v2Name:
		return e.export(ctx, e.conn, b)
	case c.streaming:
		if err := e.stream(ctx, b); err == nil || b.Len() < 2 || !pipeline.IsAboutData(err) {
			return err
		}
		// The server refused one of the spans without saying which one, and ignored the following
		// spans.
	}
	return e.writeSpans(ctx, storage_v1.SpanWriterPlugin_WriteSpan_FullMethodName, b)
}

// export writes OTLP in one or more messages. It continues after a message that was refused
// permanently.
func (e *exporter) export(ctx context.Context, conn grpc.ClientConnInterface, b *otlpdata.Batch) error {
	if b.Size() <= int(e.cfg.MaxMessageSize) {
		parts, err := b.Chunks()
		if err != nil {
			return pipeline.Permanent(err)
		}
		return e.exportOne(ctx, conn, slices.Collect(parts))
	}
	var refused refusedSpans
	err := otlpchunks.Split(b, int(e.cfg.MaxMessageSize), func(request []byte, spans int) error {
		return refused.record(e.exportOne(ctx, conn, server.Pieces{request}), spans)
	})
	if err != nil {
		return err
	}
	return refused.outcome(b.Len())
}

func (e *exporter) exportOne(ctx context.Context, conn grpc.ClientConnInterface, request server.Pieces) error {
	var raw server.Raw
	if err := conn.Invoke(ctx, exportMethod, request, &raw); err != nil {
		return err
	}
	resp := ptraceotlp.NewExportResponse()
	if err := resp.UnmarshalProto(raw); err != nil {
		return e.nextHop.Partial(0, fmt.Sprintf("invalid OTLP response from %s: %v", e.cfg.Endpoint, err))
	}
	return e.nextHop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}

// eachRequest calls send with a WriteSpanRequest for each span, which send may retain. Content that
// Jaeger's model cannot represent is lost; see [native.SplitPostSpans].
func eachRequest(b *otlpdata.Batch, send func(request server.Raw) error) error {
	// A SpansResponseChunk with one span is also a WriteSpanRequest.
	requests := native.NewChunks(native.ChunkLimits{Spans: 1, Bytes: math.MaxInt}, func(chunk []byte) error {
		return send(bytes.Clone(chunk))
	})
	if err := b.Walk(requests); err != nil {
		return err
	}
	return requests.Finish()
}

// stream writes the spans in one stream. The response confirms that all are stored.
func (e *exporter) stream(ctx context.Context, b *otlpdata.Batch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.server.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true},
		storage_v1.StreamingSpanWriterPlugin_WriteSpanStream_FullMethodName)
	if err != nil {
		return err
	}
	err = eachRequest(b, func(request server.Raw) error { return stream.SendMsg(&request) })
	if err != nil && err != io.EOF { // RecvMsg returns the error that caused io.EOF
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var answer server.Raw
	return fromV1(stream.RecvMsg(&answer))
}

// fromV1 returns the error of a write to a v1 server. Such servers return Unknown for all errors of
// their store, so Unknown is not permanent.
func fromV1(err error) error {
	if status.Code(err) == codes.Unknown {
		return errors.New(err.Error())
	}
	return err
}

// unaryWrites is the number of concurrent calls for the spans of one batch, if each call writes one
// span.
const unaryWrites = 16

// writeSpans writes each span in a separate call. It continues after a span that was refused
// permanently.
func (e *exporter) writeSpans(ctx context.Context, method string, b *otlpdata.Batch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, unaryWrites)
	var calls sync.WaitGroup
	var refused refusedSpans
	err := eachRequest(b, func(request server.Raw) error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		calls.Go(func() {
			defer func() { <-slots }()
			var answer server.Raw
			if err := refused.record(fromV1(e.server.conn.Invoke(ctx, method, &request, &answer)), 1); err != nil {
				cancel(err)
			}
		})
		return nil
	})
	calls.Wait()
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return err
	}
	return refused.outcome(b.Len())
}
