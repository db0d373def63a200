// Package column encodes the vectors that a block of a segment consists of: a few thousand values of one kind to bytes, and back.
//
// A column describes itself but for two things that its reader knows: the kind of its values and how many there are. It has no checksum;
// the block around it has one. No values are no bytes. Columns contain columns: codes are numbers, a table of strings is strings.
//
//	numbers   method | transform<<4
//	            constant  value
//	            packed    base, factor, width, fields                      v = base + factor*x
//	            classes   base, factor, [symbols: class of each x], mantissas as fields (class.go)
//	            table     size-1, base, width, fields, [symbols: codes]    most frequent value first
//	doubles   method; decimal: exponent, numbers (v*10^exponent) | bits: numbers
//	bools     [symbols]
//	codes     method; planes: how many, [symbols: lowest bytes], ... | numbers
//	fixed     mask of constant byte positions, their bytes, the other bytes of each value
//	strings   method
//	            constant  length, [stream]
//	            plain     numbers: lengths, [stream: all bytes]
//	            split     count, plain: templates, codes, slot of numbers, ..., slot of hex digits, ...
//	            table     count, strings: the distinct ones, codes
//
//	[symbols] width 0 to 8, [stream: fields]                     small numbers
//	[stream]  length<<1 | compressed, bytes                      zstd frame without its magic number, or the bytes
//
// Single numbers are varints, those that can be negative zigzag; fields are packed from the lowest bit up; everything is little-endian.
// Method bytes are the version: what exists never changes its meaning, new forms get new numbers, and a reader refuses those that it does
// not know.
//
// Only what can pay goes through the compressor. Random bits (mantissas, ids, hex digits) are stored next to what describes them, which is
// small and skewed and where the entropy coder works well. What form is smallest is estimated from counts, before anything is written;
// only where the estimate cannot tell (codes, tables of strings) are two forms written and the smaller one kept.
package column
