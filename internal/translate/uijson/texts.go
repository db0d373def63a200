package uijson

// textChunk is how many bytes texts allocates at once, and textRoom how many must be left of them for another text.
const textChunk, textRoom = 64 << 10, 4 << 10

// texts makes short texts, many of one allocation: it is what is left of that.
type texts []byte

// begin returns an empty text to append to. There is but one until end is called with it.
func (t *texts) begin() []byte {
	if cap(*t)-len(*t) < textRoom {
		*t = make([]byte, 0, textChunk)
	}
	return (*t)[len(*t):]
}

// end returns a text as it will stay.
func (t *texts) end(text []byte) []byte {
	if len(text) <= cap(*t)-len(*t) { // else it has outgrown the chunk, and is somewhere else
		*t = (*t)[:len(*t)+len(text)]
	}
	return text[:len(text):len(text)]
}
