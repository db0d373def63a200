// Package rows defines the encoding of one span as a row, and the vocabulary of interned spans: the
// tables of definitions that rows refer to by id. All packages of the disk store use it.
//
// A span is split into a head (ids, times), a shape, and cells. The shape holds the properties that
// similar spans have in common: service, scope, name, span kind, status code, and the list of
// columns that they fill. A cell is the value of one column of one span: a number, a text, or the
// index of a word (a text in the dictionary of the column). All OTLP fields of a span are
// preserved; unknown fields are lost.
//
//	Tables  Services   [id]Service    tenant and name
//	        Columns    [id]Column     place in the span, key, kind of value
//	        Words      [column][id]   dictionaries of string columns
//	        Scopes     [id]           encoded scope and its schema URL
//	        Resources  [id]           tenant, encoded resource and its schema URL
//	        Shapes     [id]Shape      service, scope, name, kind, status, columns of the cells
//
// A record holds spans of one request. Each span is preceded by the definitions that no earlier
// span needed. A large request takes several records. Records are both what the write-ahead log
// stores and what the memtable searches. The log repeats most definitions in a later record, so
// that the spans after a damaged record stay readable; see [Definitions]:
//
//	record  item*
//	item    uvarint(length of payload <<3 | tag), payload
//	  row       0  uvarint shape, uvarint(resource<<1 | has parent), trace id [16], span id [8],
//	               parent id [8] unless there is none, start [8], uvarint(end - start, wrapping),
//	               cells
//	  column    1  uvarint id, place, kind, key
//	  word      2  uvarint column, uvarint id, text
//	  scope     3  uvarint id, text schema URL, encoded InstrumentationScope
//	  resource  4  uvarint id, text tenant, text schema URL, encoded Resource
//	  shape     5  uvarint id, uvarint service, uvarint scope, zigzag kind, zigzag status, flags,
//	               text name, uvarint column*
//	  service   6  uvarint id, text tenant, name
//	  position  7  uvarint number of rows before it in the log
//	text    uvarint length, bytes
//	cell    string: uvarint(1 + word), or 0 and a text; bool: one byte; int: zigzag; double: [8];
//	        empty: nothing; others: a text
//
// Ids are assigned in order from 0. Every definition carries its own id, so that a reader notices a
// lost definition. Fixed-size numbers are little-endian; trace and span ids are bytes as in OTLP.
package rows
