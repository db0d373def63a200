package uiapi

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// outline serves GET /api/ui/v1/outline/{id}: the data to draw a trace, in a compact form.
func (a *API) outline(w http.ResponseWriter, r *http.Request) {
	ref, _, slot := httpapi.AdmitTrace(a.backend, core.OpGetTrace, w, r)
	if slot == nil {
		return
	}
	defer slot.Release()
	l := httpapi.NewList(w, r)
	defer l.Close()
	o := newOutline(a.backend.Limits())
	unchanged := false
	err := slot.Measure(func() (n int, err error) {
		version := versionOf(slot, ref.ID)
		if unchanged = version.isKnownTo(r, a.backend.Now()); unchanged {
			return 1, nil
		}
		if err := readOutline(slot, o, ref); err != nil || len(o.spans) == 0 {
			return 0, err
		}
		o.stored = version.stored
		o.arrange(a.backend.Now())
		if version.number == 0 {
			version.number = o.hash()
			unchanged = version.isKnownTo(r, a.backend.Now())
		}
		if o.incomplete.Complete() {
			w.Header().Set("ETag", o.tag(version))
		}
		if unchanged {
			return 1, nil
		}
		return 1, l.Stream().Add(func(dst []byte) ([]byte, error) { return o.appendJSON(dst, ref.ID, l.Stream().Spill) })
	})
	switch {
	case err != nil && httpapi.Gone(r, err):
	case err != nil:
		httpapi.Fail(a.backend, w, r, err)
	case unchanged:
		w.WriteHeader(http.StatusNotModified)
	case len(o.spans) == 0:
		httpapi.WriteError(w, http.StatusNotFound, core.ErrTraceNotFound.Error())
	default:
		a.backend.LogUndelivered(l.Finish("", o.footer()))
	}
}

// readOutline reads a trace from the store or, if it has none, from the archive.
func readOutline(slot *core.Slot, o *outline, ref tracestore.TraceRef) (err error) {
	if err := slot.ExpectTrace(ref, outlineCost); err != nil {
		return err
	}
	expected := slot.Held()
	// The store and the outline each have a copy of the names.
	hold := func(spans, names int) error {
		return slot.SetHeld(max(expected, int64(spans)*outlineCost+2*int64(names)))
	}
	o.incomplete, err = slot.Outline(ref, hold, o.addSummaries)
	return err
}

// footer returns the end of the response, with an error if spans are missing.
func (o *outline) footer() (f httpapi.Footer) {
	f.AddError(core.IncompleteMessage(o.incomplete))
	if o.cut {
		text := fmt.Sprintf(core.IncompleteText+"the trace has more than max_trace_size (%d) spans", o.maxSpans)
		f.AddError(text)
	}
	return f
}

// spill is Stream.Spill.
type spill func([]byte) ([]byte, error)

// appendJSON appends the outline as an object with dictionaries and a column for each property of
// spans.
func (o *outline) appendJSON(dst []byte, id otlpdata.TraceID, spill spill) (_ []byte, err error) {
	order := o.arranged
	dst = append(hex.AppendEncode(append(dst, `{"traceID":"`...), id[:]), '"')
	dst = strconv.AppendUint(append(dst, `,"start":"`...), o.begin, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), o.end-o.begin, 10)
	dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(len(order)), 10)
	dst = strconv.AppendInt(append(dst, `,"errors":`...), int64(o.failed), 10)
	dst = strconv.AppendBool(append(dst, `,"cut":`...), o.cut)
	if o.growing {
		dst = append(dst, `,"growing":true`...)
	}
	if dst, err = appendDictionary(append(dst, `,"services":`...), o.services.words, spill); err != nil {
		return dst, err
	}
	if dst, err = appendDictionary(append(dst, `,"names":`...), o.names.words, spill); err != nil {
		return dst, err
	}
	before := o.begin
	for _, c := range []struct {
		begin  string
		append func(dst []byte, s *outlineSpan) []byte
		end    string
	}{
		{`,"columns":{"parent":[`, func(dst []byte, s *outlineSpan) []byte { return o.appendParent(dst, s) }, "]"},
		{`,"start":[`, func(dst []byte, s *outlineSpan) []byte {
			step := int64(s.start - before)
			before = s.start
			return strconv.AppendInt(dst, step, 10)
		}, "]"},
		{`,"duration":[`, func(dst []byte, s *outlineSpan) []byte { return strconv.AppendUint(dst, s.duration, 10) }, "]"},
		{`,"name":[`, func(dst []byte, s *outlineSpan) []byte { return strconv.AppendInt(dst, int64(s.name), 10) }, "]"},
		{`,"service":[`, func(dst []byte, s *outlineSpan) []byte { return strconv.AppendInt(dst, int64(s.service), 10) }, "]"},
	} {
		if dst, err = o.appendColumn(append(dst, c.begin...), order, c.append, spill); err != nil {
			return dst, err
		}
		dst = append(dst, c.end...)
	}
	if dst, err = o.appendPacked(dst, order, spill); err != nil {
		return dst, err
	}
	if dst, err = o.appendExtras(dst, order, spill); err != nil {
		return dst, err
	}
	if dst, err = o.appendClocks(dst, order, spill); err != nil {
		return dst, err
	}
	return append(dst, '}'), nil
}

// appendColumn appends one value for each span.
func (o *outline) appendColumn(dst []byte, order []int32, value func([]byte, *outlineSpan) []byte, spill spill) (_ []byte, err error) {
	for i, at := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = spill(value(dst, &o.spans[at])); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendParent appends the index of the parent in the response, or -1.
func (o *outline) appendParent(dst []byte, s *outlineSpan) []byte {
	index := int32(-1)
	if s.parentIndex >= 0 {
		index = o.spans[s.parentIndex].answerIndex
	}
	return strconv.AppendInt(dst, int64(index), 10)
}

// appendPacked appends the columns whose values have a fixed length: one hex digit per span for
// kind and flags, and the ids in base64.
func (o *outline) appendPacked(dst []byte, order []int32, spill spill) (_ []byte, err error) {
	dst = append(dst, `,"kind":"`...)
	for _, at := range order {
		dst = append(dst, hexDigits[o.spans[at].kind])
	}
	dst = append(dst, `","flags":"`...)
	for _, at := range order {
		dst = append(dst, hexDigits[o.spans[at].flags])
	}
	id := func(i int) otlpdata.SpanID { return o.spans[order[i]].id }
	if dst, err = appendIDs(append(dst, `","id":"`...), len(order), id, spill); err != nil {
		return dst, err
	}
	return append(dst, `"}`...), nil
}

// appendIDs appends n ids in base64.
func appendIDs(dst []byte, n int, id func(i int) otlpdata.SpanID, spill spill) (_ []byte, err error) {
	const piece = 3 << 10 // spans; a multiple of 3, so that a piece has no base64 padding
	ids := make([]byte, 0, piece*len(otlpdata.SpanID{}))
	for i := range n {
		one := id(i)
		if ids = append(ids, one[:]...); len(ids) == cap(ids) || i == n-1 {
			if dst, err = spill(base64.StdEncoding.AppendEncode(dst, ids)); err != nil {
				return dst, err
			}
			ids = ids[:0]
		}
	}
	return dst, nil
}

const hexDigits = "0123456789abcdef"

// appendDictionary appends a list of words.
func appendDictionary(dst []byte, words []string, spill spill) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, w := range words {
		if dst, err = spill(otlpdata.AppendJSONString(httpapi.Comma(dst, i), w)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}
