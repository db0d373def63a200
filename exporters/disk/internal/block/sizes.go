package block

// headNames are the names of the head parts in the output of [Block.Sizes].
var headNames = [headParts]string{
	partRuns: "trace table", partHigh: "trace ids", partLow: "trace ids", partShapes: "shapes", partSpans: "span ids", partParents: "parents",
	partExplicit: "explicit parents", partResources: "resources", partNew: "resources", partFirst: "starts", partSteps: "starts",
	partDurations: "durations",
}

// Sizes reports the size of each part of the block in the file. It calls head for the directory and
// the head parts with their names, which are not unique, and column for columns with their ids.
func (b *Block) Sizes(head func(name string, bytes int), column func(id uint32, bytes int)) {
	parts := 0
	for i, e := range b.dir.heads {
		head(headNames[i], int(e.length))
		parts += int(e.length)
	}
	for _, c := range b.dir.columns {
		column(c.id, int(c.length))
		parts += int(c.length)
	}
	head("block directories", len(b.data)-parts)
}
