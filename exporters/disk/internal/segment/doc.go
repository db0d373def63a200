// Package segment is the immutable file of the span store: [Write] makes one of a set of rows, [Open] reads it as a source.Source.
//
//	file     header, block*, section*, directory, trailer
//
//	header   magic "SPANSEGM" [8], version [4], CRC-32C of both [4]
//	block    package block; the first one follows the header, and each the one before
//	section  by kind, see below
//	directory
//	         per section: kind [2], codec [2], CRC-32C of the section as it is in the file [4], offset [8], length [8],
//	         length when decompressed [8]; codec 0: stored, 1: one zstd frame
//	trailer  offset of the directory [8], length of the directory [4], CRC-32C of the directory [4], version [4],
//	         CRC-32C of these 20 bytes [4], magic [8]
//
// All fixed numbers are little-endian. The sections, each of which occurs once, in any order:
//
//	 1 info        what Info has
//	 2 tables      columns, words, scopes, resources, services, shapes: items of package rows
//	 3 layout      cells that all rows of a shape have, and how many words of each column are its dictionary
//	 4 blocks      length and rows of each block, size of each filter
//	 5 zones       in old files, what 13 and 14 are in others
//	 6 filters     of each 16 blocks: a Bloom filter of texts of attributes
//	 7 index       trace -> blocks, in pages
//	 8 pages       directory of these pages
//	 9 series      package stats: rates, errors, durations by minute
//	10 edges       package stats: calls between services by minute
//	11 orphans     package stats: spans whose parent is elsewhere
//	12 catalog     services and their operations; may be missing
//	13 bounds      of each block: bounds of starts; directory of the next
//	14 shapes      of each block: shapes, longest duration of each; in pages
//
// Readers pass over kinds that they do not know, so that a section can be added without a new version.
//
// # Order
//
// Traces are ordered by the start of their earliest span, then by tenant and id; the rows of a trace by start, then span id. A block is cut
// between traces, when it has 4096 rows or so. Its starts therefore are close together, a trace lies in one block, and what is asked for
// most, the newest spans, is at the end.
//
//	survey  (1st pass, order of arrival)  ->  order of traces, constants of shapes, dictionaries of columns
//	writer  (2nd pass, final order)       ->  blocks, and what sections say about them
//
// [Write] and [Merge] differ in where rows come from: a memtable has them all in memory, a merge reads the blocks of its inputs once for
// each pass. As the inputs have the same order, it has few of them open at a time, and keeps of the first pass what it needs of traces, not
// of rows:
//
//	inputs    tables                 ->  union: one vocabulary, and what the ids of each input are in it
//	1st pass  block after block      ->  traces, and their fragments: (block, first row, rows); of columns, only those that may tell
//	                                     something: that a cell is no constant, or how often a text of a possible dictionary occurs
//	2nd pass  trace after trace      ->  rows of its fragments, in order, made rows of the output cell by cell, duplicates dropped;
//	                                     then the writer as above
//
// # Texts
//
// A text that all rows of a shape have is part of the shape. Of the other texts of a column, a dictionary has all, or blocks have them
// as they are; the former if there are few and they repeat. So whether a text is in a segment is answered by the words of its column,
// or by the filters. The filters of a merge have integers, too.
//
// # Damage
//
// Everything has a checksum that is checked when it is read. Trailer, directory and info are needed to open a file, sections 2 to 4 to
// read any span. A damaged block costs its rows, and a damaged column of it those rows that have the column. Damage to the others
// costs no span: without zones no block is passed over, without filters every text may be there, without the index a trace is looked
// for in all blocks, without the catalog names are looked for in the tables.
package segment
