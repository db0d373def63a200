package block

import (
	"encoding/binary"
	"math/bits"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// have is a set of decoded parts of a block.
type have uint16

const (
	haveTraces have = 1 << iota
	haveShapes
	haveSpans
	haveParents
	haveResources
	haveStarts
	haveEnds
	haveRanks
	havePlaces
	haveBits = iota
)

// The parts on which a part depends, including itself. Parts are decoded in the order of their
// bits.
const (
	needParents   = haveTraces | haveParents
	needResources = needParents | haveShapes | haveResources
	needStarts    = haveTraces | haveStarts
	needEnds      = needStarts | haveEnds
	needHead      = needResources | needEnds | haveSpans
	needCell      = haveShapes | haveRanks
	needCells     = needCell | havePlaces
)

// heads holds the decoded parts of row heads.
type heads struct {
	have      have
	failed    have
	errors    [haveBits]error // of failed parts
	traces    []Trace
	trace     []int32 // by row: index into traces
	shapes    []uint32
	spans     []byte
	parents   []int32 // by row: a row, or parentNone, or parentExplicit - index into explicit
	explicit  []byte
	resources []uint32
	starts    []uint64
	ends      []uint64

	byService    serviceResources
	codes        []uint32
	newResources []uint32
	numbers      []uint64
	signed       []int64
}

func (h *heads) spanID(row int32) otlpdata.SpanID {
	return otlpdata.SpanID(h.spans[int(row)*idLength:])
}

func (h *heads) explicitID(parent int32) otlpdata.SpanID {
	return otlpdata.SpanID(h.explicit[int(parentExplicit-parent)*idLength:])
}

// need decodes the given parts unless they are already decoded. A failed part returns the same
// error without another attempt.
func (b *Block) need(parts have) error {
	h := &b.heads
	for missing := parts &^ h.have; missing != 0; missing &= missing - 1 {
		which := missing & -missing
		failure := &h.errors[bits.TrailingZeros16(uint16(which))]
		if h.failed&which == 0 {
			name, err := b.decode(which)
			if err == nil {
				h.have |= which
				continue
			}
			h.failed |= which
			*failure = b.damage(name, err)
		}
		return *failure
	}
	return nil
}

// decode decodes one part of the heads and returns its name for error messages.
func (b *Block) decode(which have) (name string, err error) {
	switch which {
	case haveTraces:
		return "trace table", b.decodeTraces()
	case haveShapes:
		return "shapes", b.decodeShapes()
	case haveSpans:
		return "span ids", b.decodeSpans()
	case haveParents:
		return "parents", b.decodeParents()
	case haveResources:
		return "resources", b.decodeResources()
	case haveStarts:
		return "starts", b.decodeStarts()
	case haveEnds:
		return "durations", b.decodeEnds()
	case haveRanks:
		return "columns", b.rankRows()
	}
	return "positions of cells", b.placeCells()
}

func (b *Block) decodeTraces() error {
	h := &b.heads
	n := b.dir.traces
	h.traces, h.trace = resize(h.traces, n), resize(h.trace, b.dir.rows)
	runs := resize(h.numbers, 3*n)
	h.numbers = runs
	for i, part := range [...]int{partRuns, partHigh, partLow} {
		src, err := b.part(b.dir.heads[part])
		if err != nil {
			return err
		}
		if err := b.decoder.Uint64s(src, runs[i*n:(i+1)*n]); err != nil {
			return err
		}
	}
	at := 0
	for i := range h.traces {
		t := &h.traces[i]
		if runs[i] == 0 || runs[i] > uint64(b.dir.rows-at) {
			return corrupt("trace of %d rows at row %d", runs[i], at)
		}
		t.First, t.Rows = int32(at), int32(runs[i])
		binary.BigEndian.PutUint64(t.ID[:8], runs[n+i])
		binary.BigEndian.PutUint64(t.ID[8:], runs[2*n+i])
		for end := at + int(t.Rows); at < end; at++ {
			h.trace[at] = int32(i)
		}
	}
	if at != b.dir.rows {
		return corrupt("traces have %d rows, want %d", at, b.dir.rows)
	}
	return nil
}

// decodeCodes decodes a part with one code per row.
func (b *Block) decodeCodes(part int, dst []uint32) error {
	src, err := b.part(b.dir.heads[part])
	if err != nil {
		return err
	}
	return b.decoder.Codes(src, dst)
}

func (b *Block) decodeShapes() error {
	h := &b.heads
	h.shapes = resize(h.shapes, b.dir.rows)
	if err := b.decodeCodes(partShapes, h.shapes); err != nil {
		return err
	}
	return checkCodes(h.shapes, len(b.l.tables.Shapes), "shape")
}

func (b *Block) decodeSpans() error {
	src, err := b.part(b.dir.heads[partSpans])
	if err != nil {
		return err
	}
	b.heads.spans = resize(b.heads.spans, b.dir.rows*idLength)
	return b.decoder.Fixed(src, b.heads.spans, idLength)
}

func (b *Block) decodeParents() error {
	h := &b.heads
	h.codes = resize(h.codes, b.dir.rows)
	if err := b.decodeCodes(partParents, h.codes); err != nil {
		return err
	}
	h.parents = resize(h.parents, b.dir.rows)
	explicit := int32(0)
	for i, code := range h.codes {
		p := parentOf(i, code)
		switch t := &h.traces[h.trace[i]]; {
		case p == int64(parentExplicit):
			p -= int64(explicit)
			explicit++
		case p != int64(parentNone) && uint64(p-int64(t.First)) >= uint64(t.Rows):
			return corrupt("parent of row %d is outside of its trace", i)
		}
		h.parents[i] = int32(p)
	}
	src, err := b.part(b.dir.heads[partExplicit])
	if err != nil {
		return err
	}
	h.explicit = resize(h.explicit, int(explicit)*idLength)
	return b.decoder.Fixed(src, h.explicit, idLength)
}

func (b *Block) decodeStarts() error {
	h := &b.heads
	h.signed = resize(h.signed, b.dir.rows)
	firsts, steps := h.signed[:b.dir.traces], h.signed[b.dir.traces:]
	if err := b.decodeSigned(partFirst, firsts); err != nil {
		return err
	}
	if err := b.decodeSigned(partSteps, steps); err != nil {
		return err
	}
	h.starts = resize(h.starts, b.dir.rows)
	last := uint64(0)
	for i := range h.traces {
		t := &h.traces[i]
		last += uint64(firsts[i])
		run, at := h.starts[t.First:t.First+t.Rows], last
		run[0] = at
		for j := 1; j < len(run); j++ {
			at += uint64(steps[j-1])
			run[j] = at
		}
		steps = steps[len(run)-1:]
	}
	return nil
}

func (b *Block) decodeSigned(part int, dst []int64) error {
	src, err := b.part(b.dir.heads[part])
	if err != nil {
		return err
	}
	return b.decoder.Int64s(src, dst)
}

func (b *Block) decodeEnds() error {
	h := &b.heads
	h.signed = resize(h.signed, b.dir.rows)
	if err := b.decodeSigned(partDurations, h.signed); err != nil {
		return err
	}
	h.ends = resize(h.ends, b.dir.rows)
	for i, d := range h.signed {
		h.ends[i] = h.starts[i] + uint64(d)
	}
	return nil
}
