package compare

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// perRequest is the number of spans of a request of a client.
const perRequest = 512

// data is what is loaded, and what the results must be.
type data struct {
	set    *bench.Dataset
	spans  int // exact number
	traces int
	start  time.Time
	end    time.Time // no span starts later
}

func newData(spans int) *data {
	duration := time.Duration(spans/19/bench.TracesPerSecond) * time.Second
	start := time.Now().Add(-duration - 10*time.Minute).Truncate(time.Minute)
	d := &data{set: bench.New(7, start), start: start}
	d.traces = d.set.Traces(spans)
	for i := range d.traces {
		d.spans += len(d.set.Trace(i))
	}
	d.end = start.Add(time.Duration(d.traces)*time.Second/bench.TracesPerSecond + time.Minute)
	return d
}

// batches iterates over all spans in batches of about size spans, as a batch processor joins
// requests.
func (d *data) batches(tb testing.TB, size int) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		var joined bytes.Buffer
		spans := 0
		for r := range d.set.Requests(d.spans, perRequest) {
			joined.Write(r.Body)
			if spans += r.Spans; spans >= size {
				if !yield(newBatch(tb, joined.Bytes())) {
					return
				}
				joined.Reset()
				spans = 0
			}
		}
		if spans > 0 {
			yield(newBatch(tb, joined.Bytes()))
		}
	}
}

func newBatch(tb testing.TB, body []byte) (b batch) {
	tb.Helper()
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		tb.Fatal(err)
	}
	b.otel = request.Traces()
	own, err := otlpdata.FromOTLP(bytes.Clone(body), otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	b.own = own
	return b
}

// window returns the last hour of the data, or all of it, in whole minutes.
func (d *data) window() (from, to time.Time) {
	to = d.end.Truncate(time.Minute)
	if from = to.Add(-time.Hour); from.Before(d.start) {
		from = d.start
	}
	return from, to
}

// newest returns the newest traces with a span of a service, newest first.
func (d *data) newest(service string, limit int) (ids []otlpdata.TraceID) {
	type found struct {
		id    otlpdata.TraceID
		start uint64
	}
	var all []found
	const tail = 3000 // the traces of 30 s; a trace lasts at most a few seconds
	for i := max(0, d.traces-tail); i < d.traces; i++ {
		f := found{}
		for _, s := range d.set.Trace(i) {
			if d.set.Resources()[s.Resource].Service == service && s.Start >= f.start {
				f = found{s.TraceID, s.Start}
			}
		}
		if f.start > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.start, a.start), bytes.Compare(b.id[:], a.id[:]))
	})
	for _, f := range all[:min(limit, len(all))] {
		ids = append(ids, f.id)
	}
	return ids
}
