package httpapi

// indenter writes compact JSON with line ends and blanks, as encoding/json's Indent does with four blanks. It takes the JSON in parts, so
// that a large answer need not be held. The zero value begins.
type indenter struct {
	depth    int
	inString bool
	escaped  bool // the last character was a backslash in a string
	opened   bool // the last character opened a list or an object
}

// appendTo appends the next part of the JSON.
func (n *indenter) appendTo(dst, json []byte) []byte {
	for _, c := range json {
		if n.inString {
			dst = append(dst, c)
			n.inString = n.escaped || c != '"'
			n.escaped = !n.escaped && c == '\\'
			continue
		}
		closes := c == '}' || c == ']'
		if closes {
			n.depth--
		}
		if closes != n.opened { // what is empty stays on its line
			dst = n.newline(dst)
		}
		n.opened = false
		dst = append(dst, c)
		switch c {
		case '"':
			n.inString = true
		case '{', '[':
			n.depth++
			n.opened = true
		case ',':
			dst = n.newline(dst)
		case ':':
			dst = append(dst, ' ')
		}
	}
	return dst
}

func (n *indenter) newline(dst []byte) []byte {
	dst = append(dst, '\n')
	for range n.depth {
		dst = append(dst, "    "...)
	}
	return dst
}
