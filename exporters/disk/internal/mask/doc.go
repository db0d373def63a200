// Package mask hides deleted spans of a source until merging leaves them out.
//
//	marks ──▶ rules: those that may hit the source
//	                     │ survey, once: blocks that may have hidden rows are read
//	                     ▼
//	  block 0   ────────────────  nothing hidden: passed through as it is
//	  block 1   ──xx────x───────  hidden rows (a bit each), and which shapes and resources the others have
//	  block 2   xxxxxxxxxxxxxxxx  no rows any more
//
//	  row of the masked block  0 1 2 3 4 5 6 7 8 9 ...
//	  row of the block below   0 1 4 5 6 7 9 ...
//
// What the source knows in sum, its statistics, counts hidden rows, so a masked source has none and is counted row by row. Its vocabulary
// is cut down to what rows that are left have: shapes and resources that only hidden rows have are blank, and dictionaries are not shown.
//
// A survey costs one look-up for each deleted trace, and for a service or a range reading shapes and starts of the blocks that may have
// spans of it. It keeps 1 bit a row and some words for each block that has hidden rows.
package mask
