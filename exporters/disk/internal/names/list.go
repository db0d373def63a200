package names

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
)

// list collects distinct texts with a prefix.
type list struct {
	prefix     string
	limit, max int  // length of the result; length at which texts are ignored
	bytesLeft  int  // remaining bytes for texts after the first one
	closed     bool // a text was dropped because of its size
	texts      map[string]struct{}
}

// maxListBytes is the maximum size of the texts in one list.
const maxListBytes = 16 << 20

// defaultLimit is the length of a list of attributes without a limit.
const defaultLimit = 1000

func newList(s *scan.Session, prefix string, limit int) *list {
	if limit <= 0 {
		limit = defaultLimit
	}
	maxLen := s.Options.MaxValues
	return &list{prefix: prefix, limit: min(limit, maxLen), max: maxLen, bytesLeft: maxListBytes, texts: make(map[string]struct{})}
}

// add keeps a copy of a text, because text may refer to memory of the view.
func (l *list) add(text string) {
	if _, known := l.texts[text]; known || len(l.texts) >= l.max || !strings.HasPrefix(text, l.prefix) {
		return
	}
	if l.closed = l.closed || len(text) > l.bytesLeft && len(l.texts) > 0; l.closed {
		return
	}
	l.bytesLeft -= len(text)
	l.texts[strings.Clone(text)] = struct{}{}
}

func (l *list) full() bool { return l.closed || len(l.texts) >= l.limit }

func (l *list) sorted() []string {
	out := make([]string, 0, len(l.texts))
	for t := range l.texts {
		out = append(out, t)
	}
	slices.Sort(out)
	return out[:min(l.limit, len(out))]
}
