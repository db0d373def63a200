package memtable

import (
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Replay adds a record from the log. It does not retain the record. All readable rows become
// visible; lost is the number of rows that are damaged or refer to missing definitions. Replay
// returns an error that matches rows.ErrCorrupt if part of the record is not what Append wrote;
// rows that do not depend on that part are added nevertheless. Existing sources must not be read
// during a replay, which is meant for the start, when there are no readers yet.
func (t *Table) Replay(record []byte) (lost int, err error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := replayer{t: t}
	for len(record) > 0 {
		tag, payload, rest, failed := rows.NextItem(record)
		if failed != nil {
			err = errors.Join(err, failed)
			break
		}
		record = rest
		switch tag {
		case rows.TagRow:
			t.logged++
			if !r.row(payload) {
				lost++
			}
			continue
		case rows.TagPosition:
			failed = t.replayPosition(payload)
		default:
			failed = t.replayDefinition(tag, payload)
		}
		if failed != nil && err == nil {
			err = failed
		}
	}
	t.publish(r.traces)
	return lost, err
}

// replayPosition counts the rows that are missing before a position.
func (t *Table) replayPosition(payload []byte) error {
	at, err := rows.ReadPosition(payload)
	if err == nil && at > t.logged {
		t.missingRows += at - t.logged
		t.logged = at
	}
	return err
}

// replayDefinition adds a definition from the log, unless it is a repeated one.
func (t *Table) replayDefinition(tag rows.Tag, payload []byte) error {
	if d := rows.ReadDefinition(tag, payload); d.ID < uint64(t.count(d)) {
		return nil
	}
	_, stored := t.arena.put(tag, payload)
	return t.addDefinition(tag, stored)
}

// replayer adds the rows of one record.
type replayer struct {
	t          *Table
	traces     []uint64
	cells      []rows.Cell
	tenant     string
	tenantHash uint64 // hash of the tenant

	rowHints rowHints
}

// row adds a row, and reports whether it is readable.
func (r *replayer) row(payload []byte) bool {
	t := r.t
	var h rows.Head
	var err error
	if r.cells, err = t.tables.ReadRow(payload, &h, r.cells[:0]); err != nil {
		return false
	}
	r.rowHints.reset()
	slots := t.slotsOf(h.Shape)
	for i := range slots {
		r.recall(&slots[i], r.cells[i])
	}
	if tenant := t.tables.Resources[h.Resource].Tenant; r.tenantHash == 0 || tenant != r.tenant {
		r.tenant, r.tenantHash = tenant, t.hash.text(tenant)
	}
	at, _ := t.arena.put(rows.TagRow, payload)
	t.addRow(at, &h, &r.rowHints)
	r.traces = append(r.traces, t.hash.trace(r.tenantHash, &h.TraceID))
	return true
}

// recall updates the hints and the dictionary statistics for a cell, as interning does. It does
// not decode encoded parts.
func (r *replayer) recall(at *slot, c rows.Cell) {
	t, id := r.t, at.column
	column := &t.tables.Columns[id]
	switch column.Place {
	case rows.Extra, rows.Events, rows.Links:
		r.rowHints.encoded, r.rowHints.incomplete = true, true
	}
	switch {
	case column.Kind == otlpdata.ValueArray && holdsAttribute(column.Place):
		r.rowHints.addArray(&t.hash, t.columns[id].key, otlpdata.EncodedValue(otlpdata.ValueArray, c.Data))
		return
	case column.Kind != otlpdata.ValueString:
		return
	}
	w := &t.columns[id].words
	w.values++
	if c.Word > 0 {
		return
	}
	w.inline = true
	if holdsAttribute(column.Place) {
		r.rowHints.texts = append(r.rowHints.texts, t.hash.attribute(t.columns[id].key, c.Data))
	}
}
