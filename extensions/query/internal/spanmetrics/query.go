// Package spanmetrics calculates call rates, error rates and latencies of services from the counts
// of a store. The HTTP API /api/metrics and the gRPC service MetricsQueryService are based on it.
package spanmetrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// Defaults of parameters that clients omit.
const (
	DefaultLookback = time.Hour
	DefaultStep     = 5 * time.Second
	DefaultRatePer  = 10 * time.Minute
	DefaultKind     = "server"
)

// MinStep is the minimum time between two points, because stores count calls by minute.
const MinStep = time.Minute

// maxPoints is the maximum number of points of a result. A point takes about 100 bytes as JSON and
// 32 in a gRPC message; most clients accept messages of up to 4 MiB.
const maxPoints = 100_000

// Errors of queries.
var (
	ErrUnsupported = errors.New("metrics querying is currently disabled") // by the store
	ErrNoService   = errors.New("please provide at least one service name")
	ErrBadQuantile = errors.New("please provide a quantile between (0, 1]")
)

// Query selects calls. The durations must not be negative.
type Query struct {
	Services, Kinds []string // at least one of each; kinds as in tracestore.MetricsQuery
	ByOperation     bool
	End             time.Time
	Lookback        time.Duration // time before End that contains all points
	Step            time.Duration // time between points
	RatePer         time.Duration // period before a point that the point describes
}

// Metric is a property of calls that can be measured.
type Metric struct {
	Operation core.Operation
	Failure   string // beginning of the text of store errors
	name      string // end of the metric name in the response
	help      string
	value     func(*window) float64
}

// Latencies is a quantile of durations, in milliseconds. The quantile must be valid, see
// IsQuantile.
func Latencies(quantile float64) Metric {
	return Metric{core.OpGetLatencies, "failed to fetch latencies", "latencies",
		fmt.Sprintf("%.2fth quantile latency, grouped by service", quantile),
		func(w *window) float64 { return w.milliseconds(quantile) }}
}

// CallRates is the number of calls per second.
func CallRates() Metric {
	return Metric{core.OpGetCallRates, "failed to fetch call rates", "call_rate", "calls/sec, grouped by service", (*window).callRate}
}

// ErrorRates is the fraction of calls that fail.
func ErrorRates() Metric {
	return Metric{core.OpGetErrorRates, "failed to fetch error rates", "error_rate",
		"error rate, computed as a fraction of errors/sec over calls/sec, grouped by service", (*window).errorRate}
}

// IsQuantile reports whether q is above 0 and at most 1.
func IsQuantile(q float64) bool { return q > 0 && q <= 1 }
