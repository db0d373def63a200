package block

// headNames are the names of the head parts, as [Block.Sizes] gives them.
var headNames = [headParts]string{
	partRuns: "trace table", partHigh: "trace ids", partLow: "trace ids", partShapes: "shapes", partSpans: "span ids", partParents: "parents",
	partExplicit: "parents elsewhere", partResources: "resources", partNew: "resources", partFirst: "starts", partSteps: "starts",
	partDurations: "durations",
}

// Sizes says how many bytes each part of the block takes in the file: the directory and the parts of heads by a name, which may come several
// times, and the columns by their ids.
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
	head("directories of blocks", len(b.data)-parts)
}
