package storewire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// again decodes a message as the type of w, and checks that a valid value survives another round.
func (w wire) again(t *testing.T, newDecoder func([]byte, *tracestore.Memory) *Decoder, b []byte) any {
	t.Helper()
	a := &account{limit: 1 << 20}
	memory, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), a), 0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.decode(newDecoder(b, memory))
	if err != nil {
		if !errors.Is(err, ErrInvalid) && !tracestore.IsOutOfMemory(err) {
			t.Errorf("%T: %v", w.value, err)
		}
		return nil
	}
	first, err := w.anew(v)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = w.decode(newDecoder(first, nil)); err != nil {
		t.Fatalf("%T: second round: %v", w.value, err)
	}
	if second, err := w.anew(v); err != nil || !bytes.Equal(second, first) {
		t.Errorf("%T: %x became %x, %v", w.value, first, second, err)
	}
	return v
}

// FuzzQuestions decodes questions.
func FuzzQuestions(f *testing.F) {
	all := questions()
	seed(f, all)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, w := range all {
			switch v := w.again(t, NewQuestion, b).(type) {
			case Find:
				tracestore.Match(v.Query.Where, tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}})
			case Aggregate:
				_ = v.What.Check(v.Query)
			case tracestore.Deletion:
				_ = v.Check()
			case tracestore.MetricsQuery:
				v.Window()
			}
		}
	})
}

// FuzzAnswers decodes answers.
func FuzzAnswers(f *testing.F) {
	all := answers()
	seed(f, all)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, w := range all {
			switch v := w.again(t, NewAnswer, b).(type) {
			case tracestore.BaselineAnswer:
				for i := range v.Durations {
					v.Durations[i].Quantile(0.5)
					v.Durations[i].Observe(uint64(len(b)))
				}
			case tracestore.PathProfile:
				for i := range v.Paths {
					if v.Paths[i].Parent >= i {
						t.Errorf("parent %d of path %d", v.Paths[i].Parent, i)
					}
				}
			}
		}
	})
}

func seed(f *testing.F, all []wire) {
	f.Helper()
	for _, w := range all {
		b, err := w.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// BenchmarkOutline encodes and decodes the outline of 1,000 spans.
func BenchmarkOutline(b *testing.B) {
	spans := make([]tracestore.SummarySpan, 1000)
	for i := range spans {
		spans[i] = tracestore.SummarySpan{ID: otlpdata.SpanID{7: byte(i)}, Parent: otlpdata.SpanID{6: byte(i)}, Start: 1_700_000_000_000_000_000 +
			uint64(i), Duration: uint64(i) * 1000, Service: []string{"cart", "checkout"}[i%2], Name: []string{"GET /", "POST /", "query"}[i%3],
			Kind: int32(i % 5), Host: uint32(i % 7)}
	}
	b.ReportAllocs()
	for b.Loop() {
		message, err := Encode(&spans)
		if err == nil {
			err = Only(NewAnswer(message, nil), new([]tracestore.SummarySpan))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
