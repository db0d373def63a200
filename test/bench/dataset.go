package bench

import (
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TracesPerSecond is how densely traces follow each other in time.
const TracesPerSecond = 100

// Dataset is an endless sequence of traces. It is immutable and safe for concurrent use.
type Dataset struct {
	seed      uint64
	start     time.Time
	services  []service
	resources []Resource
}

// Resource is an instance of a service.
type Resource struct {
	Service    string
	Attributes []otlpdata.KeyValue
}

// Span is a span as a server must give it back: every field that was sent. Raw is nil.
type Span struct {
	Resource int // index in Dataset.Resources
	Scope    int // index in Scopes
	otlpdata.Span
}

// New returns the data set of a seed. Its first trace starts at start, which should lie within the retention of what is tested.
func New(seed uint64, start time.Time) *Dataset {
	d := &Dataset{seed: seed, start: start}
	d.services, d.resources = topology(rand.New(rand.NewPCG(seed, 0)))
	return d
}

// Resources returns the instances, to which Span.Resource is an index. The caller must not change them.
func (d *Dataset) Resources() []Resource { return d.resources }

// Services returns the names of all services.
func (d *Dataset) Services() []string {
	names := make([]string, len(d.services))
	for i, s := range d.services {
		names[i] = s.name
	}
	return names
}

// Traces returns how many traces hold at least that many spans; all but the last one hold fewer.
func (d *Dataset) Traces(spans int) int {
	n := 0
	for ; spans > 0; n++ {
		spans -= traceSize(d.random(n))
	}
	return n
}

// random returns the source of trace i. The multiplication spreads neighbours over the whole range of seeds.
func (d *Dataset) random(i int) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, (uint64(i)+1)*0x9e3779b97f4a7c15))
}

// traceSize draws the number of spans: 5 to 60, most of them below 20. It is the first thing that is drawn for a trace.
func traceSize(r *rand.Rand) int {
	const least, most = 5, 60
	u := r.Float64()
	return least + int(u*u*u*(most-least+1))
}
