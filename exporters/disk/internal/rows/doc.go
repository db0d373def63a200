// Package rows is what all rooms of the disk store share: the vocabulary of interned spans and the encoding of one span as a row.
//
// A span is taken apart into a head (ids, times), a shape, and cells. The shape has everything that spans of one kind have in common:
// service, scope, name, span kind, status code, and the list of columns that they fill. A cell is the value of one column of one span: a
// number, a text, or the number of a word in the column's dictionary. Nothing of a span that OTLP knows is lost; unknown fields are.
//
//	Tables  Services   [id]Service    tenant and name
//	        Columns    [id]Column     place in the span, key, kind of value
//	        Words      [column][id]   dictionaries of string columns
//	        Scopes     [id]           encoded scope and its schema URL
//	        Resources  [id]           tenant, encoded resource and its schema URL
//	        Shapes     [id]Shape      service, scope, name, kind, status, columns in the order of cells
//
// A record holds spans of one request, all or as many as there was room for, together with the definitions that they are the first to need,
// in the order in which a reader needs them. It is at once what the log keeps and what the memtable searches:
//
//	record  item*
//	item    uvarint(length of payload <<3 | tag), payload
//	  row       0  uvarint shape, uvarint(resource<<1 | has parent), trace id [16], span id [8], parent id [8] unless there is none,
//	               start [8], uvarint(end - start, wrapping), cells
//	  column    1  uvarint id, place, kind, key
//	  word      2  uvarint column, uvarint id, text
//	  scope     3  uvarint id, text schema URL, encoded InstrumentationScope
//	  resource  4  uvarint id, text tenant, text schema URL, encoded Resource
//	  shape     5  uvarint id, uvarint service, uvarint scope, zigzag kind, zigzag status, flags, text name, uvarint column*
//	  service   6  uvarint id, text tenant, name
//	text    uvarint length, bytes
//	cell    string: uvarint(1 + word), or 0 and a text; bool: one byte; int: zigzag; double: [8]; empty: nothing; others: a text
//
// Ids are given in order from 0, and every definition carries its own, so that a reader notices when one was lost. Fixed numbers are
// little-endian, ids of spans and traces are bytes as OTLP has them.
package rows
