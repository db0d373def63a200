package query

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultUILimit = 20 // traces
	// progressEvery is how long a search is silent at most, as long as the store lets it speak, and how often it tells of its progress.
	progressEvery = 200 * time.Millisecond
	// firstShare is how many spans the store may examine before the search tells of its progress for the first time.
	firstShare = 100_000
)

const ndjson = "application/x-ndjson"

// uiSearch is what the parameters of GET /api/ui/v1/search ask for.
type uiSearch struct {
	window
	set   storequery.SpanSet
	limit int
	after tracestore.Cursor
}

func (h *handler) parseUISearch(v url.Values) (s uiSearch, err error) {
	if s.window, err = parseWindow(v, h.now()); err != nil {
		return s, err
	}
	if s.set, err = parseSet(v, "q"); err != nil {
		return s, err
	}
	if s.limit, err = countParam(v, "limit", min(defaultUILimit, h.limits.traces), h.limits.traces); err != nil {
		return s, err
	}
	s.after, err = parseCursor(v.Get("cursor"))
	return s, err
}

var errCursor = errors.New("it must be what an earlier answer had as next")

// parseCursor reads what formatCursor wrote.
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
		return tracestore.Cursor{}, paramError("cursor", errCursor)
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

// uiSearch answers GET /api/ui/v1/search: one JSON object in each line, of which the last one is the outcome.
func (h *handler) uiSearch(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r)
	var s uiSearch
	if err == nil {
		s, err = h.parseUISearch(v)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if headOnly(w, r, ndjson) {
		return
	}
	t, err := h.admit(r.Context())
	if err != nil {
		h.failed(w, r, err)
		return
	}
	defer t.done()
	a := searchAnswer{handler: h, lines: newLines(w, ndjson), turn: t, uiSearch: s}
	if err = a.progress(); err == nil {
		err = h.measure(opFindSummaries, func() (int, error) { return a.found, a.run() })
	}
	if r.Context().Err() == nil && !errors.Is(err, errUndelivered) {
		h.delivered(a.end(err))
	}
}

// searchAnswer is a search under way.
type searchAnswer struct {
	*handler
	*lines
	turn *turn
	uiSearch
	told           time.Time // of the progress
	found, scanned int
	lost           string             // why earlier shares missed something
	outcome        tracestore.Outcome // of the last share
}

// budgetAdvice ends the reason of an outcome that lacks nothing but what Budget.Spans did not let the store examine. What else a store says
// is told to the client, so that a store with other words is not trusted too far.
const budgetAdvice = "narrow the search or the time range"

// run asks the store for one share of the work after the other: between two it tells of its progress.
func (a *searchAnswer) run() error {
	for share := firstShare; ; {
		began, from := a.now(), a.after
		if err := a.share(min(share, a.limits.scanned-a.scanned)); err != nil {
			return err
		}
		o := &a.outcome
		if a.scanned += o.Scanned; o.Complete || !o.Next.Set || o.Next == from || a.found >= a.limit {
			return nil
		}
		if a.lost == "" && !strings.HasSuffix(o.Reason, budgetAdvice) {
			a.lost = o.Reason
			if _, rest, ok := strings.Cut(o.Reason, budgetAdvice+"; "); ok {
				a.lost = rest
			}
		}
		if a.scanned >= a.limits.scanned {
			o.Reason = fmt.Sprintf("stopped after examining %d spans; %s", a.scanned, budgetAdvice)
			return nil
		}
		// A trace that is longer than a share is looked at again for each share that ends within it, of which there must be few.
		if a.now().Sub(began) < progressEvery/2 || o.Scanned > 2*share {
			share = min(2*share, a.limits.scanned)
		}
		if err := a.progress(); err != nil {
			return err
		}
	}
}

// share writes what a part of the work finds, and notes where the next part begins.
func (a *searchAnswer) share(spans int) error {
	q := tracestore.Query{
		Tenant: server.Tenant(a.turn), From: a.from, To: a.to, Limit: a.limit - a.found, After: a.after,
		Budget: tracestore.Budget{Spans: spans, TraceSpans: a.limits.traceSize},
	}
	results, err := storequery.Find(a.turn, a.store, q, a.set, tracestore.WantSummaries)
	if err != nil {
		return err
	}
	for res, err := range results.All {
		if err == nil {
			err = a.line(func(dst []byte) []byte {
				dst = strconv.AppendUint(append(dst, `{"trace":{"match":"`...), res.Start, 10)
				return append(appendUISummary(append(dst, '"'), res.Summary), "}}"...)
			})
		}
		if err != nil {
			return err
		}
		a.found++
		a.after = tracestore.Cursor{Start: res.Start, ID: res.ID, Set: true}
	}
	a.outcome = results.Outcome()
	a.after = a.outcome.Next
	return nil
}

// progress tells how many spans were examined, unless it did a moment ago.
func (a *searchAnswer) progress() error {
	now := a.now()
	if a.scanned > 0 && now.Sub(a.told) < progressEvery {
		return nil
	}
	a.told = now
	return a.line(func(dst []byte) []byte {
		return append(strconv.AppendInt(append(dst, `{"progress":{"scanned":`...), int64(a.scanned), 10), "}}"...)
	})
}

// end writes the outcome, or why there is none.
func (a *searchAnswer) end(err error) error {
	last := struct {
		Complete bool   `json:"complete"`
		Reason   string `json:"reason"`
		Traces   int    `json:"traces"`
		Scanned  int    `json:"scanned"`
		Next     string `json:"next"` // where to go on; "": there is nothing more
	}{a.outcome.Complete && a.lost == "", a.outcome.Reason, a.found, a.scanned, formatCursor(a.after)}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		last.Complete, last.Reason = false, a.timeoutText()
	case err != nil:
		status, text := a.explain(http.Header{}, err)
		return a.value("error", apiError{Code: status, Msg: text})
	}
	if a.lost != "" && a.lost != last.Reason {
		last.Reason = strings.TrimPrefix(last.Reason+"; "+a.lost, "; ")
	}
	return a.value("outcome", last)
}

// appendUISummary appends members of an object, each after a comma.
func appendUISummary(dst []byte, s *tracestore.Summary) []byte {
	dst = append(hex.AppendEncode(append(dst, `,"traceID":"`...), s.ID[:]), '"')
	dst = otlpdata.AppendJSONString(append(dst, `,"rootService":`...), s.RootService)
	dst = otlpdata.AppendJSONString(append(dst, `,"rootName":`...), s.RootName)
	dst = strconv.AppendUint(append(dst, `,"start":"`...), s.Start, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), s.End-min(s.Start, s.End), 10)
	dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(s.Spans), 10)
	dst = strconv.AppendInt(append(dst, `,"errors":`...), int64(s.Errors), 10)
	dst = strconv.AppendInt(append(dst, `,"orphans":`...), int64(s.Orphans), 10)
	dst = append(dst, `,"services":[`...)
	for i := range s.Services {
		svc := &s.Services[i]
		dst = otlpdata.AppendJSONString(append(comma(dst, i), `{"name":`...), svc.Name)
		dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(svc.Spans), 10)
		dst = append(strconv.AppendInt(append(dst, `,"errors":`...), int64(svc.Errors), 10), '}')
	}
	return append(dst, ']')
}
