package memtable

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// repeats are the definitions that the log does not repeat yet. The log has each definition twice,
// far apart: otherwise a damaged record would cost all later rows that need its definitions.
type repeats struct {
	fresh   []ref // made since the last repetition
	due     []ref // made before it: the distance is at least repeatEvery
	at      int64 // Table.arena.written at the last repetition
	written int64 // bytes repeated
}

const (
	// repeatEvery is the number of bytes of the log between repetitions.
	repeatEvery = 256 << 10
	// freeRepeats and repeatShare limit the bytes that are repeated: 1/repeatShare of the log, and
	// freeRepeats more, because a log begins with most of its definitions. Definitions above the
	// limit, such as those of a service that has a resource for each span, are not repeated.
	freeRepeats = 512 << 10
	repeatShare = 20
)

// repeatDefinitions returns a record with the definitions that are due, or nil.
func (t *Table) repeatDefinitions() []byte {
	r := &t.repeats
	if t.arena.written-r.at < repeatEvery {
		return nil
	}
	record := rows.AppendPosition(nil, t.logged)
	limit := freeRepeats + t.arena.written/repeatShare - r.written
	for _, at := range r.due {
		item := at.in(t.arena.chunks)
		_, _, rest, err := rows.NextItem(item)
		if item = item[:len(item)-len(rest)]; err == nil && int64(len(record)+len(item)) <= limit {
			record = append(record, item...)
		}
	}
	r.at, r.written = t.arena.written, r.written+int64(len(record))
	r.due, r.fresh = r.fresh, r.due[:0]
	return record
}
