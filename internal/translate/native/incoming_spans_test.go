package native

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// remoteSpans returns the spans of a request as messages of the remote storage API, in chunks of
// equal length.
func remoteSpans(tb testing.TB, request []byte, perChunk int) (messages [][]byte) {
	tb.Helper()
	c := NewChunks(ChunkLimits{Spans: perChunk, Bytes: math.MaxInt}, func(chunk []byte) error {
		messages = append(messages, bytes.Clone(chunk))
		return nil
	})
	if err := errors.Join(otlpdata.Walk(request, c), c.Finish()); err != nil {
		tb.Fatal(err)
	}
	return messages
}

// Spans that carry a process have the same translation as a batch with that process, however many
// spans one message has.
func TestFromSpans(t *testing.T) {
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(2000, 100) {
		want, err := FromPostSpans(outgoing(t, r.Body), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, perChunk := range []int{1, 7, 1000} {
			got, err := FromSpans(0, remoteSpans(t, r.Body, perChunk)...)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d spans in each message: %d bytes, want %d; error %v", perChunk, len(got), len(want), err)
			}
		}
	}
	if got, err := FromSpans(0); err != nil || len(got) != 0 {
		t.Errorf("no messages: got %d bytes, error %v", len(got), err)
	}
	if _, err := FromSpans(10, remoteSpans(t, encoded(t, one(outgoingCases()[0].build)), 1)...); !errors.Is(err, ErrOutputTooLarge) {
		t.Errorf("output above the limit: error %v", err)
	}
	if _, err := FromSpans(0, inProto([]byte{1, 2, 3}, 1, spanTraceID)); !errors.Is(err, errTraceIDLength) {
		t.Errorf("invalid id: error %v", err)
	}
}

// modelSpans returns the encoded spans of messages of the remote storage API.
func modelSpans(tb testing.TB, messages [][]byte) (spans [][]byte) {
	tb.Helper()
	for _, m := range messages {
		r := protoReader{b: m}
		for r.next() {
			spans = append(spans, r.data)
		}
		if r.err != nil {
			tb.Fatal(r.err)
		}
	}
	return spans
}

// Single spans have the same translation as messages with these spans, sorted by process, within
// the declared memory.
func TestFromModelSpans(t *testing.T) {
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(2000, 100) {
		spans := modelSpans(t, remoteSpans(t, r.Body, 10))
		groups := map[string][][]byte{}
		var processes []string
		for _, s := range spans {
			process := string(processOf(s))
			if groups[process] == nil {
				processes = append(processes, process)
			}
			groups[process] = append(groups[process], s)
		}
		var messages [][]byte // sorted by process
		for _, process := range processes {
			for _, s := range groups[process] {
				messages = append(messages, inProto(s, messageSpans))
			}
		}
		want, err := FromSpans(0, messages...)
		if err != nil {
			t.Fatal(err)
		}
		spans = spans[:0] // now one of each process in turn
		for i := 0; len(spans) < len(messages); i++ {
			for _, process := range processes {
				if i < len(groups[process]) {
					spans = append(spans, groups[process][i])
				}
			}
		}
		got, err := FromModelSpans(0, spans...)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d spans: %d bytes, want %d; error %v", len(spans), len(got), len(want), err)
		}
		if memory := ModelSpansMemory(TypicalGrowth, spans...); memory < int64(len(got)) {
			t.Errorf("%d bytes of output, declared %d", len(got), memory)
		}
		if _, err := FromModelSpans(10, spans...); !errors.Is(err, ErrOutputTooLarge) {
			t.Errorf("output above the limit: error %v", err)
		}
	}
	if got, err := FromModelSpans(0); err != nil || len(got) != 0 {
		t.Errorf("no spans: got %d bytes, error %v", len(got), err)
	}
	if _, err := FromModelSpans(0, []byte{1}); err == nil {
		t.Error("invalid span was translated")
	}
}

// FuzzFromModelSpans checks that all inputs become valid OTLP of limited size, or an error.
func FuzzFromModelSpans(f *testing.F) {
	for _, c := range outgoingCases() {
		for _, span := range modelSpans(f, remoteSpans(f, encoded(f, one(c.build)), 10)) {
			f.Add(span, span)
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		otlp, err := FromModelSpans(0, first, second)
		if err != nil {
			return
		}
		if len(otlp) > MaxGrowth*(len(first)+len(second))+2*64 {
			t.Errorf("%d and %d bytes became %d", len(first), len(second), len(otlp))
		}
		if _, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{}); err != nil {
			t.Errorf("not OTLP: %v", err)
		}
	})
}

// FuzzFromSpans checks that all inputs become valid OTLP of limited size, or an error.
func FuzzFromSpans(f *testing.F) {
	for _, c := range outgoingCases() {
		f.Add(remoteSpans(f, encoded(f, one(c.build)), 10)[0])
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		otlp, err := FromSpans(0, message)
		if err != nil {
			return
		}
		if len(otlp) > MaxGrowth*len(message)+64 {
			t.Errorf("%d bytes became %d", len(message), len(otlp))
		}
		if _, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{}); err != nil {
			t.Errorf("not OTLP: %v", err)
		}
	})
}
