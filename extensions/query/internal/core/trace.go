package core

import (
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Trace returns the stored pieces of a trace, from the store or, if it has none, from the archive.
// It returns no pieces if the trace does not exist, and an error that matches ErrTraceDamaged if no
// part of it can be read. incomplete says which spans cannot be read. Trace stops reading when it
// has more than Limits.TraceSize spans. The memory of the trace replaces the memory that the query
// held before. If the store knows the approximate size of the trace, the memory is reserved before
// the trace is read.
func (s *Slot) Trace(ref tracestore.TraceRef) (pieces []*otlpdata.Batch, incomplete tracestore.Reasons, err error) {
	pieces, damage, err := s.read(s.backend.opts.Store, ref)
	if err == nil && len(pieces) == 0 && s.backend.HasArchive() {
		var archived tracestore.Reasons
		if pieces, archived, err = s.read(s.backend.opts.Archive, ref); !archived.Complete() {
			damage = archived
		}
	}
	switch {
	case err != nil || damage.Complete():
		return pieces, nil, err
	case len(pieces) == 0:
		return nil, nil, damaged(damage)
	}
	return pieces, damage, nil
}

// damaged returns an error that matches ErrTraceDamaged.
func damaged(what tracestore.Reasons) error {
	return fmt.Errorf("%w: %w", ErrTraceDamaged, &tracestore.DamagedError{Reasons: what})
}

// read returns the pieces of a trace, and which parts cannot be read.
func (s *Slot) read(from tracestore.Reader, ref tracestore.TraceRef) (pieces []*otlpdata.Batch, damage tracestore.Reasons, err error) {
	const usual = 400 // bytes of a span
	spans, size := 0, 0
	n := s.expectedSpans(from, ref)
	expected := s.memoryOf(usual*min(n, s.backend.opts.Limits.TraceSize), n)
	if err := s.memory.Resize(expected); err != nil {
		return nil, nil, err
	}
	for piece, err := range from.Traces(s.ctx, s.Tenant(), []tracestore.TraceRef{ref}) {
		if damage, err = tracestore.DamageOf(err); !damage.Complete() {
			return pieces, damage, s.memory.Resize(s.memoryOf(size, spans))
		}
		if err == nil {
			size, spans = size+piece.Spans.Size(), spans+piece.Spans.Len()
			err = s.memory.Resize(max(s.memoryOf(size, spans), expected))
		}
		if err != nil {
			return nil, nil, err
		}
		pieces = append(pieces, piece.Spans)
		if spans > s.backend.opts.Limits.TraceSize {
			break
		}
	}
	return pieces, nil, s.memory.Resize(s.memoryOf(size, spans))
}

// expectedSpans returns the approximate number of spans of a large trace, or 0 if the store does
// not know.
func (s *Slot) expectedSpans(from tracestore.Reader, ref tracestore.TraceRef) int {
	n, err := from.TraceSpans(s.ctx, s.Tenant(), ref.ID)
	if err != nil {
		return 0 // reading the trace reports the error
	}
	return n
}

// Outline calls tracestore.Reader.Outline with Limits.TraceSize on the store or, if it does not
// have the trace, on the archive. incomplete and err are as in Trace.
func (s *Slot) Outline(
	ref tracestore.TraceRef, hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan),
) (incomplete tracestore.Reasons, err error) {
	taken := false
	read := func(from tracestore.Reader) (damage tracestore.Reasons, err error) {
		return tracestore.DamageOf(from.Outline(s.ctx, s.Tenant(), ref.ID, s.Limits().TraceSize, hold,
			func(spans []tracestore.SummarySpan) error {
				taken = true
				take(spans)
				return nil
			}))
	}
	damage, err := read(s.backend.opts.Store)
	if err == nil && !taken && s.backend.HasArchive() {
		var archived tracestore.Reasons
		if archived, err = read(s.backend.opts.Archive); !archived.Complete() {
			damage = archived
		}
	}
	switch {
	case err != nil || damage.Complete():
		return nil, err
	case !taken:
		return nil, damaged(damage)
	}
	return damage, nil
}

// ExpectTrace reserves memory for a trace that the caller is going to read: a number of bytes per
// span. It replaces the memory that the query held before.
func (s *Slot) ExpectTrace(ref tracestore.TraceRef, perSpan int64) error {
	n := min(s.expectedSpans(s.backend.opts.Store, ref), s.backend.opts.Limits.TraceSize)
	return s.memory.Resize(int64(n) * perSpan)
}

// ArchiveTrace copies a whole trace, unadjusted, from the store to the archive. It returns the
// number of traces: 1, or 0 with ErrTraceNotFound. After an error, a part of the trace may be
// archived; archiving can be retried because duplicate spans are shown once. If parts of the store
// cannot be read, the spans in the other parts are archived and the error says so; it matches
// ErrTraceDamaged if there are none. A trace that is only in the archive stays there.
func (s *Slot) ArchiveTrace(ref tracestore.TraceRef) (int, error) {
	archive := s.backend.opts.Archive
	if archive == nil {
		return 0, ErrNoArchive
	}
	refs := []tracestore.TraceRef{ref}
	found := 0
	for piece, err := range s.Store().Traces(s.ctx, s.Tenant(), refs) {
		damage, err := tracestore.DamageOf(err)
		if !damage.Complete() && found == 0 {
			return 0, damaged(damage)
		}
		if !damage.Complete() {
			return found, fmt.Errorf("trace was archived, but spans may be missing: %s", damage.Text())
		}
		if err == nil {
			s.memory.Release()
			err = s.hold(piece.Spans)
		}
		if err != nil {
			return 0, err
		}
		found = 1
		if err := s.backend.opts.ArchiveWriter.Consume(s.ctx, piece.Spans); err != nil {
			return 0, fmt.Errorf("archiving a trace: %w", err)
		}
	}
	if found > 0 {
		return found, nil
	}
	for _, err := range archive.Traces(s.ctx, s.Tenant(), refs) {
		return 1, err
	}
	return 0, ErrTraceNotFound
}
