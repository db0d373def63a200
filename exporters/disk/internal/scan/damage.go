package scan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// damage collects what one query could not read. Several sessions may add to it at the same time.
type damage struct {
	mu     sync.Mutex
	report func(*source.DamageError)
	seen   map[part]struct{}
	files  []string
	losses string // what is missing in every result
	spans  int    // number of spans that cannot be read, as far as it is known
	first  error
}

// part identifies damage: a query reports the same part once.
type part struct{ file, part string }

// note records the damage in err and returns the errors that are not damage. of and where are the
// location for errors without one; spans is the number of spans at that location, for errors
// without a number.
func (d *damage) note(of source.Source, where string, spans int, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*source.DamageError); ok { //nolint:errorlint // wrapped errors are handled below
		d.add(e, spans)
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // looks for joined errors at this level
		var rest []error
		for _, e := range all.Unwrap() {
			rest = append(rest, d.note(of, where, spans, e))
		}
		return errors.Join(rest...)
	}
	if e := (*source.DamageError)(nil); errors.As(err, &e) {
		d.add(e, spans)
		return nil
	}
	if errors.Is(err, rows.ErrCorrupt) {
		d.add(&source.DamageError{File: of.Name(), Part: where, Rows: spans, Err: err}, spans)
		return nil
	}
	return err
}

func (d *damage) add(e *source.DamageError, spans int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := part{e.File, e.Part}
	if _, ok := d.seen[p]; ok {
		return
	}
	if d.seen == nil {
		d.seen = make(map[part]struct{})
	}
	d.seen[p] = struct{}{}
	if d.first == nil {
		d.first = e
	}
	if e.Rows > 0 {
		spans = e.Rows
	}
	d.spans += spans
	if !slices.Contains(d.files, e.File) {
		d.files = append(d.files, e.File)
	}
	d.report(e)
}

// namedFiles is the maximum number of damaged files in a message.
const namedFiles = 3

// reasons says what is missing.
func (d *damage) reasons() tracestore.Reasons {
	losses := tracestore.Because(tracestore.ReasonDamage, d.losses)
	if len(d.seen) == 0 {
		return losses
	}
	files := strings.Join(d.files[:min(namedFiles, len(d.files))], ", ")
	if more := len(d.files) - namedFiles; more > 0 {
		files += fmt.Sprintf(" and %d more files", more)
	}
	parts := "a part"
	if len(d.seen) > 1 {
		parts = fmt.Sprintf("%d parts", len(d.seen))
	}
	if d.spans > 0 {
		files += fmt.Sprintf(" with %d spans", d.spans)
	}
	return append(tracestore.Because(tracestore.ReasonDamage, fmt.Sprintf("%s of %s cannot be read", parts, files)), losses...)
}

// BlockPart returns the name of a block for DamageError.Part.
func BlockPart(block int) string { return "block " + strconv.Itoa(block) }

// TracePart returns the name of a trace for DamageError.Part.
func TracePart(id otlpdata.TraceID) string { return "trace " + id.String() }
