package memtable

import (
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Replay adds a record that the log kept, which may be changed afterwards. All that can be read of it becomes visible: lost is the number
// of rows that refer to definitions of records that are missing, or that are damaged. An error, which matches rows.ErrCorrupt, tells that
// something in the record is not what Append wrote; what came before and what does not depend on it is there all the same. Sources that
// were taken before must not be read meanwhile: replay is for the start, when there are no readers yet.
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
		if tag == rows.TagRow {
			if !r.row(payload) {
				lost++
			}
			continue
		}
		if failed = t.relearn(tag, payload); failed != nil && err == nil {
			err = failed
		}
	}
	t.publish(r.traces)
	return lost, err
}

// relearn puts a definition of the log into the arena and learns it.
func (t *Table) relearn(tag rows.Tag, payload []byte) error {
	_, stored := t.arena.put(tag, payload)
	return t.learn(tag, stored)
}

// replayer adds the rows of one record.
type replayer struct {
	t      *Table
	traces []uint64
	cells  []rows.Cell
	tenant string
	owner  uint64 // hash of the tenant

	remarks remarks
}

// row adds a row, and reports whether it can be read.
func (r *replayer) row(payload []byte) bool {
	t := r.t
	var h rows.Head
	var err error
	if r.cells, err = t.tables.ReadRow(payload, &h, r.cells[:0]); err != nil {
		return false
	}
	r.remarks.reset()
	slots := t.slotsOf(h.Shape)
	for i := range slots {
		r.recall(&slots[i], r.cells[i])
	}
	if tenant := t.tables.Resources[h.Resource].Tenant; r.owner == 0 || tenant != r.tenant {
		r.tenant, r.owner = tenant, t.hash.text(tenant)
	}
	at, _ := t.arena.put(rows.TagRow, payload)
	t.addRow(at, &h, &r.remarks)
	r.traces = append(r.traces, t.hash.trace(r.owner, &h.TraceID))
	return true
}

// recall notes what interning would have noted of a cell. It does not look into encoded parts.
func (r *replayer) recall(at *slot, c rows.Cell) {
	t, id := r.t, at.column
	column := &t.tables.Columns[id]
	switch column.Place {
	case rows.Extra, rows.Events, rows.Links:
		r.remarks.blobs, r.remarks.opaque = true, true
	}
	if column.Kind != otlpdata.ValueString {
		return
	}
	w := &t.columns[id].words
	w.values++
	if c.Word > 0 {
		return
	}
	w.inline = true
	if holdsAttribute(column.Place) {
		r.remarks.texts = append(r.remarks.texts, t.hash.attribute(t.columns[id].key, c.Data))
	}
}
