package query

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// What clients get that leave parameters out.
const (
	defaultRateLookback = time.Hour
	defaultRateStep     = 5 * time.Second
	defaultRatePer      = 10 * time.Minute
	defaultRateKind     = "server"
)

// leastRateStep is the shortest time between two points: stores count calls by minute.
const leastRateStep = time.Minute

// maxRatePoints bounds the points of an answer, which take some 100 bytes each as JSON and 32 as a message of gRPC: clients take 4 MiB.
const maxRatePoints = 100_000

var (
	errNoRates       = errors.New("metrics querying is currently disabled")
	errNoRateService = errors.New("please provide at least one service name")
	errBadQuantile   = errors.New("please provide a quantile between (0, 1]")
	errNegative      = errors.New("must not be negative")
)

// measurement is one of the things that are told about calls.
type measurement struct {
	op    operation
	doing string // the beginning of errors of the store
	name  string // of the answer, behind what calls are grouped by
	help  string
	value func(*rateWindow) float64
}

// latencies tells a quantile, which is above 0 and at most 1, of durations in milliseconds.
func latencies(quantile float64) measurement {
	return measurement{opGetLatencies, "failed to fetch latencies", "latencies",
		fmt.Sprintf("%.2fth quantile latency, grouped by service", quantile),
		func(w *rateWindow) float64 { return w.milliseconds(quantile) }}
}

func callRates() measurement {
	return measurement{opGetCallRates, "failed to fetch call rates", "call_rate", "calls/sec, grouped by service", (*rateWindow).callRate}
}

func errorRates() measurement {
	return measurement{opGetErrorRates, "failed to fetch error rates", "error_rate",
		"error rate, computed as a fraction of errors/sec over calls/sec, grouped by service", (*rateWindow).errorRate}
}

// isQuantile reports whether q is above 0 and at most 1.
func isQuantile(q float64) bool { return q > 0 && q <= 1 }

// rateQuestion is which calls a client asks about. Its durations are not below 0.
type rateQuestion struct {
	services, kinds []string // at least one of each; kinds as tracestore.MetricsQuery has them
	byOperation     bool
	end             time.Time
	lookback        time.Duration // how long before end the first point may be
	step            time.Duration // between points
	per             time.Duration // how much time before it a point is about
}

// rateAnswer is what was measured. It has a series for each service, or operation, that was called, none without points.
type rateAnswer struct {
	name, help  string
	byOperation bool
	grid        rateGrid
	series      []tracestore.MetricSeries
	value       func(*rateWindow) float64
	missing     string // why the answer is not complete; "": it is
}

// rates asks the store. The error is errNoRates where the store cannot tell.
func (b *backend) rates(t *turn, m measurement, q *rateQuestion, g rateGrid) (*rateAnswer, error) {
	store, ok := b.store.(tracestore.Metrics)
	if !ok {
		return nil, errNoRates
	}
	a := &rateAnswer{name: "service_" + m.name, help: m.help, byOperation: q.byOperation, grid: g, value: m.value}
	if q.byOperation {
		a.name = "service_operation_" + m.name
		a.help += " & operation"
	}
	if g.points() == 0 {
		return a, nil
	}
	from, to := g.times()
	got, err := store.Metrics(t, server.Tenant(t), tracestore.MetricsQuery{
		Services: q.services, Kinds: q.kinds, ByOperation: q.byOperation, From: from, To: to, Step: g.length()})
	if err == nil {
		err = t.holdBytes(int64(sizeOf(got.Series)))
	}
	if err != nil {
		return nil, err
	}
	if !got.Complete {
		a.missing = "result is incomplete: " + got.Reason
	}
	a.choose(got.Series, maxRatePoints)
	return a, nil
}

// sizeOf returns about how many bytes series take.
func sizeOf(all []tracestore.MetricSeries) int {
	const perSeries, perPoint, perBucket = 128, 64, 8
	n := 0
	for i := range all {
		n += perSeries
		for j := range all[i].Points {
			_, counts := all[i].Points[j].Durations.Counts()
			n += perPoint + perBucket*len(counts)
		}
	}
	return n
}

// choose takes the first series, in order, that have at most so many points together.
func (a *rateAnswer) choose(all []tracestore.MetricSeries, most int64) {
	a.series = make([]tracestore.MetricSeries, 0, len(all))
	for i := range all {
		n := a.grid.pointsOf(&all[i])
		if most -= n; most < 0 {
			a.missing = fmt.Sprintf("result is incomplete: only %d points fit into an answer; "+
				"narrow the time range, or ask for longer steps or fewer services", maxRatePoints)
			return
		}
		if n > 0 {
			a.series = append(a.series, all[i])
		}
	}
}

// label is a name and a value of a series.
type label struct{ name, value string }

func (a *rateAnswer) labels(s *tracestore.MetricSeries) []label {
	of := []label{{"service_name", s.Service}, {"operation", s.Operation}}
	if !a.byOperation {
		of = of[:1]
	}
	return of
}
