package query

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// outline answers GET /api/ui/v1/outline/{id}: what it takes to draw a trace, in as few bytes as possible.
func (h *handler) outline(w http.ResponseWriter, r *http.Request) {
	ref, _, t := h.admitTrace(w, r)
	if t == nil {
		return
	}
	defer t.done()
	l := newList(w, r)
	defer l.close()
	o := newOutline(h.limits.traceSize)
	err := h.measure(opGetTrace, func() (int, error) {
		err := t.outline(o, ref)
		if err != nil || len(o.spans) == 0 {
			return 0, err
		}
		return 1, l.stream.add(func(dst []byte) ([]byte, error) { return o.appendJSON(dst, ref.ID, l.spill) })
	})
	switch {
	case err != nil && (r.Context().Err() != nil || errors.Is(err, errUndelivered)): // nobody is listening
	case err != nil:
		h.failed(w, r, err)
	case len(o.spans) == 0:
		writeError(w, http.StatusNotFound, errTraceNotFound.Error())
	default:
		h.finish(l, "", o.tail())
	}
}

// outline takes a trace, from the archive when the store has nothing, without reading its spans whole where the store can do that.
func (t *turn) outline(o *outline, ref tracestore.TraceRef) error {
	if store, ok := t.backend.store.(tracestore.Outliner); ok {
		hold := func(spans, names int) error { return t.holdBytes(int64(spans)*outlineCost + 2*int64(names)) } // theirs and ours
		err := store.Outline(t, server.Tenant(t), ref.ID, o.most, hold, func(spans []tracestore.SummarySpan) error {
			o.takeSpans(spans)
			return nil
		})
		if err != nil || len(o.spans) > 0 {
			return err
		}
	}
	pieces, err := t.trace(server.Tenant(t), ref)
	if err != nil {
		return err
	}
	return o.take(pieces)
}

func (o *outline) tail() (t tail) {
	if o.cut {
		t.Errors = []apiError{{Msg: fmt.Sprintf(incompleteText+"the trace has more than max_trace_size (%d) spans", o.most)}}
	}
	return t
}

// spill is what takes an answer up to here when it is long enough, and returns what to append to.
type spill func([]byte) ([]byte, error)

// appendJSON appends the outline: an object with dictionaries, and a column for each property of spans.
func (o *outline) appendJSON(dst []byte, id otlpdata.TraceID, spill spill) (_ []byte, err error) {
	order := o.order()
	begin, end, failed := o.extent()
	dst = append(hex.AppendEncode(append(dst, `{"traceID":"`...), id[:]), '"')
	dst = strconv.AppendUint(append(dst, `,"start":"`...), begin, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), end-begin, 10)
	dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(len(order)), 10)
	dst = strconv.AppendInt(append(dst, `,"errors":`...), int64(failed), 10)
	dst = strconv.AppendBool(append(dst, `,"cut":`...), o.cut)
	if dst, err = appendDictionary(append(dst, `,"services":`...), o.services.words, spill); err != nil {
		return dst, err
	}
	if dst, err = appendDictionary(append(dst, `,"names":`...), o.names.words, spill); err != nil {
		return dst, err
	}
	before := begin
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
	return o.appendPacked(dst, order, spill)
}

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

// appendParent appends the place of the parent in the answer, -1 where it has none there.
func (o *outline) appendParent(dst []byte, s *outlineSpan) []byte {
	place := int32(-1)
	if s.above >= 0 {
		place = o.spans[s.above].place
	}
	return strconv.AppendInt(dst, int64(place), 10)
}

// appendPacked appends the columns of which each value has the same length: texts, of one digit for each span, and of the bytes of all ids.
func (o *outline) appendPacked(dst []byte, order []int32, spill spill) (_ []byte, err error) {
	dst = append(dst, `,"kind":"`...)
	for _, at := range order {
		dst = append(dst, hexDigits[o.spans[at].kind])
	}
	dst = append(dst, `","flags":"`...)
	for _, at := range order {
		dst = append(dst, hexDigits[o.spans[at].flags])
	}
	dst = append(dst, `","id":"`...)
	const piece = 3 << 10 // spans, whose bytes end where a digit of base64 does
	ids := make([]byte, 0, piece*len(otlpdata.SpanID{}))
	for i, at := range order {
		if ids = append(ids, o.spans[at].id[:]...); len(ids) == cap(ids) || i == len(order)-1 {
			if dst, err = spill(base64.StdEncoding.AppendEncode(dst, ids)); err != nil {
				return dst, err
			}
			ids = ids[:0]
		}
	}
	return append(dst, `"}}`...), nil
}

const hexDigits = "0123456789abcdef"

func appendDictionary(dst []byte, words []string, spill spill) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, w := range words {
		if dst, err = spill(otlpdata.AppendJSONString(comma(dst, i), w)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}
