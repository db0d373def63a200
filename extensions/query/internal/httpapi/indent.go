package httpapi

// indenter indents compact JSON by four spaces, as json.Indent does. It processes the JSON in parts
// of any length, so that a response need not be in memory as a whole.
type indenter struct {
	depth    int
	inString bool
	escaped  bool // the last character was a backslash in a string
	opened   bool // the last character was [ or {
}

// appendTo appends the next part of the JSON to dst, indented.
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
		if closes != n.opened { // empty lists and objects stay on one line
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
