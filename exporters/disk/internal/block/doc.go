// Package block encodes some thousand rows of a segment to bytes, and reads them back column by column.
//
// Rows come in their final order: the rows of a trace lie together, the earliest first. Within a trace most of a head follows from the
// row of the parent, which is what makes heads small. Cells that are the same in all rows of a shape stand in the segment's [Layout]; the
// others are stored by column, in the order (shape, row, position), so that a column that occurs in several shapes, or several times in
// one, is one vector. Where a cell is in its vector follows from the shapes of the rows by counting.
//
//	block      CRC-32C of all up to the parts [4], length of the directory [4], directory, parts
//	directory  version (1), uvarint rows, uvarint traces, entry of each head part, uvarint columns, per column: uvarint id - id before
//	           (the first: id + 1), entry
//	entry      uvarint length, CRC-32C of the part [4]
//	parts      in the order of the directory, without gaps; the last one ends the block
//
// The head parts, each a column of package column:
//
//	runs       Uint64s  of each trace: how many rows
//	high, low  Uint64s  of each trace: the halves of its id, big-endian; a 64-bit id costs 8 bytes
//	shapes     Codes    of each row
//	spans      Fixed    of each row: span id
//	parents    Codes    of each row: 0 none, 1 explicit, 2k the row k before (k > 0), 2k+3 the row k behind (k = 0: the row itself). That
//	                    row is of the same trace, and its span id is the parent id
//	explicit   Fixed    of each row whose parent is explicit: parent id
//	resources  Codes    of each row: 0 that of the parent, which is a row before; 1 the next new one; 2+i the i-th new one of those rows
//	                    before whose shapes have the same tenant and service
//	new        Codes    of each row whose resource is new: resource
//	first      Int64s   of each trace: start of its first row, less that of the trace before
//	steps      Int64s   of each other row: start, less that of the row before
//	durations  Int64s   of each row: end less start
//
// A column holds the cells of one column of the tables that vary: strings as Codes of words (from 0) where the column is a dictionary; ints
// as Int64s, doubles as Float64s, bools as Bools, all else as Strings. Empty values take nothing. The columns of a block are those that
// vary in a shape that occurs.
//
// Fixed numbers are little-endian. Arithmetic on times wraps, so every time is kept, in whatever order.
package block
