package core

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Trace returns the stored pieces of a trace: from the store, or from the archive if the store has
// none. It returns no pieces if the trace does not exist, and an error that matches ErrTraceDamaged
// if nothing of it can be read. incomplete is a message about the spans that cannot be read, or "".
// Trace stops reading when it has more than Limits.TraceSize spans. The memory of the trace
// replaces what the query held before.
func (s *Slot) Trace(ref tracestore.TraceRef) (pieces []*otlpdata.Batch, incomplete string, err error) {
	pieces, damage, err := s.read(s.backend.opts.Store, ref)
	if err == nil && len(pieces) == 0 && s.backend.HasArchive() {
		var archived string
		pieces, archived, err = s.read(s.backend.opts.Archive, ref)
		damage = cmp.Or(archived, damage)
	}
	switch {
	case err != nil || damage == "":
		return pieces, "", err
	case len(pieces) == 0:
		return nil, "", damaged(damage)
	}
	return pieces, IncompleteText + damage, nil
}

// damaged returns an error that matches ErrTraceDamaged.
func damaged(reason string) error { return fmt.Errorf("%w: %s", ErrTraceDamaged, reason) }

// read returns the pieces of a trace, and what cannot be read.
func (s *Slot) read(from tracestore.Reader, ref tracestore.TraceRef) (pieces []*otlpdata.Batch, damage string, err error) {
	spans := 0
	s.memory.Release()
	for piece, err := range from.Traces(s.ctx, s.Tenant(), []tracestore.TraceRef{ref}) {
		if d := (*tracestore.DamagedError)(nil); errors.As(err, &d) {
			return pieces, d.Reason, nil
		}
		if err != nil {
			return nil, "", err
		}
		if err := s.hold(piece.Spans); err != nil {
			return nil, "", err
		}
		pieces = append(pieces, piece.Spans)
		if spans += piece.Spans.Len(); spans > s.backend.opts.Limits.TraceSize {
			break
		}
	}
	return pieces, "", nil
}

// ArchiveTrace copies a whole trace, unadjusted, from the store to the archive. It returns the
// number of traces: 1, or 0 with ErrTraceNotFound. After an error a part of the trace may be
// archived; archiving can be repeated because duplicate spans are shown once. If parts of the trace
// are damaged, the others are archived, and the error matches ErrTraceDamaged. A trace that is only
// in the archive stays there.
func (s *Slot) ArchiveTrace(ref tracestore.TraceRef) (int, error) {
	archive := s.backend.opts.Archive
	if archive == nil {
		return 0, ErrNoArchive
	}
	refs := []tracestore.TraceRef{ref}
	found := 0
	for piece, err := range s.Store().Traces(s.ctx, s.Tenant(), refs) {
		if d := (*tracestore.DamagedError)(nil); errors.As(err, &d) {
			return found, damaged(d.Reason)
		}
		if err == nil {
			s.memory.Release()
			err = s.hold(piece.Spans)
		}
		if err != nil {
			return 0, err
		}
		found = 1
		if err := archive.Consume(s.ctx, piece.Spans); err != nil {
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
