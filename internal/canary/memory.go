package canary

import (
	"sync"
	"time"
)

// remembered is what is kept of a trace that was acknowledged; the rest is generated again.
type remembered struct {
	at     time.Time // what it was generated from
	acked  time.Time
	missed [ways]bool // by the latest answer
}

// memory holds the traces that are still to be read. Traces come in the order of time, so those that wait for the same age are due in the
// order in which they came, too: a queue per age is all the order there is to keep. Safe for concurrent use.
type memory struct {
	ages  []time.Duration // ascending
	limit int             // traces

	mu     sync.Mutex
	queues [][]remembered // by index of the age
	count  int
	added  chan struct{} // holds one token when something came
}

func newMemory(ages []time.Duration, limit int) *memory {
	return &memory{ages: ages, limit: limit, queues: make([][]remembered, len(ages)), added: make(chan struct{}, 1)}
}

// add remembers a trace for its reading at the age of that index, and reports whether another had to be forgotten for it: the oldest.
func (m *memory) add(r remembered, age int) (forgot bool) {
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

// next returns the age for which a trace waits that is due first, and when that is; age is -1 when none waits.
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

// takeDue removes the trace that is due first and returns it. If there is none, age is -1, and wait is how long until the next is: below 0
// when no trace waits.
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

// unread is how many traces were not read yet.
func (m *memory) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queues[0])
}

// len is how many traces are remembered.
func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// behind is how long the next reading has been due.
func (m *memory) behind(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age, due := m.next(); age >= 0 {
		return max(0, now.Sub(due))
	}
	return 0
}

// oldestMissing is how long ago the oldest remembered trace was acknowledged that its latest answer missed; 0 if there is none.
func (m *memory) oldestMissing(now time.Time) (age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues {
		for i := range q {
			if q[i].missed != [ways]bool{} {
				age = max(age, now.Sub(q[i].acked))
				break // those behind it are younger
			}
		}
	}
	return age
}
