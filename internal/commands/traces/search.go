package traces

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

const (
	defaultLimit = 20
	defaultFrom  = "1h"
)

// search holds the flags of the command search.
type search struct {
	commonFlags
	service, operation, from, to string
	tags                         map[string]string
	min, max                     pipeline.Duration
	limit                        int
	errors                       bool
	expression                   string // in the search language
}

func (s *search) define(fs *flag.FlagSet, getenv func(string) string) {
	s.commonFlags.define(fs, getenv)
	s.tags = map[string]string{}
	fs.StringVar(&s.service, "service", "", "Service name. With other flags, one span of the service must match all of them.")
	fs.StringVar(&s.operation, "operation", "", "Operation name.")
	fs.Func("tag", "Tag `key=value` of a span; may be repeated. One span must match all conditions.", s.addTag)
	fs.TextVar(&s.min, "min", pipeline.Duration(0), "Minimum span duration.")
	fs.TextVar(&s.max, "max", pipeline.Duration(0), "Maximum span duration.")
	fs.StringVar(&s.from, "from", defaultFrom, "Earliest start time: RFC 3339, or a duration before now.")
	fs.StringVar(&s.to, "to", "0", "Latest start time, in the same format as --from. The default is now.")
	fs.IntVar(&s.limit, "limit", defaultLimit, "Maximum number of traces.")
	fs.BoolVar(&s.errors, "errors", false, "Search only for spans with an error. Same as --tag error=true. "+
		"With --service, the span with the error must belong to that service.")
}

func (s *search) addTag(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not of the form `key=value`", text)
	}
	if _, again := s.tags[key]; again {
		return fmt.Errorf("duplicate key %q", key)
	}
	s.tags[key] = value
	return nil
}

// conditions are the conditions of a search.
type conditions struct {
	service, operation string
	from, to           time.Time
	min, max           time.Duration // 0 means any
	tags               string        // a JSON object; "" if there are none
	expression         string        // in the search language; "" if there is none
	limit              int
}

// conditions checks the flags and returns the conditions.
func (s *search) conditions(now time.Time) (*conditions, error) {
	from, errFrom := parseTime("from", s.from, now)
	to, errTo := parseTime("to", s.to, now)
	errs := []error{errFrom, errTo}
	if errFrom == nil && errTo == nil && !from.Before(to) {
		errs = append(errs, errors.New("--from must be before --to"))
	}
	if s.limit <= 0 {
		errs = append(errs, fmt.Errorf("--limit must be above 0, not %d", s.limit))
	}
	if s.max > 0 && s.max < s.min {
		errs = append(errs, errors.New("--max is below --min"))
	}
	if s.errors {
		if value, ok := s.tags["error"]; ok && value != "true" {
			errs = append(errs, fmt.Errorf("--errors and --tag error=%s cannot be combined", value))
		}
		s.tags["error"] = "true"
	}
	c := &conditions{
		service: s.service, operation: s.operation, from: from, to: to, min: s.min.Std(), max: s.max.Std(), limit: s.limit,
		expression: s.expression,
	}
	if len(s.tags) > 0 {
		tags, err := json.Marshal(s.tags)
		c.tags, errs = string(tags), append(errs, err)
	}
	return c, errors.Join(errs...)
}

// hint returns the end of the message that nothing was found: conditions in flags apply to a single
// span, which users may not expect with --service X --errors.
func (c *conditions) hint() string {
	n := 0
	for _, given := range []bool{c.service != "", c.operation != "", c.tags != "", c.min > 0 || c.max > 0} {
		if given {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	return "; one span must match all flags. If different spans of a trace may match them, " +
		"search for example for '{ service = \"web\" } && { error }'"
}

// checkExpression parses a search expression, and returns an error that shows the position of a
// mistake.
func checkExpression(text string) error {
	if text == "" {
		return nil
	}
	_, err := traceql.Parse(text)
	if wrong := (*traceql.Error)(nil); errors.As(err, &wrong) {
		return errors.New(wrong.Detail())
	}
	return err
}

// summariesQuery returns the parameters of GET /api/v3/trace-summaries.
func (c *conditions) summariesQuery() url.Values {
	return c.params(map[string]string{
		"service": "query.serviceName", "operation": "query.operationName", "tags": "query.attributes", "limit": "query.searchDepth",
		"expression": "query.q",
		"min":        "query.durationMin", "max": "query.durationMax", "from": "query.startTimeMin", "to": "query.startTimeMax",
	}, func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) })
}

