package httpapi

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// SetParam parses a parameter in the search language. An absent parameter selects all spans. Errors
// show where the mistake is.
func SetParam(l traceql.Language, v url.Values, name string) (storequery.SpanSet, error) {
	q, err := QueryParam(l, v, name)
	return q.Set, err
}

// QueryParam is like SetParam, but also returns the fields that the search selects.
func QueryParam(l traceql.Language, v url.Values, name string) (traceql.Query, error) {
	text := v.Get(name)
	if text == "" {
		return traceql.Query{Set: storequery.Select{}}, nil
	}
	q, err := l.Parse(text)
	if err != nil {
		return traceql.Query{}, ParamError(name, detailed(err))
	}
	return q, nil
}

// OptionalSetParam is like SetParam, but returns nil for an absent parameter.
func OptionalSetParam(l traceql.Language, v url.Values, name string) (storequery.SpanSet, error) {
	if v.Get(name) == "" {
		return nil, nil
	}
	return SetParam(l, v, name)
}

// ConditionParam is like SetParam, but returns a condition on single spans.
func ConditionParam(l traceql.Language, v url.Values, name string) (tracestore.Expr, error) {
	set, err := SetParam(l, v, name)
	if err != nil {
		return nil, err
	}
	e, err := SpanCondition(set)
	if errors.Is(err, errStructure) {
		err = detailed(traceql.MarkStructure(v.Get(name), err.Error()))
	}
	if err != nil {
		return nil, ParamError(name, err)
	}
	return e, nil
}

// ParseFields parses fields of the search language. Each text can hold several, separated by
// commas.
func ParseFields(l traceql.Language, lists ...string) ([]tracestore.Field, error) {
	text := strings.Join(lists, ", ")
	if text == "" {
		return nil, nil
	}
	fields, err := l.ParseFields(text)
	if err != nil {
		return nil, detailed(err)
	}
	return fields, nil
}

// detailed returns an error with the line and position of a syntax error.
func detailed(err error) error {
	var wrong *traceql.Error
	if errors.As(err, &wrong) {
		return errors.New(wrong.Detail())
	}
	return err
}

var (
	errStructure = errors.New("search must select single spans: use one pair of braces, " +
		"or several with || or | between them; leave out count() and other aggregates, and other operators between braces")
	errTracePlace = errors.New("search must select single spans, not whole traces: " +
		"leave out calculations, comparisons of two fields, attributes of the parent, " + tracePlaces())
)

// tracePlaces lists the fields that depend on whole traces.
func tracePlaces() string {
	var names []string
	for _, p := range tracestore.Places() {
		if p.OfTrace {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// SpanCondition returns the condition that holds on exactly the spans that a set selects. It
// returns an error, for the client, if there is no such condition.
func SpanCondition(set storequery.SpanSet) (tracestore.Expr, error) {
	switch set := set.(type) {
	case storequery.Select:
		if _, ofTrace := storequery.PlacesOf(set.Where); ofTrace {
			return nil, errTracePlace
		}
		return set.Where, nil
	case storequery.Or:
		left, err := SpanCondition(set.Left)
		if err != nil {
			return nil, err
		}
		right, err := SpanCondition(set.Right)
		if err != nil {
			return nil, err
		}
		return tracestore.Or{left, right}, nil
	case storequery.Pipeline:
		return pipelineCondition(set)
	}
	return nil, errStructure
}

// pipelineCondition is [SpanCondition] for a pipeline. Groups alone select no other spans.
func pipelineCondition(p storequery.Pipeline) (tracestore.Expr, error) {
	sets := []storequery.SpanSet{p.Set}
	for _, stage := range p.Stages {
		switch stage := stage.(type) {
		case storequery.Filter:
			return nil, errStructure
		case storequery.Refine:
			sets = append(sets, stage.Set)
		}
	}
	var all tracestore.And
	for _, set := range sets {
		where, err := SpanCondition(set)
		if err != nil {
			return nil, err
		}
		if where != nil {
			all = append(all, where)
		}
	}
	switch len(all) {
	case 0:
		return nil, nil //nolint:nilnil // all spans
	case 1:
		return all[0], nil
	}
	return all, nil
}
