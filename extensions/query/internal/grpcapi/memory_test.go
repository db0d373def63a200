package grpcapi

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// largeStore has one trace. It copies the pieces for each request, like a store that reads files.
type largeStore struct {
	core.Store
	pieces [][]byte
}

const piece = 4000 // spans

func newLargeStore(t *testing.T, pieces int) (s largeStore, size int64) {
	t.Helper()
	s.Store = querytest.NewStore(ptrace.NewTraces())
	for i := range pieces {
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(pieceOfLarge(i))
		if err != nil {
			t.Fatal(err)
		}
		s.pieces, size = append(s.pieces, b), size+int64(len(b))
	}
	return s, size
}

func (l largeStore) Traces(_ context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, p := range l.pieces {
			b, err := otlpdata.FromOTLP(bytes.Clone(p), otlpdata.Meta{}, otlpdata.Limits{})
			if !yield(tracestore.Trace{ID: refs[0].ID, Spans: b}, err) || err != nil {
				return
			}
		}
	}
}

func pieceOfLarge(number int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	ss.Spans().EnsureCapacity(piece)
	for i := range piece {
		n := number*piece + i
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, 0, 0, "GET /cart", 0)
		s.SetSpanID(pcommon.SpanID{1, 5: byte(n >> 16), 6: byte(n >> 8), 7: byte(n)})
		s.SetParentSpanID(pcommon.SpanID{1})
		s.Attributes().PutStr("http.request.method", "GET")
		s.Attributes().PutStr("url.full", fmt.Sprint("https://shop.example/cart/items/", n))
		s.Attributes().PutInt("http.response.status_code", 200)
		s.Attributes().PutStr("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
		s.Events().AppendEmpty().SetName("begun")
	}
	return td
}

// heapSize returns the size of all objects, including those that are garbage.
func heapSize() int64 {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// A trace of 200,000 spans takes at most three times its size plus 64 MiB.
func TestGRPCLargeTraceMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("tests are shortened: this one writes large traces; make test-long runs it")
	}
	const spans = 200_000
	store, size := newLargeStore(t, spans/piece)
	conn := dial(t, store)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // garbage counts, too
	id := make([]byte, 16)
	id[15] = 1
	for _, c := range []struct {
		name, method string
		in           any
	}{
		{"version 2", "/tracing.api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: id}},
		{"version 2, raw", "/tracing.api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: id, RawTraces: true}},
		{"version 3", "/tracing.api_v3.QueryService/GetTrace", &api_v3.GetTraceRequest{TraceId: "1"}},
		{"version 3, raw", "/tracing.api_v3.QueryService/GetTrace", &api_v3.GetTraceRequest{TraceId: "1", RawTraces: true}},
	} {
		runtime.GC()
		before := heapSize()
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, c.method, grpc.ForceCodecV2(server.RawCodec()))
		if err == nil {
			err = s.SendMsg(c.in)
		}
		if err != nil {
			t.Fatal(err)
		}
		var message server.Raw
		peak, received := int64(0), int64(0)
		for s.RecvMsg(&message) == nil {
			received += int64(len(message))
			peak = max(peak, heapSize()-before)
		}
		if most := 3*size + 64<<20; received < size*9/10 || peak > most {
			t.Errorf("%s: %d MiB for %d MiB of spans, %d MiB received; at most %d MiB", c.name, peak>>20, size>>20, received>>20, most>>20)
		}
		t.Logf("%s: %d MiB at most for %d MiB of spans", c.name, peak>>20, size>>20)
	}
}

// A hundred clients that do not read hold at most service.limits.query_memory. Further ones are
// rejected as overload.
func TestGRPCManySlowReaders(t *testing.T) {
	const pieces, most = 8, 5 // pieces of a trace, and concurrent answers
	store, size := newLargeStore(t, pieces)
	client := api_v3.NewQueryServiceClient(dial(t, store, func(o *core.Options) {
		o.Memory = pipeline.NewQueryBudget(most * 2 * size) // including the memory for adjusting the spans
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := 0
	for range 100 {
		stream, err := client.GetTrace(ctx, &api_v3.GetTraceRequest{TraceId: "1"})
		if err == nil {
			_, err = stream.Recv()
		}
		switch {
		case err == nil:
			begun++
		case status.Code(err) != codes.ResourceExhausted:
			t.Fatalf("error with %d slow readers: %v", begun, err)
		}
	}
	if begun < most || begun > 2*most {
		t.Errorf("%d concurrent answers", begun)
	}
}