// tracesQuery returns the parameters of GET /api/traces.
func (c *conditions) tracesQuery() url.Values {
	return c.params(map[string]string{
		"service": "service", "operation": "operation", "tags": "tags", "limit": "limit",
		"min": "minDuration", "max": "maxDuration", "from": "start", "to": "end",
	}, func(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) })
}

// params returns the conditions that are set, with the parameter names of an API.
func (c *conditions) params(names map[string]string, timeText func(time.Time) string) url.Values {
	v := url.Values{names["limit"]: {strconv.Itoa(c.limit)}, names["from"]: {timeText(c.from)}, names["to"]: {timeText(c.to)}}
	set := func(name, value string) {
		if value != "" {
			v.Set(names[name], value)
		}
	}
	set("service", c.service)
	set("operation", c.operation)
	set("tags", c.tags)
	set("expression", c.expression)
	if c.min > 0 {
		set("min", c.min.String())
	}
	if c.max > 0 {
		set("max", c.max.String())
	}
	return v
}

func (t tool) search(fs *flag.FlagSet) runner {
	var s search
	s.define(fs, t.getenv)
	return func(ctx context.Context, in commands.Invocation) error {
		switch len(in.Args) {
		case 0:
		case 1:
			s.expression = in.Args[0]
			if s.expression == "" {
				return commands.BadUsage("empty search; use {} for all spans")
			}
		default:
			return commands.BadUsage("expected one search in quotes, for example '{ duration > 1s }', got %d arguments", len(in.Args))
		}
		c, err := s.conditions(t.env.Now())
		if err != nil {
			return commands.BadUsage("%w", err)
		}
		if err := checkExpression(c.expression); err != nil {
			return err // without usage, which would hide the position of the mistake
		}
		return t.withClient(ctx, &s.commonFlags, func(ctx context.Context, api *client) error {
			if s.json {
				return api.get(ctx, summariesPath, c.summariesQuery(), t.copyJSON(in))
			}
			found, err := find(ctx, api, c, in.Stderr)
			if err != nil {
				return err
			}
			return t.showSummaries(in, found, c)
		})
	}
}

const summariesPath = "/api/v3/trace-summaries"

// find requests trace summaries. If the service does not support them (before version 2), it
// requests whole traces.
func find(ctx context.Context, api *client, c *conditions, stderr io.Writer) ([]summary, error) {
	var found []summary
	gather := func(list string, element func(*reader) (summary, error)) func(io.Reader) error {
		return func(body io.Reader) error {
			r := newReader(body, false)
			problems, err := r.answer(list, func() error {
				sum, err := element(r)
				found = append(found, sum)
				return err
			})
			warn(stderr, problems)
			return err
		}
	}
	err := api.get(ctx, summariesPath, c.summariesQuery(), gather("summaries", (*reader).summary))
	if refused := (*statusError)(nil); errors.As(err, &refused) && refused.unknown {
		if c.expression != "" { // would be ignored
			return nil, fmt.Errorf("%w; the query service may be too old to support search expressions", err)
		}
		err = api.get(ctx, "/api/traces", c.tracesQuery(), gather("data", (*reader).summarize))
	}
	return found, err
}

// showSummaries prints a table of traces.
func (t tool) showSummaries(in commands.Invocation, found []summary, c *conditions) error {
	if len(found) == 0 {
		fmt.Fprintln(in.Stderr, "no matching traces"+c.hint())
		return nil
	}
	if len(found) >= c.limit {
		fmt.Fprintf(in.Stderr, "showing %d traces; there may be more (--limit)\n", len(found))
	}
	return writeSummaries(in.Stdout, screenOf(in.Stdout, t.getenv), t.zone, found)
}
