package native

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// chunksOf returns the SpansResponseChunks of encoded requests, decoded by a strict proto3 decoder.
func chunksOf(t testing.TB, limits ChunkLimits, encoded ...[]byte) (chunks []*api_v2.SpansResponseChunk) {
	t.Helper()
	c := NewChunks(limits, func(b []byte) error {
		var chunk api_v2.SpansResponseChunk
		if err := proto.Unmarshal(b, &chunk); err != nil {
			t.Errorf("rejected by a strict decoder: %v", err)
		}
		if n := len(chunk.Spans); n == 0 || n > limits.Spans {
			t.Errorf("a chunk of %d spans", n)
		} else if len(b) > limits.Bytes && n > 1 {
			t.Errorf("a chunk of %d spans in %d bytes", n, len(b))
		}
		chunks = append(chunks, &chunk)
		return nil
	})
	for _, s := range encoded {
		if err := otlpdata.Walk(s, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	return chunks
}

// describeChunks describes the spans of all chunks.
func describeChunks(chunks []*api_v2.SpansResponseChunk) (spans []string) {
	for _, c := range chunks {
		spans = append(spans, resolved(&api_v2.Batch{Spans: c.Spans})...)
	}
	return spans
}

// Chunks contain the same spans as PostSpansRequests, and every span has its process.
func TestChunksMatchRequests(t *testing.T) {
	limits := ChunkLimits{Spans: 10, Bytes: 1 << 20}
	for _, c := range outgoingCases() {
		t.Run(c.name, func(t *testing.T) {
			request := encoded(t, one(c.build))
			got, want := describeChunks(chunksOf(t, limits, request)), resolved(decodeRequest(t, outgoing(t, request)))
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, ""), strings.Join(want, ""))
			}
		})
	}
	t.Run("data set", func(t *testing.T) {
		for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(2000, 100) {
			got, want := describeChunks(chunksOf(t, limits, r.Body)), resolved(decodeRequest(t, outgoing(t, r.Body)))
			if !slices.Equal(got, want) {
				t.Fatal("chunks and requests differ")
			}
		}
	})
}

func TestChunksAreFull(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits ChunkLimits
		in     [][]byte
		want   []int
	}{
		{"nothing", ChunkLimits{10, 1 << 20}, nil, nil},
		{"fewer", ChunkLimits{10, 1 << 20}, [][]byte{service(t, "a", 9, 0)}, []int{9}},
		{"as many", ChunkLimits{10, 1 << 20}, [][]byte{service(t, "a", 10, 0)}, []int{10}},
		{"more, of several encoded and processes", ChunkLimits{10, 1 << 20},
			[][]byte{service(t, "a", 7, 0), service(t, "b", 14, 0)}, []int{10, 10, 1}},
		{"many bytes", ChunkLimits{10, 5000}, [][]byte{service(t, "a", 7, 1000)}, []int{4, 3}},
		{"each too large", ChunkLimits{10, 100}, [][]byte{service(t, "a", 3, 1000)}, []int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int
			for _, chunk := range chunksOf(t, c.limits, c.in...) {
				got = append(got, len(chunk.Spans))
				for _, s := range chunk.Spans {
					if s.GetProcess().GetServiceName() == "" {
						t.Errorf("a span without a process: %v", s)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("chunks of %v spans, want %v", got, c.want)
			}
		})
	}
}

// After an error of send no further chunk is sent.
func TestChunksStopAfterSendError(t *testing.T) {
	gone, calls := errors.New("gone"), 0
	c := NewChunks(ChunkLimits{2, 1 << 20}, func([]byte) error { calls++; return gone })
	if err := otlpdata.Walk(service(t, "a", 100, 0), c); !errors.Is(err, gone) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// Memory does not grow with the number of spans.
func TestChunksAllocateNothingPerSpan(t *testing.T) {
	c := NewChunks(ChunkLimits{10, 1 << 20}, func([]byte) error { return nil })
	few, many := service(t, "a", 100, 100), service(t, "a", 10_000, 100)
	allocs := func(encoded []byte) float64 {
		return testing.AllocsPerRun(5, func() {
			if err := errors.Join(otlpdata.Walk(encoded, c), c.Finish()); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := allocs(few), allocs(many); b > a+99 { // the race detector empties pools
		t.Errorf("%v allocations for 100 spans, %v for 10,000", a, b)
	}
}

func BenchmarkChunks(b *testing.B) {
	var bodies [][]byte
	spans := 0
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(10_000, 512) {
		bodies, spans = append(bodies, r.Body), spans+r.Spans
	}
	c := NewChunks(ChunkLimits{Spans: 10, Bytes: 1 << 20}, func([]byte) error { return nil })
	b.ReportAllocs()
	for b.Loop() {
		for _, body := range bodies {
			if err := errors.Join(otlpdata.Walk(body, c), c.Finish()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*spans), "ns/span")
}

// FuzzChunks compares chunks with PostSpansRequests.
func FuzzChunks(f *testing.F) {
	for _, c := range outgoingCases() {
		f.Add(encoded(f, one(c.build)), uint8(10))
	}
	f.Add(bytes.Repeat(service(f, "a", 2, 10), 3), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, most uint8) {
		b, err := otlpdata.FromOTLP(in, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil || b.Len() == 0 {
			return
		}
		request, err := appendPostSpans(nil, [][]byte{in})
		if err != nil {
			return // too many bytes of scopes for requests
		}
		chunks := chunksOf(t, ChunkLimits{Spans: int(most%20) + 1, Bytes: 64 * (int(most) + 1)}, in)
		if got, want := describeChunks(chunks), resolved(decodeRequest(t, request)); !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, ""), strings.Join(want, ""))
		}
	})
}
