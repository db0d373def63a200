package query_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// gogoCodec encodes the messages of jaeger-idl, which gogo/protobuf has generated.
type gogoCodec struct{}

func (gogoCodec) Name() string { return "proto" }

func (gogoCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := v.(interface{ Marshal() ([]byte, error) }).Marshal()
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (gogoCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return v.(interface{ Unmarshal([]byte) error }).Unmarshal(data.Materialize())
}

// queryClient calls the query API over gRPC.
type queryClient struct {
	t    testing.TB
	conn *grpc.ClientConn
}

// dialQuery connects to the query API of a program.
func dialQuery(p *inprocess.Program, opts ...grpc.DialOption) *queryClient {
	p.T.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(4<<20))) // the default of clients
	conn, err := grpc.NewClient(p.Addr("query", "grpc"), opts...)
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() {
		if err := conn.Close(); err != nil {
			p.T.Error(err)
		}
	})
	return &queryClient{p.T, conn}
}

// receiveAll receives all messages of a stream.
func receiveAll[T any](recv func() (T, error)) (all []T, _ error) {
	for {
		m, err := recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

// stream calls a streaming method by its full name and returns all messages.
func stream[T any](c *queryClient, method string, in any) ([]*T, error) {
	s, err := c.conn.NewStream(c.t.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		err = errors.Join(s.SendMsg(in), s.CloseSend())
	}
	if err != nil {
		return nil, err
	}
	return receiveAll(func() (*T, error) { m := new(T); return m, s.RecvMsg(m) })
}

// startWithTraces starts a program with the traces of the data set and one trace of 10,000 spans,
// whose id it returns.
func startWithTraces(t *testing.T, settings ...string) (p *inprocess.Program, large string) {
	t.Helper()
	p = inprocess.Start(t, settings...)
	now := time.Now().Add(-time.Minute)
	first, spans := [16]byte{}, 0
	for r := range bench.New(3, now).Requests(12_000, 500) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if spans++; spans == 1 {
						first = s.TraceID()
					}
					if spans <= 10_000 {
						s.SetTraceID(first)
					}
				}
			}
		}
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			t.Fatal(err)
		}
		if code, answer := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", string(body), "Content-Type", "application/x-protobuf"); code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	return p, fmt.Sprintf("%x", first)
}

// checkSame compares lines of text.
func checkSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			line := func(lines []string) []string { return lines[min(i, len(lines)):min(i+1, len(lines))] }
			t.Errorf("%s: %d lines, want %d\ngot  %.2000s\nwant %.2000s", what, len(got), len(want), line(got), line(want))
			return
		}
	}
}
