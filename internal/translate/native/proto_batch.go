package native

import (
	"bytes"
	"cmp"
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// errAlternating means that the process of the batch would have to be repeated too often.
var errAlternating = errors.New("processes alternate")

// postSpans translates a PostSpansRequest.
type postSpans struct {
	t         *translator
	inherited mergedMessage // the process of the batch, for spans without one
	process   []byte        // process of the current resource
	open      bool          // whether there is a current resource
	checked   bool          // whether inherited was validated
	repeated  int           // bytes of inherited that were written repeatedly
	allowed   int           // maximum of repeated
	maxOutput int           // maximum size of the output in bytes
}

// selection selects the spans to translate.
type selection uint8

const (
	allSpans selection = iota
	spansThatInherit
	spansWithProcess
)

// postSpans translates a request. It keeps the order of spans, with one exception: if spans with
// their own process and spans without alternate, and the process of the batch is so large that
// repeating it would make the output much larger than the input, the spans without a process come
// first. maxOutput is the approximate maximum size of the output; 0 disables the limit.
func (t *translator) postSpans(b []byte, maxOutput int) error {
	p := newPostSpans(t, maxOutput)
	p.allowed = len(b) / 2
	if err := eachOfBatch(b, batchProcess, p.inherited.addPiece); err != nil {
		return err
	}
	err := p.translate(b, allSpans)
	if err == errAlternating {
		err = p.translateApart(b)
	}
	if err == nil && !p.checked {
		err = t.protoProcess(p.inherited.data)
	}
	return err
}

func newPostSpans(t *translator, maxOutput int) postSpans {
	return postSpans{t: t, maxOutput: cmp.Or(maxOutput, math.MaxInt)}
}

// translateApart restarts and translates the spans that inherit the process first, then the others.
func (p *postSpans) translateApart(b []byte) error {
	p.t.out.Reset()
	p.t.spans, p.open, p.repeated = 0, false, 0
	if err := p.translate(b, spansThatInherit); err != nil {
		return err
	}
	return p.translate(b, spansWithProcess)
}

// eachOfBatch calls visit for every occurrence of a field of the batch. The batch itself may be
// repeated, which merges it.
func eachOfBatch(b []byte, num uint32, visit func([]byte) error) error {
	request := protoReader{b: b}
	for request.next() {
		if request.key != requestBatch<<3|protoenc.Length {
			continue
		}
		batch := protoReader{b: request.data}
		for batch.next() {
			if batch.key != num<<3|protoenc.Length {
				continue
			}
			if err := visit(batch.data); err != nil {
				return err
			}
		}
		if batch.err != nil {
			return batch.err
		}
	}
	return request.err
}

// mergedMessage is a message field that may be repeated: its value is the concatenation of all
// occurrences.
type mergedMessage struct {
	data    []byte // nil before the first occurrence; aliases the input while there is only one
	several bool
}

// addPiece adds an occurrence, which must be a complete message by itself. It must have no spare
// capacity, so that appending never writes to the input.
func (p *mergedMessage) addPiece(piece []byte) error {
	if p.data == nil {
		p.data = piece
		return nil
	}
	if !p.several {
		p.several = true
		if err := wellFormed(p.data); err != nil {
			return err
		}
	}
	if err := wellFormed(piece); err != nil {
		return err
	}
	p.data = append(p.data, piece...)
	return nil
}

func wellFormed(message []byte) error {
	r := protoReader{b: message}
	for r.next() {
	}
	return r.err
}

func (p *postSpans) translate(b []byte, only selection) error {
	return eachOfBatch(b, batchSpans, func(span []byte) error { return p.addSpan(span, only) })
}

// addSpan translates one span if it is selected.
func (p *postSpans) addSpan(span []byte, only selection) error {
	p.t.beginSpan()
	process, err := p.t.protoSpan(span)
	if err != nil {
		return err
	}
	if only == spansThatInherit && process != nil || only == spansWithProcess && process == nil {
		return nil
	}
	if err := p.useProcess(process); err != nil {
		return err
	}
	if p.t.finish(); p.t.out.Len() > p.maxOutput {
		return ErrOutputTooLarge
	}
	return nil
}

// useProcess begins a resource for the process, unless it is the current one. nil stands for the
// inherited process.
func (p *postSpans) useProcess(process []byte) error {
	inherits := process == nil
	if inherits {
		process = p.inherited.data
	}
	if p.open && bytes.Equal(process, p.process) {
		return nil
	}
	if inherits && p.open {
		if p.repeated += len(process); p.repeated > p.allowed {
			return errAlternating
		}
	}
	if err := p.t.protoProcess(process); err != nil {
		return err
	}
	p.t.beginResource()
	p.checked = p.checked || inherits
	p.process, p.open = process, true
	return nil
}
