package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// direct has a fan-out directly after the receiver.
const direct = `
receivers: {source: }
exporters: {sink/a: , sink/b: }
service: {telemetry: {logs: {level: debug}}, pipelines: {traces: {receivers: [source], exporters: [sink/a, sink/b]}}}
`

// A refused batch does not affect the others, branches get no batch twice, and each span is counted
// once by its receiver.
func TestConsumeJoined(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, direct)
	var mu sync.Mutex
	took := map[string]map[string]int{"sink/a": {}, "sink/b": {}}
	sends := 0
	poison := pipeline.Permanent(errors.New("poison"))
	w.Accept = func(id string, b *otlpdata.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		sends++
		if id == "sink/a" && slices.ContainsFunc(b.Services(), func(s otlpdata.ServiceCount) bool { return s.Service == "s13" }) {
			return poison
		}
		for _, s := range b.Services() {
			took[id][s.Service]++
		}
		return nil
	}
	const n = 100
	var batches []*otlpdata.Batch
	for i := range n {
		batches = append(batches, hosttest.Spans(1, fmt.Sprint("s", i)))
	}
	reported := 0
	pipeline.ConsumeJoined(t.Context(), w.Source["source"], batches, func(of []*otlpdata.Batch, err error) {
		for _, b := range of {
			if b != batches[reported] || (err != nil) != (reported == 13) {
				t.Errorf("batch %d: %v", reported, err)
			}
			reported++
		}
	})
	if reported != n || len(took["sink/a"]) != n-1 || len(took["sink/b"]) != n || sends > 2*10 {
		t.Errorf("%d outcomes, spans of %d and %d services, %d sends", reported, len(took["sink/a"]), len(took["sink/b"]), sends)
	}
	for id, services := range took {
		for service, times := range services {
			if times != 1 {
				t.Errorf("%s got %s %d times", id, service, times)
			}
		}
	}
	counts := p.Counts(t)
	for key, want := range map[string]int{"receiver source received": 2 * n, "receiver source accepted": 2*n - 2, "receiver source refused": 2,
		"exporter sink/b in": 2 * n, "exporter sink/b sent": 2 * n, "exporter sink/a sent": 2*n - 2} {
		if counts[key] != want {
			t.Errorf("%s: %d, want %d", key, counts[key], want)
		}
	}
	if lines := p.Logged(t, "Span batch processed by the collector."); len(lines) != n {
		t.Errorf("%d lines for %d batches", len(lines), n)
	}
}

// Errors that are not caused by the data are not retried with parts of the batch. A partial success
// is distributed over the batches.
func TestConsumeJoinedOnce(t *testing.T) {
	three := []*otlpdata.Batch{hosttest.Spans(1, "a"), hosttest.Spans(1, "b"), hosttest.Spans(1, "c")}
	f := func(answer error, want ...int) {
		t.Helper()
		sends, left := 0, three
		var refused []int
		next := hosttest.SendFunc(func(context.Context, *otlpdata.Batch) error { sends++; return answer })
		pipeline.ConsumeJoined(t.Context(), next, three, func(of []*otlpdata.Batch, err error) {
			for _, b := range of {
				n := 0
				if p := (*pipeline.Partial)(nil); errors.As(err, &p) {
					n = p.Rejected
				} else if err != nil {
					n = b.Len()
				}
				refused = append(refused, n)
			}
			left = left[len(of):]
		})
		if sends != 1 || !slices.Equal(refused, want) || len(left) != 0 {
			t.Errorf("%v: %d sends, refused %v, want %v", answer, sends, refused, want)
		}
	}
	f(nil, 0, 0, 0)
	f(errors.New("away"), 2, 2, 2)
	f(status.Error(codes.Unauthenticated, "who?"), 2, 2, 2)
	f(&pipeline.Partial{Rejected: 3, Err: errors.New("too old")}, 2, 1, 0)
	pipeline.ConsumeJoined(t.Context(), nil, nil, nil) // nothing to do
}
