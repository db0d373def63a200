package uiapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultLimit = 20 // traces
	// progressInterval is the minimum time between two lines of progress, and the intended maximum
	// duration of a step of a search.
	progressInterval = 200 * time.Millisecond
	// firstStep is the maximum number of spans that the store examines before the first line of
	// progress.
	firstStep = 100_000
	// maxTogether is the maximum number of traces whose matching spans are read together. The
	// number starts at 1 and doubles, so that the first trace is sent immediately.
	maxTogether = 16
)

const ndjson = "application/x-ndjson"

// searchParams are the parameters of GET /api/ui/v1/search.
type searchParams struct {
	text   string
	window core.Window
	set    storequery.SpanSet
	limit  int
	after  tracestore.Cursor
	match  *matchReader // nil if the matching spans are not requested
}

func (a *API) parseSearch(r *http.Request) (s searchParams, err error) {
	v, err := httpapi.Query(r)
	if err != nil {
		return s, err
	}
	if s.window, err = route.WindowParams(v, a.backend.Now()); err != nil {
		return s, err
	}
	q, err := httpapi.QueryParam(a.backend.Language(r.Context()), v, "q")
	if err != nil {
		return s, err
	}
	s.text, s.set = v.Get("q"), q.Set
	matched, err := route.BoolParam(v, "matched")
	if err != nil {
		return s, err
	}
	if matched || len(q.Select) > 0 {
		s.match = newMatchReader(q, s.window)
	}
	most := a.backend.Limits().Traces
	if s.limit, err = route.CountParam(v, "limit", min(defaultLimit, most), most); err != nil {
		return s, err
	}
	s.after, err = parseCursor(v.Get("cursor"))
	return s, err
}

var errCursor = errors.New("must be the value of next in an earlier response")

// parseCursor is the inverse of formatCursor.
func parseCursor(text string) (c tracestore.Cursor, err error) {
	if text == "" {
		return c, nil
	}
	start, id, ok := strings.Cut(text, ".")
	if c.Start, err = strconv.ParseUint(start, 10, 64); err == nil && ok && len(id) == hex.EncodedLen(len(c.ID)) {
		_, err = hex.Decode(c.ID[:], []byte(id))
	} else {
		err = errCursor
	}
	if err != nil {
		return tracestore.Cursor{}, httpapi.ParamError("cursor", errCursor)
	}
	c.Set = true
	return c, nil
}

func formatCursor(c tracestore.Cursor) string {
	if !c.Set {
		return ""
	}
	return strconv.FormatUint(c.Start, 10) + "." + hex.EncodeToString(c.ID[:])
}

// search serves GET /api/ui/v1/search with one JSON object per line. The last one is the outcome.
func (a *API) search(w http.ResponseWriter, r *http.Request) {
	params, err := a.parseSearch(r)
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	if route.HeadOnly(w, r, ndjson) {
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpFindSummaries)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer slot.Release()
	slot.Describe(params.text)
	s := searchRun{backend: a.backend, slot: slot, out: route.NewLines(w, ndjson), params: &params, after: params.after, together: 1,
		search: storequery.NewSearch(slot.Store(), params.set, tracestore.WantSummaries)}
	defer s.search.Close()
	if err = s.progress(); err == nil {
		err = slot.Measure(func() (int, error) {
			err := s.run()
			return s.found, err
		})
	}
	if !httpapi.Gone(r, err) {
		a.backend.LogUndelivered(s.end(err))
	}
}

// searchRun is a running search. It queries the store in steps, and sends lines about its progress
// between them.
type searchRun struct {
	backend *core.Backend
	slot    *core.Slot
	out     *route.Lines
	params  *searchParams
	search  *storequery.Search

	after          tracestore.Cursor // where the next step begins
	lastProgress   time.Time
	found, scanned int
	together       int                // number of traces whose matching spans are read together
	lost           tracestore.Reasons // why earlier steps were incomplete, except for the budget and the time
	outcome        tracestore.Outcome // of the last step
}

