package live

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// spanEvents makes an event for each matching span.
type spanEvents struct {
	config *Config
	where  tracestore.Expr
	sent   int // in this interval
	// Spans since the beginning that were sent, and that matched but exceeded the rate limit.
	shown, leftOut int
}

func (e *spanEvents) span(dst []byte, s tracestore.Span) []byte {
	switch {
	case !tracestore.Match(e.where, s):
		return dst
	case e.sent >= e.config.MaxRate:
		e.leftOut++
		return dst
	}
	e.sent++
	e.shown++
	return append(appendSpan(append(dst, "event: span\ndata: "...), s), "\n\n"...)
}

func (e *spanEvents) tick(dst []byte, last bool) []byte {
	if last {
		e.sent = 0
	}
	return dst
}

func (e *spanEvents) status(dst []byte, missed int) []byte {
	return fmt.Appendf(dst, `"shown":%d,"leftOut":%d,"missed":%d`, e.shown, e.leftOut, missed)
}

// appendSpan appends a span as an object. Its length is bounded: long names are shortened.
func appendSpan(dst []byte, s tracestore.Span) []byte {
	ns, _ := s.Duration()
	dst = hex.AppendEncode(append(dst, `{"traceID":"`...), s.TraceID[:])
	dst = hex.AppendEncode(append(dst, `","spanID":"`...), s.SpanID[:])
	dst = append(dst, `","parentID":"`...)
	if !s.ParentID.IsZero() {
		dst = hex.AppendEncode(dst, s.ParentID[:])
	}
	dst = otlpdata.AppendJSONString(append(dst, `","service":`...), storequery.FacetText(s.Resource.Service))
	dst = otlpdata.AppendJSONString(append(dst, `,"name":`...), storequery.FacetText(s.Operation()))
	dst = append(append(dst, `,"kind":"`...), s.KindName()...)
	dst = strconv.AppendUint(append(dst, `","start":"`...), s.Start, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), ns, 10)
	dst = strconv.AppendBool(append(dst, `,"error":`...), s.StatusCode == otlpdata.StatusError)
	return append(dst, '}')
}
