package v3

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var (
	errNoTimes    = errors.New("query.startTimeMin and query.startTimeMax are required")
	errTimesOrder = errors.New("query.startTimeMin must be before query.startTimeMax")
)

// param returns a parameter. It also accepts the old name: start_time_min for startTimeMin.
func param(v url.Values, name string) string {
	if p := v.Get(name); p != "" {
		return p
	}
	return v.Get(snakeCase(name))
}

func snakeCase(name string) string {
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

func parseTraceRequest(r *http.Request) (ref tracestore.TraceRef, raw bool, err error) {
	v, err := httpapi.Query(r)
	if err != nil {
		return ref, false, err
	}
	if ref.ID, err = httpapi.ParsePathID(r.PathValue("id")); err != nil {
		return ref, false, malformed("trace_id", err)
	}
	if ref.From, err = timeParam(v, "startTime"); err != nil {
		return ref, false, err
	}
	if ref.To, err = timeParam(v, "endTime"); err != nil {
		return ref, false, err
	}
	raw, err = boolParam(v, "rawTraces")
	return ref, raw, err
}

// parseSearch parses the parameters of a search. The errors are for the client.
func parseSearch(l traceql.Language, r *http.Request) (s core.Search, err error) {
	v, err := httpapi.Query(r)
	if err != nil {
		return s, err
	}
	s = core.Search{Service: param(v, "query.serviceName"), Operation: param(v, "query.operationName")}
	if s.From, err = timeParam(v, "query.startTimeMin"); err != nil {
		return s, err
	}
	if s.To, err = timeParam(v, "query.startTimeMax"); err != nil {
		return s, err
	}
	if s.Limit, err = limitParam(v); err != nil {
		return s, err
	}
	if s.MinDuration, err = durationParam(v, "query.durationMin"); err != nil {
		return s, err
	}
	if s.MaxDuration, err = durationParam(v, "query.durationMax"); err != nil {
		return s, err
	}
	if p := v.Get("query.attributes"); p != "" {
		if err := json.Unmarshal([]byte(p), &s.Tags); err != nil {
			return s, malformed("query.attributes", err)
		}
	}
	if s.Raw, err = boolParam(v, "query.rawTraces"); err != nil {
		return s, err
	}
	if s.Set, err = httpapi.OptionalSetParam(l, v, "query.q"); err != nil {
		return s, err
	}
	s.SetText = v.Get("query.q")
	if p := v.Get("query.filter"); p != "" {
		where, err := queryfilter.ParseJSON(p)
		if err == nil {
			err = s.SetFilter(l, where, p)
		}
		if err != nil {
			return s, malformed("query.filter", err)
		}
	}
	if err := checkTimes(&s); err != nil {
		return s, err
	}
	return s, parsePage(&s, v, server.Tenant(r.Context()))
}

// parsePage parses the parameters of pages, if there are any.
func parsePage(s *core.Search, v url.Values, tenant string) error {
	const sizeName, tokenName = "query.pagination.pageSize", "query.pagination.pageToken"
	sizeText, token := param(v, sizeName), param(v, tokenName)
	if sizeText == "" && token == "" {
		return nil
	}
	size := int64(0)
	if sizeText != "" {
		var err error
		if size, err = strconv.ParseInt(sizeText, 10, 32); err != nil {
			return malformed(sizeName, err)
		}
	}
	if err := s.SetPage(int(size), token, tenant); err != nil {
		return malformed("query.pagination", err)
	}
	return nil
}

func checkTimes(s *core.Search) error {
	switch {
	case s.From.IsZero() || s.To.IsZero():
		return errNoTimes
	case !s.From.Before(s.To):
		return errTimesOrder
	}
	return nil
}

// limitParam returns the maximum number of traces; 0 or less means max_limit.
func limitParam(v url.Values) (int, error) {
	name := "query.searchDepth"
	p := param(v, name)
	if p == "" {
		name = "query.num_traces"
		p = v.Get(name)
	}
	if p == "" {
		return core.DefaultSearchLimit, nil
	}
	n, err := strconv.ParseInt(p, 10, 32)
	if err != nil {
		return 0, malformed(name, err)
	}
	return int(n), nil
}

func timeParam(v url.Values, name string) (time.Time, error) {
	p := param(v, name)
	if p == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, p)
	if err != nil {
		return t, malformed(name, err)
	}
	return t, nil
}

func durationParam(v url.Values, name string) (time.Duration, error) {
	p := param(v, name)
	if p == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(p)
	if err != nil {
		return 0, malformed(name, err)
	}
	return d, nil
}

func boolParam(v url.Values, name string) (bool, error) {
	p := param(v, name)
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
