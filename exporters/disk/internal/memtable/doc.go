// Package memtable implements the memtable of the span store: it holds the most recent spans, those
// that are in the write-ahead log but not in a segment yet. It interns spans, answers searches over
// them, provides them to the segment writer, and is rebuilt from the log at start.
//
// Rows, in the encoding of package rows, are stored in the order of arrival. The bytes of a request
// form one record; the log writes the same bytes that readers decode.
//
//	arena    [chunk 1 MiB] [chunk 1 MiB] [one large item] ...   records; no item spans two chunks
//	            ▲       ▲
//	refs     [4096]  [4096] ...       by row: chunk and offset of its item
//	prev     [4096]  [4096] ...       by row: 1 + the previous row with the same trace hash
//	               ▲
//	traces   hash of (tenant, trace id) -> last row with that hash
//
// A block is a run of 4096 rows with its time bounds, its shapes, and a filter of the attributes
// whose text is not a word. Chunks, refs, prev and the definitions in rows.Tables are append-only.
// A reader therefore needs only their lengths at one moment (see [Table.Source]) and shares the
// rest with the writer.
//
// # Interning
//
// The shape of a span is predicted from properties that are cheap to read (see shapeCache) and then
// compared exactly, which succeeds for almost every span. Otherwise the span is converted to a list
// of fields. A hash over service, scope, name, kind, status and the places, keys and kinds of the
// fields finds its shape, which is compared as well. A string becomes a word of the dictionary of
// its column, unless most texts of the column turned out to be new; the word of the shape's last
// span is tried first. New definitions are written to the record before the row that needs them,
// and are indexed by the same functions that replay uses.
//
// # Guard
//
// Shapes are cheap as long as many spans share them. The guard prevents a sender from creating a
// shape per span. Above a number of names of a service, the name moves into the row. Above a number
// of key sets of a service and span kind, attributes with rare keys move into one encoded cell, and
// above twice that number all attributes do. Events are treated likewise. A service with many
// shapes stores names and events in rows altogether. Growth beyond that (services, resources,
// scopes) makes the table [Table.Full].
package memtable
