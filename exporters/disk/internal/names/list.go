package names

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
)

// list collects distinct texts with a prefix.
type list struct {
	prefix     string
	limit, max int  // how many are wanted, and how many are kept
	room       int  // bytes that texts may take beside the first one
	closed     bool // one had no room
	texts      map[string]struct{}
}

// maxListBytes bounds the texts of one list.
const maxListBytes = 16 << 20

// defaultLimit is the length of a list of attributes where the caller names none.
const defaultLimit = 1000

func newList(s *scan.Session, prefix string, limit int) *list {
	if limit <= 0 {
		limit = defaultLimit
	}
	most := s.Options.MaxValues
	return &list{prefix: prefix, limit: min(limit, most), max: most, room: maxListBytes, texts: make(map[string]struct{})}
}

// add keeps a copy of a text: what is stored may go when the view is released.
func (l *list) add(text string) {
	if _, known := l.texts[text]; known || len(l.texts) >= l.max || !strings.HasPrefix(text, l.prefix) {
		return
	}
	if l.closed = l.closed || len(text) > l.room && len(l.texts) > 0; l.closed {
		return
	}
	l.room -= len(text)
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
