package otlpdata

import (
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Split returns the batch in parts of at most maxSpans spans and maxBytes bytes each; 0 disables a
// limit. A part has at least one span, even if that exceeds maxBytes. Resources and scopes are
// repeated in each part that has some of their spans; resources and scopes without spans are
// omitted. A batch within the limits is returned unchanged. Split returns [ErrManyCopies] or an
// error of encoding a batch of objects.
func (b *Batch) Split(maxSpans, maxBytes int) ([]*Batch, error) {
	if maxSpans <= 0 {
		maxSpans = math.MaxInt
	}
	if maxBytes <= 0 {
		maxBytes = math.MaxInt
	}
	if b.spans <= maxSpans && b.Size() <= maxBytes {
		return []*Batch{b}, nil
	}
	chunks, err := b.chunks()
	if err != nil {
		return nil, err
	}
	s := splitter{meta: b.meta, maxSpans: maxSpans, maxBytes: maxBytes, space: maxSplitGrowth*b.Size() + minSplitSpace}
	for _, c := range chunks {
		for f := range protoenc.Fields(c) {
			if f.Num == 1 && f.Bytes {
				s.resourceSpans(f.Content)
			}
		}
	}
	s.endPart()
	if s.err != nil {
		return nil, s.err
	}
	return s.parts, nil
}

// ErrManyCopies is the error of Split if the parts would need much more memory than the batch,
// because of large resources that many parts repeat.
var ErrManyCopies = errors.New("otlpdata: split batch would repeat large resources too often")

// The parts of a batch have at most maxSplitGrowth times its size and minSplitSpace in bytes.
const (
	maxSplitGrowth = 4
	minSplitSpace  = 16 << 20
)

// splitter writes the spans of a batch into parts. A resource or scope is written before the first
// of its spans in a part, so none is written without spans.
type splitter struct {
	meta               Meta
	maxSpans, maxBytes int

	out             []byte
	resource, scope int    // positions of their contents in out; 0 if they are not written
	resourceFields  []byte // all fields of the resource except its scopes
	scopeFields     []byte // all fields of the scope except its spans
	spans           int    // of the part
	space           int    // bytes that are left for parts
	parts           []*Batch
	err             error
}

const (
	// messageOverhead is the maximum number of bytes of the tag and the length of a message.
	messageOverhead = 6
	// oldScopeSpans is the deprecated field number of a resource's scopes, which is still accepted.
	oldScopeSpans = 1000
)

func (s *splitter) resourceSpans(content []byte) {
	s.resourceFields = s.resourceFields[:0]
	for f := range protoenc.Fields(content) {
		if !isScopeSpans(f) {
			s.resourceFields = append(s.resourceFields, f.Raw...)
		}
	}
	for f := range protoenc.Fields(content) {
		if isScopeSpans(f) {
			s.scopeSpans(f.Content)
		}
	}
	s.endResource()
}

func isScopeSpans(f protoenc.Field) bool { return f.Bytes && (f.Num == 2 || f.Num == oldScopeSpans) }

func (s *splitter) scopeSpans(content []byte) {
	s.scopeFields = s.scopeFields[:0]
	for f := range protoenc.Fields(content) {
		if !isSpan(f) {
			s.scopeFields = append(s.scopeFields, f.Raw...)
		}
	}
	for f := range protoenc.Fields(content) {
		if isSpan(f) {
			s.span(f.Raw)
		}
	}
	s.endScope()
}

func isSpan(f protoenc.Field) bool { return f.Bytes && f.Num == 2 }

func (s *splitter) span(raw []byte) {
	if s.err != nil {
		return
	}
	size := len(s.out) + len(raw) + 2*messageOverhead // the open messages have no lengths yet
	if s.scope == 0 {
		size += len(s.scopeFields)
	}
	if s.resource == 0 {
		size += len(s.resourceFields)
	}
	if s.spans > 0 && (s.spans >= s.maxSpans || size > s.maxBytes) {
		s.endPart()
	}
	if s.resource == 0 {
		s.out, s.resource = protoenc.BeginMessage(s.out, 1, groupLength)
		s.out = append(s.out, s.resourceFields...)
	}
	if s.scope == 0 {
		s.out, s.scope = protoenc.BeginMessage(s.out, 2, groupLength)
		s.out = append(s.out, s.scopeFields...)
	}
	s.out = append(s.out, raw...)
	s.spans++
}

func (s *splitter) endScope() {
	if s.scope > 0 {
		s.out, s.scope = protoenc.EndMessage(s.out, s.scope, groupLength), 0
	}
}

func (s *splitter) endResource() {
	s.endScope()
	if s.resource > 0 {
		s.out, s.resource = protoenc.EndMessage(s.out, s.resource, groupLength), 0
	}
}

// endPart adds the part, unless it is empty.
func (s *splitter) endPart() {
	s.endResource()
	if s.spans == 0 || s.err != nil {
		return
	}
	if s.space -= len(s.out); s.space < 0 {
		s.err, s.out = ErrManyCopies, nil
		return
	}
	part, err := FromOTLP(s.out, s.meta, Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: maxDepth, Items: math.MaxInt})
	s.err = err
	s.parts = append(s.parts, part)
	s.out, s.spans = nil, 0
}
