package rows

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Probe is the first row of a block in one partition. The server stores the rows of a partition
// together or not at all, so the probes of a block show whether all of it is stored.
type Probe struct {
	Service string
	Trace   otlpdata.TraceID
	Start   uint64 // nanoseconds since the Unix epoch
}

// partition identifies a partition of both tables.
type partition struct {
	day uint16
	odd uint8
}

// probe remembers a span if it is the first of its partition.
func (e *encoder) probe(s *otlpdata.Span, day uint16, odd uint8) {
	p := partition{day, odd}
	if _, known := e.partitions[p]; known {
		return
	}
	e.partitions[p] = struct{}{}
	e.probes = append(e.probes, Probe{Service: e.span.Resource.Service, Trace: s.TraceID, Start: s.Start})
}
