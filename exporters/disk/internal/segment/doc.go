// Package segment implements the immutable file of the span store. [Write] and [Merge] write
// segments; [Open] opens one as a source.Source.
//
//	file     header, block*, section*, directory, trailer
//
//	header   magic "SPANSEGM" [8], version [4], CRC-32C of both [4]
//	block    see package block; blocks follow the header without gaps
//	section  see below
//	directory
//	         per section: kind [2], codec [2], CRC-32C of the stored bytes [4], offset [8],
//	         length [8], decompressed length [8]; codec 0: stored, 1: one zstd frame
//	trailer  offset of the directory [8], length of the directory [4], CRC-32C of the directory
//	         [4], version [4], CRC-32C of these 20 bytes [4], magic [8]
//
// All fixed-size numbers are little-endian. Each section occurs at most once, in any order:
//
//	 1 info        see Info
//	 2 tables      definitions: items of package rows
//	 3 layout      cells that all rows of a shape have, and the sizes of dictionaries
//	 4 blocks      length and rows of each block, size of each filter
//	 6 filters     per group of 16 blocks: a Bloom filter of attribute texts
//	 7 index       trace -> blocks, in pages
//	 8 pages       directory of these pages
//	 9 series      package stats: rates, errors, durations by minute
//	10 edges       package stats: calls between services by minute
//	11 orphans     package stats: spans whose parent is not in the segment
//	13 bounds      per block: bounds of starts; directory of the pages of 14
//	14 shapes      per block: shapes, maximum duration of each; in pages
//	15 parts       per entry of 7: start, duration and root of the trace
//	16 pages       directory of these pages
//	17 services    package namelist: services, in pages; may be missing, like 18 and 19
//	18 operations  package namelist: operations, in pages
//	19 names       directory of these pages
//
// 5 and 12 are not used. Readers ignore unknown kinds, so that a section can be added without a new
// version.
//
// # Order
//
// Traces are ordered by the start of their earliest span, then by tenant and id; the rows of a
// trace by start, then span id. Blocks of about 4096 rows are cut between traces. The starts of a
// block are therefore close together, a trace lies in one block, and the newest spans, which are
// queried most, are at the end.
//
//	analyzer  (first pass, by arrival)    ->  order of traces, constants of shapes, dictionaries
//	writer    (second pass, final order)  ->  blocks, and the sections about them
//
// [Write] and [Merge] differ in the source of rows: a memtable has all rows in memory; a merge
// reads the blocks of its inputs once per pass. Since the inputs have the same order, a merge needs
// only few open blocks at a time. From the first pass it keeps data about traces but not about
// rows:
//
//	inputs       tables             ->  merged tables, and a translation of ids for each input
//	first pass   block after block  ->  traces and their fragments (block, first row, rows); reads
//	                                    only columns that may show that a cell is not constant,
//	                                    or how often a text of a possible dictionary occurs
//	second pass  trace after trace  ->  rows of its fragments, in order, converted to rows of
//	                                    the output, without duplicates; then the writer
//
// # Texts
//
// A text that all rows of a shape have (a shape is what similar spans have in common, see package
// rows) is a constant of the shape. The other texts of a column are either all in its dictionary,
// if they are few and repeat, or stored in blocks. Whether a text occurs in a segment therefore
// follows from the words (dictionary entries) of its column or from the filters. The filters of a
// merge also cover integers.
//
// # Damage
//
// All data has checksums, which are checked when it is read. Trailer, directory and info are needed
// to open a file, sections 2 to 4 to read any span. A damaged block costs its rows; a damaged
// column of a block costs the rows with that column. Damage to other sections costs no spans:
// without zones no block is skipped, without filters any text may occur, without the index a trace
// is searched in all blocks, without the parts of traces searches by properties of the trace read
// more traces, and without the lists of names the tables are read.
package segment