// run runs one step after the other.
func (s *searchRun) run() error {
	maxScanned := s.backend.Limits().Scanned
	for step := firstStep; ; {
		began, from := s.backend.Now(), s.after
		if err := s.step(min(step, maxScanned-s.scanned)); err != nil {
			return err
		}
		o := &s.outcome
		s.scanned += o.Scanned
		s.slot.SetScanned(s.scanned)
		if o.Complete() || !o.Next.Set || o.Next == from || s.found >= s.params.limit {
			return nil
		}
		if s.lost.Complete() {
			s.lost = o.Without(tracestore.ReasonBudget, tracestore.ReasonTime)
		}
		if s.scanned >= maxScanned {
			o.Reasons = tracestore.BudgetSpent(s.scanned)
			return nil
		}
		// Unless the search evaluates whole traces, a step that starts within a trace reexamines
		// some of its spans, so steps grow until they are longer.
		if s.backend.Now().Sub(began) < progressInterval/2 || o.Scanned > 2*step {
			step = min(2*step, maxScanned)
		}
		if err := s.progress(); err != nil {
			return err
		}
	}
}

// step sends the traces that it finds by examining at most the given number of spans.
func (s *searchRun) step(spans int) error {
	budget := s.slot.Budget()
	budget.Spans = spans
	q := tracestore.Query{
		Tenant: s.slot.Tenant(), From: s.params.window.From, To: s.params.window.To, Limit: s.params.limit - s.found, After: s.after,
		Budget: budget,
	}
	results, err := s.search.Find(s.slot.Context(), q)
	if err != nil {
		return err
	}
	var waiting []tracestore.Result // until their matching spans are read together
	for res, err := range results.All {
		if err != nil {
			return cmp.Or(s.traces(waiting, false), err)
		}
		waiting = append(waiting, res)
		if s.params.match != nil && len(waiting) < s.together {
			continue
		}
		if err := s.traces(waiting, true); err != nil {
			return err
		}
		waiting, s.together = waiting[:0], min(2*s.together, maxTogether)
	}
	if err := s.traces(waiting, true); err != nil {
		return err
	}
	s.outcome = results.Outcome()
	s.after = s.outcome.Next
	return nil
}

// traces sends a line about each of several traces, with their matching spans if withMatch is true
// and they are requested.
func (s *searchRun) traces(list []tracestore.Result, withMatch bool) error {
	found := make([]*match, len(list))
	if s.params.match != nil && withMatch && len(list) > 0 {
		summaries := make([]*tracestore.Summary, len(list))
		for i := range list {
			summaries[i] = list[i].Summary
		}
		var err error
		if found, err = s.params.match.find(s.slot, summaries); err != nil {
			return err
		}
	}
	for i := range list {
		res := &list[i]
		err := s.out.Line(func(dst []byte) []byte {
			dst = strconv.AppendUint(append(dst, `{"trace":{"match":"`...), res.Start, 10)
			dst = route.AppendSummary(append(dst, '"'), res.Summary)
			return append(found[i].appendJSON(dst), "}}"...)
		})
		if err != nil {
			return err
		}
		s.found++
		s.after = tracestore.Cursor{Start: res.Start, ID: res.ID, Set: true}
	}
	return nil
}

// progress writes a progress line with the number of examined spans, unless the previous one was
// written less than progressInterval ago.
func (s *searchRun) progress() error {
	now := s.backend.Now()
	if s.scanned > 0 && now.Sub(s.lastProgress) < progressInterval {
		return nil
	}
	s.lastProgress = now
	return s.out.Line(func(dst []byte) []byte {
		return append(strconv.AppendInt(append(dst, `{"progress":{"scanned":`...), int64(s.scanned), 10), "}}"...)
	})
}

// end sends the outcome, or the error if there is none.
func (s *searchRun) end(err error) error {
	reasons := s.outcome.Reasons
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reasons = tracestore.Because(tracestore.ReasonTime, s.backend.TimeoutText(err))
	case err != nil:
		status, text := s.backend.HTTPError(http.Header{}, err)
		return s.out.Value("error", httpapi.Error{Code: status, Msg: text})
	}
	reasons.Add(s.lost...)
	return s.out.Value("outcome", struct {
		Complete bool   `json:"complete"`
		Reason   string `json:"reason"`
		Traces   int    `json:"traces"`
		Scanned  int    `json:"scanned"`
		Next     string `json:"next"` // cursor of the next page; "" if there is none
	}{reasons.Complete(), reasons.Text(), s.found, s.scanned, formatCursor(s.after)})
}
