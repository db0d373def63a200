package segment

import "github.com/tracing-backend/tracing/exporters/disk/internal/block"

const (
	// targetRows is the approximate number of rows of a block: blocks are cut between traces. A
	// trace with more than twice this number of rows is cut itself.
	targetRows = 4096
	// maxBlockBytes and maxBlockCells limit the rows of a block, and thereby the memory for writing
	// or reading it. A single row may exceed them.
	maxBlockBytes = 4 << 20
	maxBlockCells = 512 << 10

	// maxRowBytes and maxRowCells limit a row, so that the values of a column of a block stay below
	// the limit of package column. Requests, and thereby rows, are smaller.
	maxRowBytes = 100 << 20
	maxRowCells = 2 << 20

	// maxDictionary is the maximum number of words in the dictionary of a column.
	maxDictionary = 4096
	// maxMergedDictionary is the maximum in a merge. It is higher, so that columns with a
	// dictionary in the inputs keep one.
	maxMergedDictionary = 16 << 10
	// minRepeats is the minimum average number of occurrences of the words of a dictionary; texts
	// that do not repeat are smaller in blocks.
	minRepeats = 4
	// maxCounted is the maximum number of distinct texts that all text counters together hold.
	maxCounted = 256 << 10
	// minConstantRows is the minimum number of rows of a shape with constants (cells that all its
	// rows have): the few rows of rare shapes compress better together with other rows of their
	// columns.
	minConstantRows = 4

	// maxCachedBlocks is the maximum number of unused blocks that a merge keeps open for traces
	// that are in several blocks.
	maxCachedBlocks = 8
	// paceRows is the number of rows that a merge reads between calls of MergeOptions.Pace.
	paceRows = 4096
	// maxExpectedTraces is the maximum number of traces for which a merge allocates memory in
	// advance.
	maxExpectedTraces = 2 << 20
	// headBytes is the approximate size of the head of a row.
	headBytes = 48

	// groupBlocks is the number of blocks that share a filter. It is part of the file format.
	groupBlocks = 16
	// maxGroupValues is the maximum number of values of a filter. A group with more values has no
	// filter.
	maxGroupValues = 2 << 20

	// maxFilters is the maximum size of all filters of a segment in bytes. They are in memory until
	// the segment is complete. Groups beyond it have no filter.
	maxFilters = 64 << 20

	// maxRecentHashes and maxRecentIntegers are the numbers of values of a group that a merge
	// remembers to avoid adding them twice.
	maxRecentHashes   = 1 << 16
	maxRecentIntegers = 1 << recentIntegerBits
	recentIntegerBits = 14

	// maxZonePage is the maximum decompressed size of a page of the shapes section. A page of
	// blocks with the maximum number of rows and shapes is smaller.
	maxZonePage = zonePageBlocks * (block.MaxRows*6 + 16)

	// pageBytes is the approximate size of a page of the trace index.
	pageBytes = 4 << 10
	// maxPageEntries is the maximum number of entries of such a page. An entry has two bytes or
	// more.
	maxPageEntries = pageBytes

	// maxBlocks is the maximum number of blocks of a segment.
	maxBlocks = 1 << 20
	// maxSection is the maximum decompressed size of a section in bytes.
	maxSection = 256 << 20
	// maxRatio is the maximum ratio of decompressed to stored size of a section. It bounds the
	// memory that a reader allocates for a damaged length. A writer does not compress a section
	// beyond it.
	maxRatio = 64
	// maxPositions is the maximum number of columns of all shapes together. A reader needs about 70
	// bytes for each.
	maxPositions = 16 << 20
	// maxDirectory is the maximum size of the directory of sections in bytes.
	maxDirectory = 64 << 10
	// maxInfo is the maximum size of the info section in bytes. Most of it is names of replaced
	// segments.
	maxInfo = 1 << 20
	// maxNames is the maximum size of the lists of services and operations in bytes. Instead of
	// larger lists, the tables are read.
	maxNames = 64 << 20
	// maxBuffer is the maximum size of read buffers that are reused.
	maxBuffer = 8 << 20
	// maxDuplicateIDs is the maximum number of rows of a trace with the span id of another row that
	// are considered when parents are resolved.
	maxDuplicateIDs = 64
)
