package native

import (
	"fmt"
	"math/bits"
)

// Fields of the Thrift structs in the form of [thriftField.key]: number<<8 | type.
const (
	argsBatch = 1<<8 | int32(thriftStruct)

	batchProcessField = 1<<8 | int32(thriftStruct)
	batchSpansField   = 2<<8 | int32(thriftList)
	batchSeqNo        = 3<<8 | int32(thriftI64)
	batchStats        = 4<<8 | int32(thriftStruct)

	statsFullQueue    = 1<<8 | int32(thriftI64)
	statsTooLarge     = 2<<8 | int32(thriftI64)
	statsFailedToEmit = 3<<8 | int32(thriftI64)

	processName     = 1<<8 | int32(thriftString)
	processTagsList = 2<<8 | int32(thriftList)
)

// require fails unless all fields in want were seen. Both are bit sets of field numbers. names are
// the names of the fields from number 1 on, for the error.
func (r *thriftReader) require(want, seen uint32, in string, names *[11]string) {
	if left := want &^ seen; left != 0 && r.err == nil {
		r.fail(missing(names[bits.TrailingZeros32(left)-1], in))
	}
}

func missing(field, in string) error {
	return fmt.Errorf("thrift: required field %s is not set in %s", field, in)
}

// repeated is the error for a repeated field. Accepting it would require rereading all previous
// fields; clients do not send such batches.
func repeated(field, in string) error {
	return fmt.Errorf("thrift: field %s is repeated in %s", field, in)
}

func (t *translator) emitBatchArgs(r *thriftReader, out *Batch) {
	seen := false
	for f := (thriftField{}); r.next(&f); {
		switch {
		case f.key != argsBatch:
			r.skip(&f)
		case seen:
			r.fail(repeated("batch", "emitBatch_args"))
		default:
			t.thriftBatch(r, out)
			seen = true
		}
	}
	if !seen && r.err == nil {
		r.fail(missing("batch", "emitBatch_args"))
	}
}

// thriftBatch reads a Batch. The process applies to all spans and usually precedes them. If it
// follows them, the spans are skipped first and read afterwards.
func (t *translator) thriftBatch(r *thriftReader, out *Batch) {
	var seen uint32
	before := -1 // position of spans that precede the process
	for f := (thriftField{}); r.next(&f); {
		switch f.key {
		case batchProcessField:
			if seen&(1<<1) != 0 {
				r.fail(repeated("process", "Batch"))
				continue
			}
			t.thriftProcess(r)
			out.Client.ID = t.process.clientID()
			t.beginResource()
		case batchSpansField:
			if seen&(1<<2) != 0 {
				r.fail(repeated("spans", "Batch"))
				continue
			}
			if seen&(1<<1) != 0 {
				t.thriftSpans(r)
				break
			}
			before = r.pos
			r.skip(&f)
		case batchSeqNo:
			out.Client.SeqNo, out.Client.HasSeqNo = r.i64(), true
		case batchStats:
			r.stats(&out.Client)
		default:
			r.skip(&f)
			continue
		}
		seen |= 1 << f.id
	}
	r.require(1<<1|1<<2, seen, "Batch", &[11]string{"process", "spans"})
	if before >= 0 && r.err == nil {
		end := r.pos
		r.pos = before
		t.thriftSpans(r)
		r.pos = end
	}
}

func (r *thriftReader) stats(c *ClientStats) {
	var seen uint32
	for f := (thriftField{}); r.next(&f); {
		switch f.key {
		case statsFullQueue:
			c.FullQueue = r.i64()
		case statsTooLarge:
			c.TooLarge = r.i64()
		case statsFailedToEmit:
			c.FailedToEmit = r.i64()
		default:
			r.skip(&f)
			continue
		}
		seen |= 1 << f.id
	}
	c.HasStats = true
	r.require(1<<1|1<<2|1<<3, seen, "ClientStats", &[11]string{"fullQueueDroppedSpans", "tooLargeDroppedSpans", "failedToEmitSpans"})
}

// thriftProcess reads a Process into t.process.
func (t *translator) thriftProcess(r *thriftReader) {
	t.process.reset()
	t.text = t.text[:0]
	var seen uint32
	for f := (thriftField{}); r.next(&f); {
		switch f.key {
		case processName:
			t.process.service = r.text()
		case processTagsList:
			t.process.tags = t.thriftTags(r, t.process.tags[:0])
		default:
			r.skip(&f)
			continue
		}
		seen |= 1 << f.id
	}
	r.require(1<<1, seen, "Process", &[11]string{"serviceName"})
}

func (t *translator) thriftSpans(r *thriftReader) {
	for n := r.list(); n > 0 && r.err == nil; n-- {
		t.beginSpan()
		t.thriftSpan(r)
		if r.err == nil {
			t.finish()
		}
	}
}
