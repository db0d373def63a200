package jaegerapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var (
	errWindow    = errors.New("'start' must not be after 'end'")
	errDurations = errors.New("'maxDuration' should be greater than 'minDuration'")
)

// parseSearch parses the parameters of GET /api/traces. If a parameter is repeated, the first value
// is used; of tag, tags and traceID, all values are used. The errors are for the client.
func parseSearch(l traceql.Language, v url.Values, now time.Time) (s core.Search, err error) {
	s = core.Search{Service: v.Get("service"), Operation: v.Get("operation"), Limit: core.DefaultSearchLimit}
	if s.From, err = httpapi.MicrosParam(v, "start", now.Add(-core.DefaultSearchLookback)); err != nil {
		return s, err
	}
	if s.To, err = httpapi.MicrosParam(v, "end", now); err != nil {
		return s, err
	}
	if s.Tags, err = parseTags(v["tag"], v["tags"]); err != nil {
		return s, err
	}
	if p := v.Get("limit"); p != "" {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil {
			return s, err
		}
		s.Limit = int(n)
	}
	if s.MinDuration, err = httpapi.DurationParam(v, "minDuration"); err != nil {
		return s, err
	}
	if s.MaxDuration, err = httpapi.DurationParam(v, "maxDuration"); err != nil {
		return s, err
	}
	if s.Raw, err = httpapi.BoolParam(v, "raw"); err != nil {
		return s, err
	}
	if s.IDs, err = traceIDParams(v["traceID"]); err != nil {
		return s, err
	}
	if s.Set, err = httpapi.OptionalSetParam(l, v, "q"); err != nil {
		return s, err
	}
	return s, checkSearch(&s)
}

func checkSearch(s *core.Search) error {
	switch {
	case s.Set != nil && s.From.After(s.To): // without q, existing clients expect an empty result
		return errWindow
	case s.MinDuration != 0 && s.MaxDuration != 0 && s.MaxDuration < s.MinDuration:
		return errDurations
	}
	return nil
}

// parseTags parses `tag=key:value` and `tags={"key":"value"}`. The last value of a key is used, and
// tags override tag.
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

// traceIDParams parses trace ids and removes duplicates.
func traceIDParams(params []string) ([]otlpdata.TraceID, error) {
	var ids []otlpdata.TraceID
	seen := make(map[otlpdata.TraceID]bool, len(params))
	for _, p := range params {
		id, err := core.ParseTraceID(p)
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
