// Package block encodes a few thousand rows of a segment as a block, and decodes blocks column by
// column.
//
// Rows come in their final order: the rows of a trace are adjacent, the earliest start first. Most
// of the head of a row follows from the row of its parent, which keeps heads small. Cells that are
// the same in all rows of a shape are stored in the [Layout] of the segment. Other cells are stored
// by column, in the order (shape, row, position): a column that occurs in several shapes, or
// several times in one shape, is one vector. The position of a cell in its vector follows from the
// shapes of the rows.
//
//	block      CRC-32C of all bytes before the parts [4], length of the directory [4], directory,
//	           parts
//	directory  version (1), uvarint rows, uvarint traces, entry of each head part,
//	           uvarint columns, per column: uvarint id - preceding id (the first: id + 1), entry
//	entry      uvarint length, CRC-32C of the part [4]
//	parts      in the order of the directory, without gaps; the last one ends the block
//
// The head parts, each a column of package column:
//
//	runs      Uint64s per trace: number of rows
//	high, low Uint64s per trace: the halves of its id, big-endian; a 64-bit id costs 8 bytes
//	shapes    Codes   per row
//	spans     Fixed   per row: span id
//	parents   Codes   per row: 0 none, 1 explicit, 2k the row k before (k > 0), 2k+3 the row
//	                  k after (k = 0: the row itself). That row belongs to the same trace, and
//	                  its span id is the parent id
//	explicit  Fixed   per row with an explicit parent: parent id
//	resources Codes   per row: 0 that of the parent, which is an earlier row; 1 the next new one;
//	                  2+i the i-th new one of the earlier rows whose shapes have the same
//	                  tenant and service
//	new       Codes   per row with a new resource: resource
//	first     Int64s  per trace: start of its first row - that of the preceding trace
//	steps     Int64s  per other row: start - that of the preceding row
//	durations Int64s  per row: end - start
//
// A column holds the varying cells of one column of the tables: strings as Codes of words (from 0)
// if the column has a dictionary, ints as Int64s, doubles as Float64s, bools as Bools, all others
// as Strings. Empty values are not stored. A block has the columns that vary in at least one of its
// shapes.
//
// Fixed-size numbers are little-endian. Arithmetic on times wraps, so that all times are preserved,
// in any order.
package block
