package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultLimit    = 100            // traces
	defaultLookback = 48 * time.Hour // of a search that does not say when to start
)

var (
	errNoService = errors.New("parameter 'service' is required")
	errWindow    = errors.New("'start' must not be after 'end'")
)

// search is what the parameters of GET /api/traces ask for: the traces with these ids, or those with a span that fits everything else.
type search struct {
	ids                      []otlpdata.TraceID
	set                      storequery.SpanSet // what is asked for in the search language; nil: nothing
	service, operation       string
	from, to                 time.Time // inclusive
	minDuration, maxDuration time.Duration
	tags                     map[string]string
	limit                    int // 0 or less: as many as are allowed
	raw                      bool
}

// parseSearch reads the parameters. Of repeated ones the first counts, besides tag, tags and traceID. The errors are for the client.
func parseSearch(v url.Values, now time.Time) (s search, err error) {
	s = search{service: v.Get("service"), operation: v.Get("operation"), limit: defaultLimit}
	if s.from, err = timeParam(v, "start", now.Add(-defaultLookback)); err != nil {
		return s, err
	}
	if s.to, err = timeParam(v, "end", now); err != nil {
		return s, err
	}
	if s.tags, err = parseTags(v["tag"], v["tags"]); err != nil {
		return s, err
	}
	if p := v.Get("limit"); p != "" {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil {
			return s, err
		}
		s.limit = int(n)
	}
	if s.minDuration, err = durationParam(v, "minDuration"); err != nil {
		return s, err
	}
	if s.maxDuration, err = durationParam(v, "maxDuration"); err != nil {
		return s, err
	}
	if s.raw, err = boolParam(v, "raw"); err != nil {
		return s, err
	}
	if s.ids, err = traceIDParams(v["traceID"]); err != nil {
		return s, err
	}
	if s.set, err = setParam(v, "q"); err != nil {
		return s, err
	}
	return s, s.check()
}

func (s *search) check() error {
	if s.service == "" && s.set == nil && len(s.ids) == 0 {
		return errNoService
	}
	if s.set != nil && s.from.After(s.to) { // without a set it has always found nothing
		return errWindow
	}
	if s.minDuration != 0 && s.maxDuration != 0 && s.maxDuration < s.minDuration {
		return errors.New("'maxDuration' should be greater than 'minDuration'")
	}
	return nil
}

// timeParam reads microseconds since the Unix epoch.
func timeParam(v url.Values, name string, absent time.Time) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	us, err := strconv.ParseInt(p, 10, 64)
	if err != nil {
		return time.Time{}, paramError(name, err)
	}
	return time.UnixMicro(us), nil
}

func durationParam(v url.Values, name string) (time.Duration, error) {
	p := v.Get(name)
	if p == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(p)
	if err != nil {
		return 0, paramError(name, err)
	}
	return d, nil
}

func boolParam(v url.Values, name string) (bool, error) {
	p := v.Get(name)
	if p == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(p)
	if err != nil {
		return false, paramError(name, err)
	}
	return b, nil
}

// setParam reads a parameter in the search language; nil where it is absent.
func setParam(v url.Values, name string) (storequery.SpanSet, error) {
	if v.Get(name) == "" {
		return nil, nil
	}
	return parseSet(v, name)
}

func paramError(name string, err error) error {
	return fmt.Errorf("unable to parse param '%s': %w", name, err)
}

// parseTags reads `tag=key:value` and `tags={"key":"value"}`. Of a key that repeats the last value counts, and tags count over tag.
func parseTags(pairs, objects []string) (map[string]string, error) {
	tags := make(map[string]string)
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, ":")
		if !ok {
			return nil, fmt.Errorf("malformed 'tag' parameter, expecting key:value, received: %s", p)
		}
		tags[key] = value
	}
	for _, o := range objects {
		var object map[string]string
		if err := json.Unmarshal([]byte(o), &object); err != nil {
			return nil, fmt.Errorf("malformed 'tags' parameter, cannot unmarshal JSON: %w", err)
		}
		maps.Copy(tags, object)
	}
	return tags, nil
}

// traceIDParams reads ids and leaves out those that repeat.
func traceIDParams(params []string) ([]otlpdata.TraceID, error) {
	var ids []otlpdata.TraceID
	seen := make(map[otlpdata.TraceID]bool, len(params))
	for _, p := range params {
		id, err := parseTraceID(p)
		if err != nil {
			return nil, fmt.Errorf("cannot parse traceID param: %w", err)
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// query returns what to ask the store. The end is inclusive in microseconds, which is how clients see starts.
func (s *search) query(tenant string, max *limits) tracestore.Query {
	limit := s.limit
	if limit <= 0 || limit > max.traces {
		limit = max.traces
	}
	return tracestore.Query{
		Tenant: tenant,
		From:   s.from,
		To:     s.to.Add(time.Microsecond - time.Nanosecond),
		Where:  s.where(),
		Limit:  limit,
		Budget: tracestore.Budget{Spans: max.scanned, TraceSpans: max.traceSize},
	}
}

// exactly is query for clients whose times are in nanoseconds.
func (s *search) exactly(tenant string, max *limits) tracestore.Query {
	q := s.query(tenant, max)
	q.From, q.To = s.from, s.to
	return q
}
