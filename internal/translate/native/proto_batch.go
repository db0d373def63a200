package native

import (
	"bytes"
	"cmp"
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// errAlternating says that the process of the batch would have to be written too often.
var errAlternating = errors.New("processes alternate")

// postSpans translates a PostSpansRequest.
type postSpans struct {
	*translator
	inherited pieces // the process of the batch, which spans without one have
	process   []byte // that of the current resource
	open      bool   // whether there is a current resource
	checked   bool   // whether inherited was read
	repeated  int    // bytes of inherited that were translated again
	allowed   int    // how many may be
	most      int    // how large the output may become, in bytes
}

// selection says which spans are translated.
type selection uint8

const (
	allSpans selection = iota
	spansThatInherit
	spansWithProcess
)

// postSpans translates a request. The order of spans is kept, unless spans with a process of their
// own and spans without alternate, and the process of the batch is so large that to repeat it would
// make the output much larger than the input. Then one kind follows the other. The output may take
// about most bytes, or any number if that is 0.
func (t *translator) postSpans(b []byte, most int) error {
	p := newPostSpans(t, most)
	p.allowed = len(b) / 2
	if err := eachOfBatch(b, batchProcess, p.inherited.add); err != nil {
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

func newPostSpans(t *translator, most int) postSpans {
	return postSpans{translator: t, most: cmp.Or(most, math.MaxInt)}
}

// translateApart begins again, and translates one kind of spans after the other.
func (p *postSpans) translateApart(b []byte) error {
	p.out.Reset()
	p.spans, p.open, p.repeated = 0, false, 0
	if err := p.translate(b, spansThatInherit); err != nil {
		return err
	}
	return p.translate(b, spansWithProcess)
}

// eachOfBatch calls visit for every occurrence of a field of the batch, which may be in pieces
// itself.
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

// pieces is a message that may come in several pieces: it is their concatenation.
type pieces struct {
	data    []byte // nil: none came; aliases the input while there is one piece
	several bool
}

// add adds a piece, without capacity to spare, so that appending never writes to the input. Each
// has to be a message by itself: two halves of a field are none.
func (p *pieces) add(piece []byte) error {
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
	return eachOfBatch(b, batchSpans, func(span []byte) error { return p.add(span, only) })
}

// add translates one span, if it is of the selection.
func (p *postSpans) add(span []byte, only selection) error {
	p.begin()
	process, err := p.protoSpan(span)
	if err != nil {
		return err
	}
	if only == spansThatInherit && process != nil || only == spansWithProcess && process == nil {
		return nil
	}
	if err := p.useProcess(process); err != nil {
		return err
	}
	if p.finish(); p.out.Len() > p.most {
		return ErrOutput
	}
	return nil
}

// useProcess makes the process, nil for the inherited one, that of the resource into which spans
// are written.
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
	if err := p.protoProcess(process); err != nil {
		return err
	}
	p.beginResource()
	p.checked = p.checked || inherits
	p.process, p.open = process, true
	return nil
}
