// Package memtable implements the memtable of the span store, which holds the most recent spans:
// the spans that are in the write-ahead log but not in a segment yet. It interns spans, makes them
// searchable, passes them to the segment writer, and is rebuilt from the log at start.
//
// Rows, in the encoding of package rows, are stored in order of arrival. The bytes of a request
// form one record; the log writes the same bytes that readers decode.
//
//	arena    [chunk 1 MiB] [chunk 1 MiB] [one large item] ...   records; no item spans two chunks
//	            ▲       ▲
//	refs     [4096]  [4096] ...       by row: chunk and offset of its item
//	prev     [4096]  [4096] ...       by row: 1 + the previous row with the same trace hash
//	               ▲
//	traces   hash of (tenant, trace id) -> last row with that hash
//
// A block is a run of 4096 rows with its time bounds, its shapes (a shape is what similar spans
// have in common), and a filter of the attributes whose text is not a word (a text in the
// dictionary of its column). Chunks, refs, prev and the definitions in rows.Tables are append-only.
// A reader therefore needs only their lengths at one moment (see [Table.Source]) and shares the
// rest with the writer.
//
// # Interning
//
// The shape of a span is predicted from properties that are cheap to read (see shapeCache) and then
// compared exactly, which succeeds for almost every span. Otherwise the span is converted to a list
// of fields. A hash over service, scope, name, kind, status and the places, keys and kinds of the
// fields finds its shape, which is then compared exactly too. A string becomes a word of the
// dictionary of its column, unless most earlier texts of the column were new. The word of the last
// span with the same shape is tried first. New definitions are written to the record before the row
// that needs them, and are indexed by the same functions that replay uses.
//
// # Guard
//
// Shapes are cheap as long as many spans share them. The guard prevents a sender from creating a
// shape per span. If a service has too many span names, names are stored in rows. If a service has
// too many sets of attribute keys for one span kind, attributes with rare keys are stored in one
// encoded cell; above twice that number of sets, all attributes are. Events are treated likewise.
// If a service has many shapes, its new shapes leave all names and events to the rows. Growth
// beyond that (services, resources, scopes) makes the table [Table.Full].
package memtable
