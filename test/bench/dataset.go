package bench

import (
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TracesPerSecond is the number of traces that start in each second of the data set's time.
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

// Span is a span with every field that is sent, as a server must return it. Raw is nil.
type Span struct {
	Resource int // index in Dataset.Resources
	Scope    int // index in Scopes
	otlpdata.Span
}

// New returns the data set of a seed. Its first trace starts at start, which should lie within the
// retention time of the tested store.
func New(seed uint64, start time.Time) *Dataset {
	d := &Dataset{seed: seed, start: start}
	d.services, d.resources = topology(rand.New(rand.NewPCG(seed, 0)))
	return d
}

// Resources returns the instances of all services. Span.Resource is an index in this list. The
// caller must not change it.
func (d *Dataset) Resources() []Resource { return d.resources }

// Services returns the names of all services.
func (d *Dataset) Services() []string {
	names := make([]string, len(d.services))
	for i, s := range d.services {
		names[i] = s.name
	}
	return names
}

// Traces returns the minimum n for which the first n traces have at least the given number of
// spans.
func (d *Dataset) Traces(spans int) int {
	n := 0
	for ; spans > 0; n++ {
		spans -= traceSize(d.random(n))
	}
	return n
}

// random returns the random source of trace i. The multiplication spreads consecutive indexes over
// the whole range of seeds.
func (d *Dataset) random(i int) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, (uint64(i)+1)*0x9e3779b97f4a7c15))
}

// traceSize draws the number of spans of a trace: 5 to 60, and below 20 for most traces. It must be
// the first value that is drawn from the source of a trace.
func traceSize(r *rand.Rand) int {
	const minimum, maximum = 5, 60
	u := r.Float64()
	return minimum + int(u*u*u*(maximum-minimum+1))
}
