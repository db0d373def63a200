package memtable

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// repeats holds the definitions that the log has not repeated yet. The log has each definition
// twice, far apart: otherwise a damaged record would make all later rows that need its definitions
// unreadable.
type repeats struct {
	fresh   []ref // made since the last repetition
	due     []ref // made before it: the distance is at least repeatEvery
	at      int64 // Table.arena.written at the last repetition
	written int64 // bytes repeated
}

const (
	// repeatEvery is the number of bytes of the log between repetitions.
	repeatEvery = 64 << 10
	// freeRepeats and repeatShare limit the bytes that are repeated: 1/repeatShare of the log, and
	// freeRepeats more, because a log begins with most of its definitions. Definitions above the
	// limit are not repeated, for example if a service has a resource for each span.
	freeRepeats = 512 << 10
	repeatShare = 20
)

// repeatDefinitions adds the definitions that are due to the current record.
func (t *Table) repeatDefinitions() {
	r := &t.repeats
	if t.arena.written-r.at < repeatEvery {
		return
	}
	limit := freeRepeats + t.arena.written/repeatShare
	for _, at := range r.due {
		tag, payload, _, err := rows.NextItem(at.in(t.arena.chunks))
		if err == nil && r.written+int64(len(payload)) <= limit {
			before := t.arena.written
			t.arena.put(tag, payload)
			r.written += t.arena.written - before
		}
	}
	r.at = t.arena.written
	r.due, r.fresh = r.fresh, r.due[:0]
}
