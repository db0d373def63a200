package native

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// SplitPostSpans translates the spans of the segments of a batch into PostSpansRequests (package
// api_v2, reference 3.2 and 3.3) of at most limit bytes, and gives each to send with the number of
// its spans. All spans come in one request as long as they fit; one that is larger than limit by
// itself makes a request of its own. No spans make no request. A request is appended to what buffer
// returns, and belongs to send, an error of which ends the translation and is returned.
//
// The rules are those of reference 5.3, and of 5.2 for what is not UTF-8, which strict decoders
// refuse. More than they ask for:
//
//   - native flags travel (otlpdata.FlagsAttribute, or the flag FlagSampled of OTLP);
//   - further attributes service.name, and one that is not a string, become process tags;
//   - an event whose name is not what its attribute `event` says gets a field for both.
//
// What the native model has no place for is lost: attributes of scopes and links, trace states and
// flags of links, counts of what was dropped, schema URLs, flags of OTLP other than sampled, kinds
// and status codes that OTLP does not define.
func SplitPostSpans(segments [][]byte, limit int, buffer func() []byte, send func(request []byte, spans int) error) error {
	w := requestWriters.Get().(*requestWriter)
	defer w.release()
	total := 0
	for _, s := range segments {
		total += len(s)
	}
	w.limit, w.expected, w.buffer, w.send = limit, min(limit, total), buffer, send
	for _, s := range segments {
		if err := otlpdata.Walk(s, w); err != nil {
			return err
		}
	}
	return w.finish()
}

var requestWriters = sync.Pool{New: func() any { return new(requestWriter) }}

// requestWriter writes requests span by span. The first process of a request is its batch's, and
// spans of others carry theirs:
//
//	PostSpansRequest{batch{process, span, span, span{process}, ...}}
type requestWriter struct {
	limit    int
	expected int // size of a request: that of the same spans in OTLP is not far from it
	buffer   func() []byte
	send     func(request []byte, spans int) error

	process []byte // the current resource as an encoded Process
	scope   []byte // the current scope as encoded tags of a span

	buf       []byte // the open request
	batch     int    // where the content of its batch begins; 0: none is open
	inherited []byte // the process of its batch, which aliases buf
	own       bool   // whether spans of the current resource carry their process
	spans     int    // in it
	carried   int    // bytes of processes that its spans carry

	repeated int // bytes of scopes in all spans of the segments
	allowed  int // how many may be
}

const (
	// maxCarried is how many bytes of processes the spans of one request may carry. With the next
	// one a new request begins, in which it is the batch's: a resource of a MiB must not be sent
	// with each of its spans.
	maxCarried = 256 << 10
	// Every span carries its scope. So that a huge scope with many tiny spans does not become
	// gigabytes, scopes may take so many bytes per span, and as many more for all.
	maxScopePerSpan = 1 << 10
	maxScopeSurplus = 4 << 20
	// keepScratch is the greatest resource or scope whose memory is kept for the next one.
	keepScratch = 64 << 10
)

var errScopes = errors.New("native: the names of scopes, which every span repeats, are too long for this many spans")

// release gives w back for the next batch. Nothing in it aliases the segments or requests any more.
func (w *requestWriter) release() {
	process, scope := w.process, w.scope
	*w = requestWriter{}
	if cap(process)+cap(scope) <= keepScratch {
		w.process, w.scope = process[:0], scope[:0]
	}
	requestWriters.Put(w)
}

// Resource makes the resource the one of the spans that follow.
func (w *requestWriter) Resource(r *otlpdata.Resource) error {
	w.process = appendProcess(w.process[:0], r.Attributes)
	w.own = w.batch > 0 && !bytes.Equal(w.process, w.inherited)
	return nil
}

// Scope makes the scope the one of the spans that follow.
func (w *requestWriter) Scope(s *otlpdata.Scope) error {
	w.scope = appendScope(w.scope[:0], s)
	return nil
}

// Span writes the span, into a request of its own where it would make the open one too large.
func (w *requestWriter) Span(s *otlpdata.Span) error {
	w.allowed += maxScopePerSpan
	if w.repeated += len(w.scope); w.repeated > w.allowed+maxScopeSurplus {
		return errScopes
	}
	if w.own && w.carried+len(w.process) > maxCarried {
		if err := w.finish(); err != nil {
			return err
		}
	}
	w.begin()
	before := len(w.buf)
	w.span(s)
	if w.spans == 0 || w.size() <= w.limit {
		w.spans++
		return nil
	}
	w.buf = w.buf[:before]
	if err := w.finish(); err != nil {
		return err
	}
	w.begin()
	w.span(s)
	w.spans++
	return nil
}

// begin begins a request for the current resource, unless one is open.
func (w *requestWriter) begin() {
	if w.batch > 0 {
		return
	}
	w.buf = slices.Grow(w.buffer(), w.expected+w.expected/8)
	w.buf, w.batch = protoenc.BeginMessage(w.buf, requestBatch, protoenc.SizeVarint(uint64(w.expected)))
	w.buf = protoenc.AppendBytes(w.buf, batchProcess, w.process)
	w.inherited = w.buf[len(w.buf)-len(w.process):]
	w.own, w.spans, w.carried = false, 0, 0
}

// size is how long the open request is.
func (w *requestWriter) size() int {
	batch := len(w.buf) - w.batch
	return 1 + protoenc.SizeVarint(uint64(batch)) + batch
}

// span writes the span into the open request.
func (w *requestWriter) span(s *otlpdata.Span) {
	const room = 2 // right for 128 bytes to 16 KiB
	buf, at := protoenc.BeginMessage(w.buf, batchSpans, room)
	buf = appendSpan(buf, s, w.scope)
	if w.own {
		buf = protoenc.AppendBytes(buf, spanProcess, w.process)
		w.carried += len(w.process)
	}
	w.buf = protoenc.EndMessage(appendWarnings(buf, s.Attributes), at, room)
}

// finish sends the open request, if there is one.
func (w *requestWriter) finish() error {
	if w.batch == 0 {
		return nil
	}
	request := protoenc.EndMessage(w.buf, w.batch, protoenc.SizeVarint(uint64(w.expected)))
	w.buf, w.batch, w.inherited = nil, 0, nil
	return w.send(request, w.spans)
}
