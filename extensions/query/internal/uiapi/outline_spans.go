package uiapi

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxSpanIDs is the maximum number of spans in one request for details.
const maxSpanIDs = 100

// spans serves GET /api/ui/v1/outline/{id}/spans: some spans of a trace in full.
func (a *API) spans(w http.ResponseWriter, r *http.Request) {
	v, err := httpapi.Query(r)
	var ids []otlpdata.SpanID
	if err == nil {
		ids, err = spanIDsParam(v, "ids")
	}
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	a.answerPart(w, r, func(slot *core.Slot, ref tracestore.TraceRef, out *httpapi.Stream) (int, tracestore.Reasons, error) {
		d, incomplete, err := readDetails(slot, ref, ids)
		if err != nil {
			return 0, nil, err
		}
		return len(d.list), incomplete, out.Add(func(dst []byte) ([]byte, error) { return d.appendJSON(dst, out.Spill) })
	})
}

// answerPart serves a request about spans of the trace in its path. write writes the data; it
// returns the number of results and why they are incomplete.
func (a *API) answerPart(w http.ResponseWriter, r *http.Request,
	write func(*core.Slot, tracestore.TraceRef, *httpapi.Stream) (n int, incomplete tracestore.Reasons, err error)) {
	ref, _, slot := httpapi.AdmitTrace(a.backend, core.OpGetTrace, w, r)
	if slot == nil {
		return
	}
	defer slot.Release()
	l := httpapi.NewList(w, r)
	defer l.Close()
	var footer httpapi.Footer
	err := slot.Measure(func() (int, error) {
		n, incomplete, err := write(slot, ref, l.Stream())
		footer.AddError(core.IncompleteMessage(incomplete))
		return n, err
	})
	switch {
	case err != nil && httpapi.Gone(r, err):
	case errors.Is(err, core.ErrTraceNotFound), errors.Is(err, core.ErrSpanNotFound):
		httpapi.WriteError(w, http.StatusNotFound, err.Error())
	case err != nil:
		httpapi.Fail(a.backend, w, r, err)
	default:
		a.backend.LogUndelivered(l.Finish("", footer))
	}
}

// spanIDsParam parses a list of span ids: 16 hex digits each, separated by commas.
func spanIDsParam(v url.Values, name string) ([]otlpdata.SpanID, error) {
	texts := strings.SplitN(v.Get(name), ",", maxSpanIDs+1)
	if len(texts) > maxSpanIDs {
		return nil, httpapi.ParamError(name, fmt.Errorf("more than %d ids", maxSpanIDs))
	}
	ids := make([]otlpdata.SpanID, len(texts))
	for i, text := range texts {
		if len(text) != 2*len(ids[i]) {
			return nil, httpapi.ParamError(name, fmt.Errorf("invalid span id %q: use 16 hexadecimal digits", text))
		}
		if _, err := hex.Decode(ids[i][:], []byte(text)); err != nil {
			return nil, httpapi.ParamError(name, fmt.Errorf("invalid span id %q: use 16 hexadecimal digits", text))
		}
	}
	return ids, nil
}

// detailCost is the approximate memory of spanDetail in bytes for each encoded byte of a span.
const detailCost = 4

// details collects the requested spans and the spans that link to them, from a walk over a part of
// their trace.
type details struct {
	trace    otlpdata.TraceID
	order    map[otlpdata.SpanID]struct{}
	position map[otlpdata.SpanID]int // of requested ids
	list     []spanDetail
	links    []backLink
	resource []attribute
	service  string
	scope    scopeDetail
}

// backLink is a link between spans of the trace.
type backLink struct {
	to   otlpdata.SpanID
	from linkSource
}

// readDetails reads spans of a trace. The error matches core.ErrSpanNotFound if there are none.
func readDetails(slot *core.Slot, ref tracestore.TraceRef, ids []otlpdata.SpanID) (d *details, incomplete tracestore.Reasons, err error) {
	d = &details{trace: ref.ID, order: make(map[otlpdata.SpanID]struct{}), position: make(map[otlpdata.SpanID]int)}
	for i, id := range ids {
		if _, repeated := d.order[id]; !repeated {
			d.order[id], d.position[id] = struct{}{}, i
		}
	}
	pieces, incomplete, err := slot.SelectSpans(ref, d.order)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range pieces {
		if err := slot.HoldMore(detailCost * int64(b.Size())); err != nil {
			return nil, nil, err
		}
	}
	if err := adjust.Walk(adjust.Options{Part: true}, d, pieces...); err != nil {
		return nil, nil, fmt.Errorf("reading spans: %w", err)
	}
	if len(d.list) == 0 {
		return nil, nil, core.ErrSpanNotFound
	}
	slices.SortStableFunc(d.list, func(a, b spanDetail) int {
		return cmp.Or(cmp.Compare(d.position[a.id], d.position[b.id]), cmp.Compare(a.Start, b.Start))
	})
	for i := range d.list {
		d.list[i].LinkedFrom = d.linksTo(d.list[i].id)
	}
	return d, incomplete, nil
}

// linksTo returns the distinct spans that link to a span.
func (d *details) linksTo(id otlpdata.SpanID) []linkSource {
	out := []linkSource{}
	for _, l := range d.links {
		if l.to == id && !slices.Contains(out, l.from) {
			out = append(out, l.from)
		}
	}
	return out
}

// Resource implements otlpdata.Visitor.
func (d *details) Resource(r *otlpdata.Resource) error {
	d.resource, d.service = attributesOf(r.Attributes), r.Service
	return nil
}

// Scope implements otlpdata.Visitor.
func (d *details) Scope(s *otlpdata.Scope) error {
	d.scope = scopeDetail{s.Name, s.Version, attributesOf(s.Attributes)}
	return nil
}

// Span implements otlpdata.Visitor.
func (d *details) Span(s *otlpdata.Span) error {
	for i := range s.Links {
		l := &s.Links[i]
		if _, requested := d.order[l.SpanID]; requested && l.TraceID == d.trace {
			d.links = append(d.links, backLink{l.SpanID, linkSource{s.SpanID.String(), d.service, s.Name}})
		}
	}
	if _, requested := d.order[s.SpanID]; requested {
		d.list = append(d.list, d.detail(s))
	}
	return nil
}

// appendJSON appends the spans as an object.
func (d *details) appendJSON(dst []byte, spill spill) ([]byte, error) {
	dst = append(dst, `{"spans":[`...)
	for i := range d.list {
		one, err := json.Marshal(&d.list[i])
		if err != nil {
			return dst, err
		}
		if dst, err = spill(append(httpapi.Comma(dst, i), one...)); err != nil {
			return dst, err
		}
	}
	return append(dst, "]}"...), nil
}
