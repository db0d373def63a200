package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirenames "github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// numbered yields n requests, numbered from first. The field Resource is the number.
func numbered(first, n int) func(func(bench.Request) bool) {
	return func(yield func(bench.Request) bool) {
		for i := first; i < first+n; i++ {
			if !yield(numberedRequest(i)) {
				return
			}
		}
	}
}

// numberedRequest returns a request whose spans have the number as their name. The last one has a
// random text, which also ends with the number, so that the number can be found in the files of the
// queue.
func numberedRequest(number int) bench.Request {
	var b otlpdata.Builder
	b.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue("queued")}})
	for i := range spansOfRequest {
		s := otlpdata.Span{Name: strconv.Itoa(number), Start: 1, End: 2, TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{byte(i + 1)}}
		if i == spansOfRequest-1 {
			s.Attributes = []otlpdata.KeyValue{{Key: "text", Value: otlpdata.StringValue(numberedText(number))}}
		}
		b.Span(&s)
	}
	return bench.Request{Resource: number, Spans: spansOfRequest, Body: slices.Clone(b.Bytes())}
}

// numberedText returns the random text of a request.
func numberedText(number int) string {
	var seed [32]byte
	copy(seed[:], strconv.Itoa(number))
	noise := make([]byte, textOfRequest/2)
	rand.NewChaCha8(seed).Read(noise) //nolint:errcheck // never fails
	return fmt.Sprintf("%x(request %06d)", noise, number)
}

// markers matches the ends of the texts.
var markers = regexp.MustCompile(`\(request (\d{6})\)`)

// sendNumbered sends requests one after the other, retries each for the given time, and returns the
// numbers of the acknowledged ones.
func sendNumbered(t *testing.T, agent *harness.Process, retry time.Duration, first, n int) (acked map[int]bool, r load.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	acked = map[int]bool{}
	r, err := load.Run(ctx, load.Options{Target: agent.OTLPGRPC(), Retry: retry, Acked: func(r bench.Request) {
		mu.Lock()
		defer mu.Unlock()
		acked[r.Resource] = true
	}}, numbered(first, n))
	if err != nil {
		t.Fatal(err)
	}
	return acked, r
}

// countingHop is a collector that counts the spans of each numbered request. While it is down it
// refuses all requests.
type countingHop struct {
	api_v2.UnimplementedCollectorServiceServer
	addr string

	mu    sync.Mutex
	down  bool
	got   map[int]int
	wrong []string // spans that do not belong to a numbered request
}

func startCountingHop(t *testing.T, down bool) *countingHop {
	t.Helper()
	h := &countingHop{down: down, got: map[int]int{}}
	register := func(srv *grpc.Server) { wirenames.Register(srv, &api_v2.CollectorService_ServiceDesc, h) }
	h.addr = pipelinetest.StartHop(t, "localhost:0", register).Addr
	return h
}

func (h *countingHop) PostSpans(_ context.Context, req *api_v2.PostSpansRequest) (*api_v2.PostSpansResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return nil, status.Error(codes.Unavailable, "down")
	}
	for _, s := range req.GetBatch().GetSpans() {
		number, err := strconv.Atoi(s.GetOperationName())
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		h.got[number]++
		if tags := s.GetTags(); len(tags) > 0 && tags[0].GetVStr() != numberedText(number) {
			h.wrong = append(h.wrong, fmt.Sprintf("request %d has another text", number))
		}
	}
	return &api_v2.PostSpansResponse{}, nil
}

func (h *countingHop) setDown(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// arrived returns the numbers of the requests whose spans have all arrived.
func (h *countingHop) arrived() map[int]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	whole := map[int]bool{}
	for number, spans := range h.got {
		if spans >= spansOfRequest {
			whole[number] = true
		}
	}
	return whole
}

// problems returns what is wrong with the spans that have arrived: other content, or more spans
// than a request has.
func (h *countingHop) problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.wrong)
	for number, spans := range h.got {
		if spans != spansOfRequest {
			list = append(list, fmt.Sprintf("request %d has %d spans", number, spans))
		}
	}
	return list
}
