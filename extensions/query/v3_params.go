package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var (
	errNoTimes    = errors.New("query.startTimeMin and query.startTimeMax are required")
	errTimesOrder = errors.New("query.startTimeMin must be before query.startTimeMax")
)

// paramV3 returns a parameter that may also be written in the older way: startTimeMin is start_time_min there.
func paramV3(v url.Values, name string) string {
	if p := v.Get(name); p != "" {
		return p
	}
	return v.Get(olderName(name))
}

func olderName(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func parseTraceV3(r *http.Request) (ref tracestore.TraceRef, raw bool, err error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ref, false, err
	}
	if ref.ID, err = parsePathID(r.PathValue("id")); err != nil {
		return ref, false, malformed("trace_id", err)
	}
	if ref.From, err = timeV3(v, "startTime"); err != nil {
		return ref, false, err
	}
	if ref.To, err = timeV3(v, "endTime"); err != nil {
		return ref, false, err
	}
	raw, err = boolV3(v, "rawTraces")
	return ref, raw, err
}

// parseSearchV3 reads the parameters of a search. The errors are for the client.
func parseSearchV3(query string) (s search, err error) {
	v, err := url.ParseQuery(query)
	if err != nil {
		return s, err
	}
	s = search{service: paramV3(v, "query.serviceName"), operation: paramV3(v, "query.operationName"), limit: defaultLimit}
	if s.from, err = timeV3(v, "query.startTimeMin"); err != nil {
		return s, err
	}
	if s.to, err = timeV3(v, "query.startTimeMax"); err != nil {
		return s, err
	}
	if s.limit, err = depthV3(v); err != nil {
		return s, err
	}
	if s.minDuration, err = durationV3(v, "query.durationMin"); err != nil {
		return s, err
	}
	if s.maxDuration, err = durationV3(v, "query.durationMax"); err != nil {
		return s, err
	}
	if p := v.Get("query.attributes"); p != "" {
		if err := json.Unmarshal([]byte(p), &s.tags); err != nil {
			return s, malformed("query.attributes", err)
		}
	}
	if s.raw, err = boolV3(v, "query.rawTraces"); err != nil {
		return s, err
	}
	if s.set, err = setParam(v, "query.q"); err != nil {
		return s, err
	}
	return s, s.checkV3()
}

func (s *search) checkV3() error {
	switch {
	case s.from.IsZero() || s.to.IsZero():
		return errNoTimes
	case !s.from.Before(s.to):
		return errTimesOrder
	}
	return nil
}

// depthV3 returns how many traces are asked for, 0 for as many as are allowed.
func depthV3(v url.Values) (int, error) {
	name := "query.searchDepth"
	p := paramV3(v, name)
	if p == "" {
		name = "query.num_traces"
		p = v.Get(name)
	}
	if p == "" {
		return defaultLimit, nil
	}
	n, err := strconv.ParseInt(p, 10, 32)
	if err != nil {
		return 0, malformed(name, err)
	}
	return int(n), nil
}

func timeV3(v url.Values, name string) (time.Time, error) {
	p := paramV3(v, name)
	if p == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, p)
	if err != nil {
		return t, malformed(name, err)
	}
	return t, nil
}

func durationV3(v url.Values, name string) (time.Duration, error) {
	p := paramV3(v, name)
	if p == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(p)
	if err != nil {
		return 0, malformed(name, err)
	}
	return d, nil
}

func boolV3(v url.Values, name string) (bool, error) {
	p := paramV3(v, name)
	if p == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(p)
	if err != nil {
		return false, malformed(name, err)
	}
	return b, nil
}

func malformed(name string, err error) error {
	return fmt.Errorf("malformed parameter %s: %w", name, err)
}
