package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/namelist"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

// Verify reads and checks the whole file: header, sections, filters, trace index, all cells of all
// blocks. It calls report for each part, with a nil error or a *source.DamageError. It returns only
// the error of ctx.
//
// Without tables, layout or list of blocks no span is readable, and blocks are not checked. Damage
// to other sections loses no spans: it makes queries slower, or statistics unavailable.
func (s *Segment) Verify(ctx context.Context, report func(part string, err error)) error {
	report("header", s.VerifyHeader())
	if s.rest > 0 {
		report("end", withoutRows(s.damage("end", fmt.Errorf("%d bytes of other data follow the segment", s.rest))))
	}
	body, err := s.load()
	for k := kind(1); k < kinds; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.without(k) {
			continue
		}
		report(k.String(), s.verifySection(k, body, err))
	}
	if body == nil {
		return nil
	}
	for i := range body.blocks {
		err := s.verifyBlock(ctx, body, i)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		report(fmt.Sprintf("block %d", i), err)
	}
	return nil
}

// without reports whether the file lacks an optional section.
func (s *Segment) without(k kind) bool {
	switch k {
	case kindServices, kindOperations, kindNameDirectory:
		return s.dir[k].kind == 0
	}
	return k.String() == "" // an unused number
}

// VerifyHeader reads and checks the header. Damage, a *source.DamageError, costs no rows: the
// header only repeats information of the trailer, for tools that identify files by their first
// bytes.
func (s *Segment) VerifyHeader() error {
	var b [headerSize]byte
	err := s.readAt(b[:], 0)
	if err == nil {
		err = checkHeader(b[:])
	}
	if err != nil {
		return withoutRows(s.damage("header", err))
	}
	return nil
}

// verifySection checks a section. body and loading are the results of load.
func (s *Segment) verifySection(k kind, body *essentials, loading error) error {
	var d *source.DamageError
	if errors.As(loading, &d) && d.Part == k.String() {
		return loading
	}
	raw, err := s.section(k, maxSection)
	if err == nil {
		if err = s.decode(k, raw, body); err != nil {
			err = s.damage(k.String(), err)
		}
	}
	if err != nil && k > kindBlocks {
		return withoutRows(err)
	}
	return err
}

// decode decodes a section like its readers do. The sections that load reads are already checked.
func (s *Segment) decode(k kind, raw []byte, body *essentials) error {
	var err error
	switch {
	case k == kindInfo:
		_, err = readInfo(raw)
	case k == kindSeries:
		_, err = stats.DecodeSeries(raw)
	case k == kindEdges:
		_, err = stats.DecodeEdges(raw)
	case k == kindOrphans:
		_, err = stats.DecodeOrphans(raw)
	case k == kindNameDirectory:
		err = s.verifyNames(raw)
	case k == kindIndexPages:
		_, err = readIndexPages(raw, s.dir[kindIndex].length)
	case k == kindParts:
		err = s.verifyParts(raw)
	case k == kindPartPages:
		err = s.verifyPartPages(raw)
	case body == nil: // the others require the tables
	case k == kindBounds:
		_, err = readBounds(raw, body.blocks, s.dir[kindShapes].length)
	case k == kindShapes:
		err = s.verifyShapes(raw, body)
	case k == kindFilters:
		err = body.verifyFilters(raw)
	case k == kindIndex:
		err = s.verifyIndex(raw, len(body.blocks))
	}
	return err
}

// verifyNames checks the lists of names, whose directory is raw. Damage in the sections with their
// pages is reported for these sections.
func (s *Segment) verifyNames(raw []byte) error {
	l, err := namelist.Open(raw, s.dir[kindServices].length, s.dir[kindOperations].length)
	if err != nil {
		return err
	}
	services, err1 := s.section(kindServices, maxSection)
	operations, err2 := s.section(kindOperations, maxSection)
	if err1 != nil || err2 != nil {
		return nil
	}
	return l.Verify(services, operations)
}

func (b *essentials) verifyFilters(raw []byte) error {
	for i, st := range b.filterGroups {
		n := max(st.lines, 0)
		if st.offset+int64(filterBytes(n)) > int64(len(raw)) {
			return errTruncated
		}
		filter := raw[st.offset:]
		for line := 0; line < n; line += pageLines {
			from, to := pageOf(line, n)
			if checksum(filter[from:to-4]) != binary.LittleEndian.Uint32(filter[to-4:]) {
				return fmt.Errorf("filter %d: %w", i, errChecksum)
			}
		}
	}
	return nil
}

func (s *Segment) verifyIndex(raw []byte, blocks int) error {
	list, err := s.loadPages()
	if err != nil {
		return nil // reported as damage of the directory of pages
	}
	for i := range list {
		p := &list[i]
		if _, err := p.lookup(nil, raw[p.offset:][:p.length], 1<<64-1, blocks); err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
	}
	return nil
}

// verifyBlock decodes everything in a block.
func (s *Segment) verifyBlock(ctx context.Context, b *essentials, number int) error {
	o, err := s.openBlock(ctx, b, number)
	if err != nil {
		return err
	}
	defer o.Close()
	var h rows.Head
	var cells []rows.Cell
	var assemble rows.Assembler
	for i := range o.Len() {
		if err := o.Head(i, &h); err != nil {
			return err
		}
		if cells, err = o.Cells(cells[:0], i); err != nil {
			return err
		}
		if _, err := assemble.Span(b.tables, &h, cells); err != nil {
			return s.blockDamage(b, number, errors.Join(fmt.Errorf("row %d", i), err))
		}
	}
	return nil
}
