package canary

import (
	"sync"
	"time"
)

// remembered is what is kept of an acknowledged trace; the rest is regenerated.
type remembered struct {
	at     time.Time // time it was generated from
	acked  time.Time
	missed [ways]bool // whether the latest response missed it
}

// memory holds the traces that are still to be read back, each at several ages. Traces are added in
// time order, so for each age they become due in the order of insertion, and one FIFO queue per age
// suffices. It is safe for concurrent use.
type memory struct {
	ages  []time.Duration // ascending
	limit int             // traces

	mu     sync.Mutex
	queues [][]remembered // by index of the age
	count  int
	added  chan struct{} // holds one token when a trace was added
}

func newMemory(ages []time.Duration, limit int) *memory {
	return &memory{ages: ages, limit: limit, queues: make([][]remembered, len(ages)), added: make(chan struct{}, 1)}
}

// addTrace stores a trace for its reading at the age with this index, and reports whether the
// oldest trace was dropped.
func (m *memory) addTrace(r remembered, age int) (forgot bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count >= m.limit {
		forgot = true
		m.forgetOldest()
	}
	m.queues[age] = append(m.queues[age], r)
	m.count++
	select {
	case m.added <- struct{}{}:
	default:
	}
	return forgot
}

func (m *memory) forgetOldest() {
	for age := len(m.queues) - 1; age >= 0; age-- {
		if len(m.queues[age]) > 0 {
			m.pop(age)
			return
		}
	}
}

func (m *memory) pop(age int) remembered {
	r := m.queues[age][0]
	m.queues[age] = m.queues[age][1:]
	m.count--
	return r
}

// next returns the age and the time of the next reading; age is -1 if there is none.
func (m *memory) next() (age int, due time.Time) {
	age = -1
	for i, q := range m.queues {
		if len(q) == 0 {
			continue
		}
		if at := q[0].acked.Add(m.ages[i]); age < 0 || at.Before(due) {
			age, due = i, at
		}
	}
	return age, due
}

// takeDue removes the next due trace and returns it. If none is due, age is -1 and wait is the time
// until the next one, negative if there is none.
func (m *memory) takeDue(now time.Time) (r remembered, age int, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	age, due := m.next()
	switch {
	case age < 0:
		return r, -1, -1
	case due.After(now):
		return r, -1, due.Sub(now)
	}
	return m.pop(age), age, 0
}

// unread is the number of traces that have not been read yet.
func (m *memory) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queues[0])
}

// len is the number of remembered traces.
func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// behind is the time by which the next reading is overdue.
func (m *memory) behind(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age, due := m.next(); age >= 0 {
		return max(0, now.Sub(due))
	}
	return 0
}

// oldestMissing is the age of the oldest remembered trace that was missing at its latest reading; 0
// if there is none.
func (m *memory) oldestMissing(now time.Time) (age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues {
		for i := range q {
			if q[i].missed != [ways]bool{} {
				age = max(age, now.Sub(q[i].acked))
				break // the rest of the queue is younger
			}
		}
	}
	return age
}
