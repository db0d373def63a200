package core

import (
	"cmp"
	"slices"
	"time"
)

// RunningQuery is an admitted query that has not been released.
type RunningQuery struct {
	Operation Operation
	Since     time.Time
	Text      string // search; "" if it has none
	Client    string // address or network; "" if unknown
	Scanned   int64  // spans examined so far; 0 if unknown
	Held      int64  // bytes of memory
}

// RunningQueries returns the running queries, the oldest first.
func (b *Backend) RunningQueries() []RunningQuery {
	b.runningMu.Lock()
	slots := make([]*Slot, 0, len(b.running))
	for s := range b.running {
		slots = append(slots, s)
	}
	b.runningMu.Unlock()
	list := make([]RunningQuery, 0, len(slots))
	for _, s := range slots {
		q := RunningQuery{Operation: s.op, Since: s.since, Client: s.client, Scanned: s.scanned.Load(), Held: s.account.Held()}
		if text := s.text.Load(); text != nil {
			q.Text = *text
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b RunningQuery) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Text, b.Text))
	})
	return list
}

func (b *Backend) addRunning(s *Slot) {
	b.runningMu.Lock()
	defer b.runningMu.Unlock()
	b.running[s] = struct{}{}
}

func (b *Backend) removeRunning(s *Slot) {
	b.runningMu.Lock()
	defer b.runningMu.Unlock()
	delete(b.running, s)
}

// Describe sets the search that [Backend.RunningQueries] shows.
func (s *Slot) Describe(search string) { s.text.Store(&search) }

// SetScanned sets the number of examined spans that [Backend.RunningQueries] shows.
func (s *Slot) SetScanned(spans int) { s.scanned.Store(int64(spans)) }
