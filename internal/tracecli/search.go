package tracecli

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
)

const (
	defaultLimit = 20
	defaultFrom  = "1h"
)

// search are the flags of the command of that name.
type search struct {
	common
	service, operation, from, to string
	tags                         map[string]string
	min, max                     pipeline.Duration
	limit                        int
	errors                       bool
	expression                   string // in the search language
}

func (s *search) define(fs *flag.FlagSet) {
	s.common.define(fs)
	s.tags = map[string]string{}
	fs.StringVar(&s.service, "service", "", "Service of the span.")
	fs.StringVar(&s.operation, "operation", "", "Its operation.")
	fs.Func("tag", "A tag that it has, as `key=value`; may be repeated. One span must fit everything.", s.addTag)
	fs.TextVar(&s.min, "min", pipeline.Duration(0), "Its shortest duration.")
	fs.TextVar(&s.max, "max", pipeline.Duration(0), "Its longest duration.")
	fs.StringVar(&s.from, "from", defaultFrom, "When it starts at the earliest: RFC 3339, or how long ago ("+defaultFrom+").")
	fs.StringVar(&s.to, "to", "0", "When it starts at the latest (now).")
	fs.IntVar(&s.limit, "limit", defaultLimit, fmt.Sprintf("How many traces are listed (%d).", defaultLimit))
	fs.BoolVar(&s.errors, "errors", false, "Only spans with an error, as --tag error=true.")
}

func (s *search) addTag(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not of the form `key=value`", text)
	}
	if _, again := s.tags[key]; again {
		return fmt.Errorf("%q is asked for twice", key)
	}
	s.tags[key] = value
	return nil
}

// conditions are what a search asks for.
type conditions struct {
	service, operation string
	from, to           time.Time
	min, max           time.Duration // 0: any
	tags               string        // a JSON object; "" for none
	expression         string        // in the search language; "" for none
	limit              int
}

// conditions checks the flags.
func (s *search) conditions(now time.Time) (*conditions, error) {
	from, errFrom := moment("from", s.from, now)
	to, errTo := moment("to", s.to, now)
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
			errs = append(errs, fmt.Errorf("--errors and --tag error=%s exclude each other", value))
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

// checkExpression finds mistakes before a service is asked, and shows where they are.
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

// params returns those conditions that are set, under the names of an API.
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
	s.define(fs)
	return func(ctx context.Context, in pipeline.Invocation) error {
		switch len(in.Args) {
		case 0:
		case 1:
			s.expression = in.Args[0]
			if s.expression == "" {
				return pipeline.BadUsage("the search is empty; {} is all spans")
			}
		default:
			return pipeline.BadUsage("give one search in quotes, as '{ duration > 1s }', not %d arguments", len(in.Args))
		}
		c, err := s.conditions(t.env.Now())
		if err != nil {
			return pipeline.BadUsage("%w", err)
		}
		if err := checkExpression(c.expression); err != nil {
			return err // without the usage, which would push out of sight what it shows
		}
		return t.ask(ctx, &s.common, func(ctx context.Context, api *client) error {
			if s.json {
				return api.get(ctx, summariesPath, c.summariesQuery(), t.copyJSON(in))
			}
			found, err := find(ctx, api, c, in.Stderr)
			if err != nil {
				return err
			}
			return t.showFound(in, found, c.limit)
		})
	}
}

const summariesPath = "/api/v3/trace-summaries"

// find asks for summaries, or for whole traces where the service has no summaries: those of before 2.x have not.
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
		if c.expression != "" { // which would be ignored
			return nil, fmt.Errorf("%w; or the service is too old for searches of this kind", err)
		}
		err = api.get(ctx, "/api/traces", c.tracesQuery(), gather("data", (*reader).summarize))
	}
	return found, err
}

// showFound writes a table, and what there is to say about it.
func (t tool) showFound(in pipeline.Invocation, found []summary, limit int) error {
	if len(found) == 0 {
		fmt.Fprintln(in.Stderr, "no trace fits")
		return nil
	}
	if len(found) >= limit {
		fmt.Fprintf(in.Stderr, "there may be more than these %d: --limit\n", len(found))
	}
	return writeSummaries(in.Stdout, screenOf(in.Stdout, t.getenv), t.zone, found)
}
