package storewire

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// OutlineWriter converts the spans of an outline in several messages. The zero value is ready to
// use.
type OutlineWriter struct{ texts map[string]uint32 }

// Put converts spans.
func (w *OutlineWriter) Put(spans []tracestore.SummarySpan) *store_v1.OutlineResponse {
	if w.texts == nil {
		w.texts = make(map[string]uint32)
	}
	out := &store_v1.OutlineResponse{}
	for i := range spans {
		s := &spans[i]
		out.Id = append(out.Id, binary.BigEndian.Uint64(s.ID[:]))
		out.Parent = append(out.Parent, binary.BigEndian.Uint64(s.Parent[:]))
		out.Start = append(out.Start, s.Start)
		out.Duration = append(out.Duration, s.Duration)
		out.Service = append(out.Service, w.text(out, s.Service))
		out.Name = append(out.Name, w.text(out, s.Name))
		out.Kind = append(out.Kind, s.Kind)
		out.Failed = append(out.Failed, s.Failed)
		out.Reversed = append(out.Reversed, s.Reversed)
		out.Host = append(out.Host, s.Host)
		if s.Extras != nil {
			out.Extras = append(out.Extras, w.extras(out, i, s.Extras))
		}
	}
	return out
}

func (w *OutlineWriter) extras(m *store_v1.OutlineResponse, span int, x *tracestore.SpanExtras) *store_v1.OutlineExtras {
	out := &store_v1.OutlineExtras{Span: uint32(span), Peer: []byte(x.Peer), Links: uint32(x.Links)}
	for i := range x.Events {
		out.EventTime = append(out.EventTime, x.Events[i].Time)
		out.EventName = append(out.EventName, w.text(m, x.Events[i].Name))
	}
	return out
}

func (w *OutlineWriter) text(m *store_v1.OutlineResponse, text string) uint32 {
	n, ok := w.texts[text]
	if !ok {
		n = uint32(len(w.texts))
		w.texts[text] = n
		m.Texts = append(m.Texts, []byte(text))
	}
	return n
}

// OutlineReader joins the spans of several messages. The zero value is ready to use.
type OutlineReader struct {
	Spans     []tracestore.SummarySpan
	TextBytes int // names and extras of all spans; equal names share memory
	texts     []string
	held      int64 // bytes of texts
}

// Held returns the memory of all received texts in bytes, whether spans have them or not.
func (r *OutlineReader) Held() int64 { return r.held }

// Get adds the spans of a message.
func (r *OutlineReader) Get(m *store_v1.OutlineResponse) error {
	for _, text := range m.GetTexts() {
		r.texts = append(r.texts, string(text))
		r.held += textMemory + int64(len(text))
	}
	n, first := len(m.GetId()), len(r.Spans)
	for _, l := range []int{len(m.GetParent()), len(m.GetStart()), len(m.GetDuration()), len(m.GetService()), len(m.GetName()),
		len(m.GetKind()), len(m.GetFailed())} {
		if l != n {
			return invalid("columns of an outline differ in length")
		}
	}
	for _, l := range []int{len(m.GetReversed()), len(m.GetHost())} {
		if l != n && l != 0 {
			return invalid("columns of an outline differ in length")
		}
	}
	for i := range n {
		if int(m.Service[i]) >= len(r.texts) || int(m.Name[i]) >= len(r.texts) {
			return errUnknownText
		}
		s := tracestore.SummarySpan{Start: m.Start[i], Duration: m.Duration[i], Service: r.texts[m.Service[i]],
			Name: r.texts[m.Name[i]], Kind: m.Kind[i], Failed: m.Failed[i]}
		if len(m.Reversed) > 0 {
			s.Reversed = m.Reversed[i]
		}
		if len(m.Host) > 0 {
			s.Host = m.Host[i]
		}
		binary.BigEndian.PutUint64(s.ID[:], m.Id[i])
		binary.BigEndian.PutUint64(s.Parent[:], m.Parent[i])
		r.Spans = append(r.Spans, s)
		r.TextBytes += len(s.Name)
	}
	return r.extras(r.Spans[first:], m.GetExtras())
}

var errUnknownText = invalid("outline refers to a text that was not sent")

// extras sets the extras of the spans of a message.
func (r *OutlineReader) extras(spans []tracestore.SummarySpan, list []*store_v1.OutlineExtras) error {
	for _, m := range list {
		if int(m.GetSpan()) >= len(spans) || len(m.GetEventTime()) != len(m.GetEventName()) {
			return invalid("extras of an outline do not fit its spans")
		}
		x := &tracestore.SpanExtras{Peer: string(m.GetPeer()), Links: int(m.GetLinks())}
		for i, name := range m.GetEventName() {
			if int(name) >= len(r.texts) {
				return errUnknownText
			}
			x.Events = append(x.Events, tracestore.SpanEvent{Time: m.EventTime[i], Name: r.texts[name]})
		}
		spans[m.GetSpan()].Extras = x
		r.TextBytes += x.Size()
	}
	return nil
}
