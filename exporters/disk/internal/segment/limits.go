package segment

import "github.com/tracing-backend/tracing/exporters/disk/internal/block"

const (
	// targetRows is how many rows a block has, about: blocks are cut between traces. A trace of more than twice as many is cut itself.
	targetRows = 4096
	// maxBlockBytes and maxBlockCells bound the rows of a block, and so the memory that making or reading one takes. One row may exceed them.
	maxBlockBytes = 4 << 20
	maxBlockCells = 512 << 10

	// maxRowBytes and maxRowCells bound a row, so that the values of a column of a block stay below what package column takes. A request, and
	// so a row, is smaller.
	maxRowBytes = 100 << 20
	maxRowCells = 2 << 20

	// maxDictionary is how many distinct texts a dictionary column has at most.
	maxDictionary = 4096
	// maxMergedDictionary is that of a merge, so that what was a dictionary column in its inputs remains one.
	maxMergedDictionary = 16 << 10
	// minRepeats is how often the texts of a dictionary column occur on average at least; texts that do not repeat are better off in blocks.
	minRepeats = 4
	// maxCounted bounds the distinct texts that all columns together remember while they may become dictionary columns.
	maxCounted = 256 << 10
	// minConstantRows is how many rows a shape needs before what they share is kept with the shape: the few rows of rare shapes compress
	// better among others of their columns.
	minConstantRows = 4

	// maxOpenBlocks is how many blocks a merge keeps open for traces that are in several, beside one of each input that has the trace at hand.
	maxOpenBlocks = 8
	// paceRows is how many rows a merge reads before it asks whether to go on.
	paceRows = 4096
	// maxExpected bounds the traces for which a merge makes room before it has seen them.
	maxExpected = 2 << 20
	// headBytes is about how long the head of a row is.
	headBytes = 48

	// stripeBlocks is how many blocks share a filter. It is part of the format.
	stripeBlocks = 16
	// maxStripeValues bounds what is remembered for one filter; a stripe with more values has none.
	maxStripeValues = 2 << 20

	// maxFilters bounds all filters of a segment in bytes. They are in memory until it is complete. What exceeds it has no filter.
	maxFilters = 64 << 20

	// knownHashes and knownIntegers are how many values of a stripe a merge remembers, so that the filter has them once.
	knownHashes      = 1 << 16
	knownIntegers    = 1 << knownIntegerBits
	knownIntegerBits = 14

	// maxZonePage bounds a page of the shapes of blocks, decompressed. One of blocks with as many rows and shapes as can be is shorter.
	maxZonePage = zonePageBlocks * (block.MaxRows*6 + 16)

	// pageBytes is about how long a page of the trace index is.
	pageBytes = 4 << 10

	// maxBlocks bounds the blocks of a file that is read.
	maxBlocks = 1 << 20
	// maxSection bounds a section, decompressed.
	maxSection = 256 << 20
	// maxRatio bounds how much longer a section is after decompression, and so what a damaged length can make a reader allocate. A writer
	// leaves a section that would exceed it uncompressed.
	maxRatio = 64
	// maxPositions bounds the columns of all shapes together, of which a reader keeps some 70 bytes each.
	maxPositions = 16 << 20
	// maxDirectory bounds the directory of sections, in bytes.
	maxDirectory = 64 << 10
	// maxInfo bounds the info section, in bytes; the names of replaced segments are what can be long.
	maxInfo = 1 << 20
	// maxCatalog bounds the catalog in bytes, in the file and in memory, and maxCatalogNames its services and operations. What is larger is
	// looked for in the tables each time.
	maxCatalog      = 1 << 20
	maxCatalogNames = 16 << 10
	// maxKept is the largest read buffer that is kept for the next block.
	maxKept = 8 << 20
	// maxShared is how many rows of a trace that have the span id of another row are looked at when parents are resolved.
	maxShared = 64
)
