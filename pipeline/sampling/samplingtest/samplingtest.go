// Package samplingtest holds every sampling.Store to its contract.
package samplingtest

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Options say how to get at stores.
type Options struct {
	// New returns an empty store whose clock is now. The test t ends its life.
	New func(t *testing.T, now func() time.Time) sampling.Store
	// Reopen, unless nil, ends the process of a store that New made, and returns what the next one finds.
	Reopen func(t *testing.T, s sampling.Store) sampling.Store
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Run runs the suite.
func Run(t *testing.T, o Options) {
	t.Run("throughput", o.throughput)
	t.Run("calculation", o.calculation)
	t.Run("lease", o.lease)
	t.Run("one leader of many", o.oneLeader)
	t.Run("bad input", o.badInput)
	t.Run("bounds", o.bounds)
	t.Run("restart", o.restart)
}

func (o Options) store(t *testing.T) sampling.Store {
	return o.New(t, func() time.Time { return noon })
}

// saw is what a collector saw in the minute up to n minutes after noon.
func saw(n int, service string) sampling.Throughput {
	return sampling.Throughput{By: "me", Last: n == 3, Until: noon.Add(time.Duration(n) * time.Minute), Length: time.Minute,
		Rows: []sampling.Row{
			{Target: sampling.Target{Tenant: "t", Service: service, Operation: "GET /"}, Seen: []sampling.Seen{{Probability: 0.5, Count: int64(n)}}, Bounded: 2},
		}}
}

func calculation(p float64) *sampling.Calculation {
	return &sampling.Calculation{By: "me", At: noon, Decisions: []sampling.Decision{{Target: sampling.Target{Service: "s", Operation: "\"o\n"},
		Probability: p, Before: 0.25, QPS: 3, Samples: 7, Reason: "because", Changed: noon, Recent: []float64{0.25, 1}}}}
}

func add(t *testing.T, s sampling.Store, since time.Time, all ...sampling.Throughput) {
	t.Helper()
	for _, x := range all {
		if err := s.AddThroughput(t.Context(), x, since); err != nil {
			t.Fatal(err)
		}
	}
}

// wantThroughput checks what is there of the time behind after up to until, in minutes after noon.
func wantThroughput(t *testing.T, s sampling.Store, after, until int, want ...sampling.Throughput) {
	t.Helper()
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	got, err := s.Throughput(t.Context(), at(after), at(until))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(got, func(a, b sampling.Throughput) int { return a.Until.Compare(b.Until) })
	same := func(a, b sampling.Throughput) bool {
		return a.By == b.By && a.Last == b.Last && a.Until.Equal(b.Until) && a.Length == b.Length && reflect.DeepEqual(a.Rows, b.Rows)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("behind %d, until %d: got %+v\nwant %+v", after, until, got, want)
	}
}

func (o Options) throughput(t *testing.T) {
	s := o.store(t)
	wantThroughput(t, s, -100, 100)
	empty := sampling.Throughput{Until: noon.Add(4 * time.Minute), Length: time.Minute}
	add(t, s, noon, saw(1, "a"), saw(2, "a"), saw(2, "b"), saw(3, "a"), empty)
	wantThroughput(t, s, 1, 3, saw(2, "a"), saw(2, "b"), saw(3, "a"))
	wantThroughput(t, s, 3, 100, empty)
	add(t, s, noon.Add(2*time.Minute), saw(5, "a"))
	wantThroughput(t, s, 0, 100, saw(3, "a"), empty, saw(5, "a"))
	add(t, s, noon.Add(6*time.Minute), saw(5, "a"))
	wantThroughput(t, s, 0, 100)
}

func wantCalculation(t *testing.T, s sampling.Store, want *sampling.Calculation) {
	t.Helper()
	got, err := s.LatestCalculation(t.Context())
	if err != nil || (got == nil) != (want == nil) || got != nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func save(t *testing.T, s sampling.Store, c *sampling.Calculation) {
	t.Helper()
	if err := s.SaveCalculation(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (o Options) calculation(t *testing.T) {
	s := o.store(t)
	wantCalculation(t, s, nil)
	save(t, s, calculation(0.5))
	save(t, s, calculation(0.125))
	wantCalculation(t, s, calculation(0.125))
	save(t, s, &sampling.Calculation{By: "nobody", At: noon})
	wantCalculation(t, s, &sampling.Calculation{By: "nobody", At: noon})
}

func (o Options) lease(t *testing.T) {
	now := noon
	s := o.New(t, func() time.Time { return now })
	ask := func(owner, want string, until time.Duration) {
		t.Helper()
		l, err := s.Lease(t.Context(), "lead", owner, 10*time.Second)
		if err != nil || l.Owner != want || !l.Until.Equal(noon.Add(until)) {
			t.Fatalf("%s asks: %+v, %v; want %s until %s", owner, l, err, want, until)
		}
	}
	ask("a", "a", 10*time.Second)
	ask("b", "a", 10*time.Second)
	now = noon.Add(9 * time.Second)
	ask("a", "a", 19*time.Second)
	now = noon.Add(19 * time.Second)
	ask("b", "b", 29*time.Second) // it ran out
	ask("a", "b", 29*time.Second)
	for _, owner := range []string{"a", "b"} { // the first one has nothing to give back
		if err := s.EndLease(t.Context(), "lead", owner); err != nil {
			t.Fatal(err)
		}
		if owner == "a" {
			ask("a", "b", 29*time.Second)
		}
	}
	ask("a", "a", 29*time.Second)
	if l, err := s.Lease(t.Context(), "another", "b", time.Second); err != nil || l.Owner != "b" {
		t.Errorf("another resource: %+v, %v", l, err)
	}
}

func (o Options) oneLeader(t *testing.T) {
	s := o.store(t)
	var mu sync.Mutex
	leaders := map[string]int{}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			l, err := s.Lease(t.Context(), "lead", string(rune('a'+i)), time.Minute)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			leaders[l.Owner]++
		})
	}
	all.Wait()
	if len(leaders) != 1 {
		t.Errorf("at once: %v", leaders)
	}
}

// badInput: what would break clients or memory is not kept.
func (o Options) badInput(t *testing.T) {
	s := o.store(t)
	save(t, s, calculation(0.5))
	for _, p := range []float64{-1, 1.5} {
		if s.SaveCalculation(t.Context(), calculation(p)) == nil {
			t.Errorf("a probability of %v is kept", p)
		}
	}
	wantCalculation(t, s, calculation(0.5))
	bad := saw(1, "a")
	bad.Rows[0].Seen[0].Probability = 0
	tiny := saw(1, "a")
	tiny.Rows[0].Seen[0].Probability = sampling.LeastSeen / 2
	long := saw(1, string(make([]byte, sampling.MaxName+1)))
	endless := saw(1, "a")
	endless.Length = 0
	many := saw(1, "a")
	for range sampling.MaxSeen {
		many.Rows[0].Seen = append(many.Rows[0].Seen, sampling.Seen{Probability: 0.5, Count: 1})
	}
	for _, x := range []sampling.Throughput{bad, tiny, long, endless, many} {
		if s.AddThroughput(t.Context(), x, noon) == nil {
			t.Errorf("%+v is kept", x)
		}
	}
	wantThroughput(t, s, 0, 100)
}

// bounds: a store that is never told to forget does not grow without end, and keeps the newest.
func (o Options) bounds(t *testing.T) {
	if testing.Short() {
		t.Skip("it adds a few thousand times")
	}
	s := o.store(t)
	const more = 3
	for i := range sampling.MaxThroughputs + more {
		add(t, s, noon.Add(-time.Hour), sampling.Throughput{Until: noon.Add(time.Duration(i)), Length: time.Minute})
	}
	got, err := s.Throughput(t.Context(), time.Time{}, noon.Add(time.Hour))
	if err != nil || len(got) != sampling.MaxThroughputs || !got[0].Until.Equal(noon.Add(more)) {
		t.Errorf("%d are kept, %v", len(got), err)
	}
}

func (o Options) restart(t *testing.T) {
	if o.Reopen == nil {
		t.Skip("the store lives and dies with the process")
	}
	s := o.store(t)
	add(t, s, noon, saw(1, "a"), saw(2, "b"))
	save(t, s, calculation(0.5))
	s = o.Reopen(t, s)
	wantCalculation(t, s, calculation(0.5))
	wantThroughput(t, s, 0, 100, saw(1, "a"), saw(2, "b"))
}
