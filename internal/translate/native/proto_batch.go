package native

import (
	"bytes"
	"errors"
)

// errAlternating says that the process of the batch would have to be written too often.
var errAlternating = errors.New("processes alternate")

// postSpans translates a PostSpansRequest.
type postSpans struct {
	*translator
	inherited []byte // the process of the batch, which spans without one have; aliases the request
	process   []byte // that of the current resource
	open      bool   // whether there is a current resource
	checked   bool   // whether inherited was read
	repeated  int    // bytes of inherited that were translated again
	allowed   int    // how many may be
}

// selection says which spans are translated.
type selection uint8

const (
	allSpans selection = iota
	spansThatInherit
	spansWithProcess
)

// postSpans translates a request. The order of spans is kept, unless spans with a process of their own and spans without alternate, and
// the process of the batch is so large that to repeat it would make the output much larger than the input. Then one kind follows the other.
func (t *translator) postSpans(b []byte) error {
	p := postSpans{translator: t, allowed: len(b) / 2}
	if err := eachOfBatch(b, batchProcess, p.inherit); err != nil {
		return err
	}
	err := p.translate(b, allSpans)
	if err == errAlternating {
		err = p.translateApart(b)
	}
	if err == nil && !p.checked {
		err = t.protoProcess(p.inherited)
	}
	return err
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

// eachOfBatch calls visit for every occurrence of a field of the batch, which may be in pieces itself.
func eachOfBatch(b []byte, num uint32, visit func([]byte) error) error {
	request := protoReader{b: b}
	for request.next() {
		if request.key != requestBatch<<3|wireLen {
			continue
		}
		batch := protoReader{b: request.data}
		for batch.next() {
			if batch.key != num<<3|wireLen {
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

func (p *postSpans) inherit(process []byte) error {
	p.inherited = joined(p.inherited, process)
	return nil
}

// joined returns a message that consists of two pieces, nil standing for none: their concatenation. A piece has no capacity to spare, so
// that appending never writes to the input.
func joined(a, b []byte) []byte {
	if a == nil {
		return b
	}
	return append(a, b...)
}

func (p *postSpans) translate(b []byte, only selection) error {
	return eachOfBatch(b, batchSpans, func(span []byte) error {
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
		p.finish()
		return nil
	})
}

// useProcess makes the process, nil for the inherited one, that of the resource into which spans are written.
func (p *postSpans) useProcess(process []byte) error {
	inherits := process == nil
	if inherits {
		process = p.inherited
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
