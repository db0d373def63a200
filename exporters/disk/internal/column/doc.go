// Package column encodes vectors of a few thousand values of one kind to bytes, and decodes them.
// Blocks of segments consist of such columns.
//
// A column describes itself except for the kind and number of its values, which the reader must
// know. It has no checksum; the surrounding block has one. A vector without values is encoded as no
// bytes. Columns contain columns: codes are encoded as numbers, a table of strings as strings.
//
//	numbers   method | transform<<4
//	            constant  value
//	            packed    base, factor, width, fields                  v = base+factor*x
//	            classes   base, factor, [symbols: class of each x], mantissas (classes.go)
//	            table     size-1, base, width, fields, [symbols: codes] most frequent first
//	doubles   method; decimal: exponent, numbers (v*10^exponent) | bits: numbers
//	bools     [symbols]
//	codes     method; planes: count, [symbols: lowest bytes], ... | numbers
//	fixed     mask of constant byte positions, their bytes, the other bytes of each value
//	strings   method
//	            constant  length, [stream]
//	            plain     numbers: lengths, [stream: all bytes]
//	            split     count, plain: templates, codes, slots of numbers, slots of hex digits
//	            table     count, strings: the distinct ones, codes
//
//	[symbols] width 0 to 8, [stream: fields]      small numbers
//	[stream]  length<<1 | compressed, bytes       zstd frame without magic number, or the bytes
//
// Single numbers are varints, zigzag if they can be negative. Fields are packed from the lowest bit
// up. Everything is little-endian. Method bytes serve as the version: the meaning of a method never
// changes, new encodings get new numbers, and a reader rejects unknown numbers.
//
// Only data that is likely to shrink is compressed. Random bits (mantissas, ids, hex digits) are
// stored apart from the symbols that describe them, which are small and skewed so that the entropy
// coder works well. The encoder estimates from counts which encoding is smallest before it writes
// anything. Only where estimates are not reliable (codes, tables of strings) does it write two
// encodings and keep the smaller one.
package column
