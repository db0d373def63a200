package jaegerapi

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
)

// parseMetricsQuery parses the parameters that all metrics share.
func parseMetricsQuery(v url.Values, now time.Time) (q spanmetrics.Query, err error) {
	q = spanmetrics.Query{Services: v["service"]}
	if len(q.Services) == 0 {
		return q, httpapi.ParamError("service", spanmetrics.ErrNoService)
	}
	if p := v.Get("groupByOperation"); p != "" {
		if q.ByOperation, err = strconv.ParseBool(p); err != nil {
			return q, httpapi.ParamError("groupByOperation", err)
		}
	}
	if q.Kinds, err = parseKinds(v["spanKind"]); err != nil {
		return q, err
	}
	end, err := httpapi.MillisParam(v, "endTs", now.UnixMilli())
	if err != nil {
		return q, err
	}
	q.End = time.UnixMilli(end)
	if q.Lookback, err = millisDuration(v, "lookback", spanmetrics.DefaultLookback); err != nil {
		return q, err
	}
	if q.Step, err = millisDuration(v, "step", spanmetrics.DefaultStep); err != nil {
		return q, err
	}
	q.RatePer, err = millisDuration(v, "ratePer", spanmetrics.DefaultRatePer)
	return q, err
}

// parseKinds returns span kinds as stores name them.
func parseKinds(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{spanmetrics.DefaultKind}, nil
	}
	kinds := make([]string, len(names))
	for i, name := range names {
		switch name {
		case "unspecified":
		case "internal", "server", "client", "producer", "consumer":
			kinds[i] = name
		default:
			return nil, httpapi.ParamError("spanKind", fmt.Errorf("unsupported span kind: '%s'", name))
		}
	}
	return kinds, nil
}

// millisDuration parses a non-negative number of milliseconds. It is limited to the range of a
// Duration.
func millisDuration(v url.Values, name string, absent time.Duration) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := httpapi.MillisParam(v, name, absent.Milliseconds())
	if err == nil && ms < 0 {
		err = httpapi.ParamError(name, httpapi.ErrNegative)
	}
	return time.Duration(min(ms, most)) * time.Millisecond, err
}
