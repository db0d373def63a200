package vfstest

import (
	"io"
	"slices"
)

// body is the content of a file: data, then zeros up to size. Growth by Truncate needs no memory.
type body struct {
	data   []byte
	size   int64
	shared bool // others hold data too: copy before the first write
}

// share returns a second body with the same content. Both copy before they write.
func (b *body) share() body {
	b.shared = true
	return *b
}

func (b *body) readAt(p []byte, off int64) (int, error) {
	if off >= b.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), b.size-off))
	copied := 0
	if off < int64(len(b.data)) {
		copied = copy(p[:n], b.data[off:])
	}
	clear(p[copied:n])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *body) writeAt(p []byte, off int64) {
	if b.shared {
		b.data, b.shared = slices.Clone(b.data), false
	}
	if end := off + int64(len(p)); end > int64(len(b.data)) {
		old := len(b.data)
		b.data = slices.Grow(b.data, int(end)-old)[:end]
		if off > int64(old) {
			clear(b.data[old:off]) // memory released by an earlier Truncate is not zero
		}
		b.size = max(b.size, end)
	}
	copy(b.data[off:], p)
}

func (b *body) truncate(size int64) {
	if size < int64(len(b.data)) {
		b.data = b.data[:size]
	}
	b.size = size
}
