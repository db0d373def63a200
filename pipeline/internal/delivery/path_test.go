package delivery_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Between a receiver and an exporter are an edge of the receiver, and one of each component
// that follows. A span passes these functions, in this order.
func TestPath(t *testing.T) {
	w := hosttest.NewWorld()
	w.Start(t, strings.Replace(three, "exporters: [sink/a, sink/b, sink/c]", "exporters: [sink/a]", 1))
	var got []string
	w.Accept = func(string, *otlpdata.Batch) error {
		pcs := make([]uintptr, 100)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			_, name, _ := strings.Cut(f.Function, "/pipeline/internal/")
			if in, _, _ := strings.Cut(name, "."); in == "delivery" || strings.HasPrefix(name, "hosttest.(*Step)") {
				got = append(got, strings.NewReplacer("delivery.", "", "(*", "", ")", "").Replace(name))
			}
		}
		return nil
	}
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop")); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(got)
	want := []string{
		"ReceiverEdge.Consume", "Gate.Consume",
		"ProcessorEdge.Consume", "ProcessorEdge.call", "hosttest.Step.Consume", "Gate.Consume",
		"ExporterEdge.Consume", "ExporterEdge.send", "Gate.Consume",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
	}
}

// noError is a type of error that only has nil pointers, a common mistake.
type noError struct{ text string }

func (e *noError) Error() string { return e.text }

// An error that panics when it is read is like a panic of the component that returned it: it
// affects neither other branches nor the accounting.
func TestBrokenError(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, three)
	w.Accept = func(id string, _ *otlpdata.Batch) error {
		if id == "sink/b" {
			return (*noError)(nil)
		}
		return nil
	}
	err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop"))
	if s := pipeline.GRPCStatus(err); s.Code() != codes.Internal {
		t.Errorf("got %v", err)
	}
	if c := p.Counts(t); c["exporter sink/a sent"] != 1 || c["exporter sink/c sent"] != 1 || c["exporter sink/b refused"] != 1 {
		t.Errorf("counts %v", c)
	}
	got := p.Logged(t, "BUG: Consume panicked; the batch is refused")
	if len(got) != 1 || got[0]["component"] != "sink/b" {
		t.Errorf("logged %v", got)
	}
	p.CheckBalanced(t)
}
