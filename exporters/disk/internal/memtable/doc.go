// Package memtable holds the spans that were written last: those that the log has and no segment yet. It interns them, answers searches
// over them, hands them to the segment writer, and is rebuilt from the log at start.
//
// The rows of package rows are stored in the order in which they came. The bytes of a request are one record; what the log writes and what
// readers parse are the same bytes.
//
//	arena    [chunk 1 MiB] [chunk 1 MiB] [one large item] ...   records, end to end; an item never spans two chunks
//	            ▲       ▲
//	refs     [4096]  [4096] ...       by row: chunk and offset of its item
//	prev     [4096]  [4096] ...       by row: 1 + the row before with the same trace hash
//	               ▲
//	traces   hash of (tenant, trace id) -> last row with that hash
//
// A block is a run of 4096 rows with its time bounds, its shapes, and a filter of the attributes whose text is no word.
// Chunks, refs, prev and the definitions in rows.Tables are only ever appended to, so a reader needs nothing but the lengths
// at one moment (see [Table.Source]) and shares the rest with the writer.
//
// # Interning
//
// What can be seen of a span without reading its keys leads to the shape that a span like it had last (see guesses), which is then compared
// exactly; that is all for nearly every span. Else the span is written down as the list of fields that it fills. One hash over service,
// scope, name, kind, status and the fields' places, keys and kinds finds its shape, which is compared, too. A string becomes a word of its
// column's dictionary unless the column turned out to hold mostly new texts; the word that the shape's last span had there is tried first.
// What is new is defined in the record, before the row that needs it, and enters the indexes through the same functions that replay uses.
//
// # The guard
//
// Shapes are cheap as long as many spans share them. The guard keeps a sender from making one for each span: past a number of names of a
// service the name moves into the row; past a number of key sets of a service and kind the attributes with rare keys move into one encoded
// blob, and past twice that number all attributes do; events likewise. A service with many shapes leaves names and events to
// the rows altogether. What still grows (services, resources, columns) makes the table [Table.Full].
package memtable
