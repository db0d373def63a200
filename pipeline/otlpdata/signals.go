package otlpdata

import "github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"

// CountDataPoints returns the number of data points in an OTLP request for metrics. It checks the
// messages around them, not their content. Errors are permanent.
func CountDataPoints(request []byte) (int, error) { return count(request, dataPoints) }

// CountLogRecords is like [CountDataPoints] for the log records in an OTLP request for logs.
func CountLogRecords(request []byte) (int, error) { return count(request, records) }

// CountSpans is like [CountDataPoints] for the spans in an OTLP request for traces.
func CountSpans(request []byte) (int, error) { return count(request, records) }

// Paths from a request to the counted messages: for each level, the bit set of the field numbers
// that lead to the next one (opentelemetry-proto, metrics.proto, logs.proto and trace.proto).
var (
	dataPoints = []uint64{
		1 << 1,                             // resource_metrics
		1 << 2,                             // scope_metrics
		1 << 2,                             // metrics
		1<<5 | 1<<7 | 1<<9 | 1<<10 | 1<<11, // gauge, sum, histogram, exponential_histogram, summary
		1 << 1,                             // data_points
	}
	records = []uint64{
		1 << 1, // resource_logs, resource_spans
		1 << 2, // scope_logs, scope_spans
		1 << 2, // log_records, spans
	}
)

// count returns the number of messages at the end of a path.
func count(b []byte, path []uint64) (total int, err error) {
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		if pos, err = f.Next(b, pos); err != nil {
			return 0, err
		}
		n := 1
		switch num := f.Tag >> 3; {
		case f.Tag&7 != protoenc.Length || num >= 64 || path[0]>>num&1 == 0:
			n = 0
			err = f.Unknown(path[0])
		case len(path) > 1:
			n, err = count(f.Data, path[1:])
		}
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
