package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// The routes under /api/ui/v1/ are for our own web page, and change together with it. Times in them are decimal nanoseconds since the Unix
// epoch, in answers as strings, since JavaScript's numbers have no room for them; durations in parameters are like `1.5s`, in answers
// numbers of nanoseconds. Ids are hex digits in their full length. Lists of many things of one form are columns: an object with a list for each member, all of one length.

func (h *handler) pageRoutes() []route {
	return []route{
		{"GET /api/ui/v1/config", h.uiConfig},
		{"GET /api/ui/v1/search", h.uiSearch},
		{"GET /api/ui/v1/heatmap", h.uiRoute(opAggregate, h.heatmap)},
		{"GET /api/ui/v1/facets", h.uiRoute(opAggregate, h.facets)},
		{"GET /api/ui/v1/compare", h.uiRoute(opAggregate, h.compare)},
		{"GET /api/ui/v1/keys", h.uiRoute(opGetTags, h.keys)},
		{"GET /api/ui/v1/values", h.uiRoute(opGetTagValues, h.values)},
		{"GET /api/ui/v1/outline/{id}", h.outline},
		{"GET /api/ui/v1/tail", h.tail},
	}
}

// uiLookback is how long before its end a window begins that does not say when.
const uiLookback = time.Hour

// window is the bounds on starts of a question, both inclusive.
type window struct{ from, to time.Time }

// parseWindow reads `start` and `end`.
func parseWindow(v url.Values, now time.Time) (w window, err error) {
	if w.to, err = nanosParam(v, "end", now); err != nil {
		return w, err
	}
	if w.from, err = nanosParam(v, "start", w.to.Add(-uiLookback)); err != nil {
		return w, err
	}
	if w.to.Before(w.from) {
		return w, errors.New("'start' must not be after 'end'")
	}
	return w, nil
}

// nanosParam reads nanoseconds since the Unix epoch, which reach to the year 2262 here.
func nanosParam(v url.Values, name string, absent time.Time) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	ns, err := strconv.ParseInt(p, 10, 64)
	if err == nil && ns < 0 {
		err = errNegative
	}
	if err != nil {
		return time.Time{}, paramError(name, err)
	}
	return time.Unix(0, ns), nil
}

// countParam reads a number from 1 to most.
func countParam(v url.Values, name string, absent, most int) (int, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(p)
	if err == nil && (n < 1 || n > most) {
		err = fmt.Errorf("it must be from 1 to %d", most)
	}
	if err != nil {
		return 0, paramError(name, err)
	}
	return n, nil
}

// parseSet reads a search; nothing chooses all spans. Errors show where it is wrong.
func parseSet(v url.Values, name string) (storequery.SpanSet, error) {
	text := v.Get(name)
	if text == "" {
		return storequery.Select{}, nil
	}
	q, err := traceql.Parse(text)
	var wrong *traceql.Error
	if errors.As(err, &wrong) {
		err = errors.New(wrong.Detail())
	}
	if err != nil {
		return nil, paramError(name, err)
	}
	return q.Set, nil
}

// parseCondition is parseSet for what is decided span by span.
func parseCondition(v url.Values, name string) (tracestore.Expr, error) {
	set, err := parseSet(v, name)
	if err != nil {
		return nil, err
	}
	e, err := spanCondition(set)
	if err != nil {
		return nil, paramError(name, err)
	}
	return e, nil
}

var (
	errStructure = errors.New("this answer is about single spans, so the search must be one pair of braces, or several with || between them: " +
		"leave out &&, > and >> between braces")
	errTracePlace = errors.New("this answer is about single spans, so the search must not ask for what only whole traces have: " +
		"leave out trace.duration, trace.rootName and trace.rootService")
)

// spanCondition returns the condition that holds on exactly the spans that a set chooses. The error says why there is none.
func spanCondition(set storequery.SpanSet) (tracestore.Expr, error) {
	switch set := set.(type) {
	case storequery.Select:
		if asksForTrace(set.Where) {
			return nil, errTracePlace
		}
		return set.Where, nil
	case storequery.Or:
		left, err := spanCondition(set.Left)
		if err != nil {
			return nil, err
		}
		right, err := spanCondition(set.Right)
		if err != nil {
			return nil, err
		}
		return tracestore.Or{left, right}, nil
	}
	return nil, errStructure
}

// asksForTrace reports whether a condition looks at what only whole traces have.
func asksForTrace(e tracestore.Expr) bool {
	for f := range tracestore.Fields(e) {
		if f.Place.OfTrace() {
			return true
		}
	}
	return false
}

// parseQuery reads the parameters of a request.
func parseQuery(r *http.Request) (url.Values, error) { return url.ParseQuery(r.URL.RawQuery) }

// question is a request that was understood: it asks the store, and returns what to answer.
type question func(t *turn) (answer any, missing string, err error)

// uiRoute answers requests whose answer is one JSON value: parse reads the parameters; its errors are for the client.
func (h *handler) uiRoute(op operation, parse func(v url.Values) (question, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := parseQuery(r)
		var ask question
		if err == nil {
			ask, err = parse(v)
		}
		if err != nil {
			writeError(w, statusOf(err), err.Error())
			return
		}
		t, err := h.admit(r.Context())
		if err != nil {
			h.failed(w, r, err)
			return
		}
		defer t.done()
		var data any
		var missing string
		err = h.measure(op, func() (_ int, err error) {
			data, missing, err = ask(t)
			names, _ := data.(namesAnswer)
			return len(names.Names), err
		})
		if err != nil {
			h.failed(w, r, err)
			return
		}
		h.answerData(w, r, data, missing)
	}
}

// errCannot is matched by errors that say that this store cannot answer.
var errCannot = errors.New("this store cannot")

func statusOf(err error) int {
	if errors.Is(err, errCannot) {
		return http.StatusNotImplemented
	}
	return http.StatusBadRequest
}

// answerData writes one value in the envelope of all answers. missing says what is not in it, "" for nothing.
func (h *handler) answerData(w http.ResponseWriter, r *http.Request, data any, missing string) {
	body, err := json.Marshal(data)
	if err != nil {
		h.failed(w, r, err)
		return
	}
	var t tail
	if missing != "" {
		t.Errors = []apiError{{Msg: incompleteText + missing}}
	}
	l := newList(w, r)
	defer l.close()
	l.buf = append(l.buf, body...)
	h.finish(l, "", t)
}

// nanos is a time, or another number that may be too great for JavaScript: a string in JSON.
type nanos uint64

// MarshalJSON implements json.Marshaler.
func (n nanos) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(n), 10), '"'), nil
}

// nanosOf returns a time of a window.
func nanosOf(t time.Time) nanos { return nanos(max(t.UnixNano(), 0)) }

// estimate returns how many there are where a share of them was counted.
func estimate(counted uint64, share float64) uint64 {
	if share <= 0 || share >= 1 {
		return counted
	}
	return uint64(min(math.Round(float64(counted)/share), math.MaxInt64))
}
