// Package samplingtest checks implementations of sampling.Store.
package samplingtest

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Options define how the suite creates stores.
type Options struct {
	// New returns an empty store with the clock now. The end of the test t closes it.
	New func(t *testing.T, now func() time.Time) sampling.Store
	// Reopen closes a store that New returned, and returns a store with its persisted content, as
	// after a restart. It is nil for stores that are not persistent.
	Reopen func(t *testing.T, s sampling.Store) sampling.Store
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Run runs the suite.
func Run(t *testing.T, o Options) {
	t.Run("throughput", o.testThroughput)
	t.Run("calculation", o.calculation)
	t.Run("lease", o.lease)
	t.Run("one leader of many", o.oneLeader)
	t.Run("bad input", o.badInput)
	t.Run("limits", o.limits)
	t.Run("restart", o.restart)
}

func (o Options) store(t *testing.T) sampling.Store {
	return o.New(t, func() time.Time { return noon })
}

// throughput returns a collector's counts for the minute that ends n minutes after noon.
func throughput(n int, service string) sampling.Throughput {
	return sampling.Throughput{By: "me", Last: n == 3, Until: noon.Add(time.Duration(n) * time.Minute), Length: time.Minute,
		Rows: []sampling.ThroughputRow{
			{OperationKey: sampling.OperationKey{Tenant: "t", Service: service, Operation: "GET /"},
				Counts: []sampling.ProbabilityCount{{Probability: 0.5, Count: int64(n)}}, ByLowerBound: 2},
		}}
}

func calculation(p float64) *sampling.Calculation {
	return &sampling.Calculation{By: "me", At: noon, Decisions: []sampling.Decision{{OperationKey: sampling.OperationKey{Service: "s",
		Operation: "\"o\n"},
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

// wantThroughput checks the throughput between after and until, in minutes after noon.
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
		t.Fatalf("after %d, until %d: got %+v\nwant %+v", after, until, got, want)
	}
}

func (o Options) testThroughput(t *testing.T) {
	s := o.store(t)
	wantThroughput(t, s, -100, 100)
	empty := sampling.Throughput{Until: noon.Add(4 * time.Minute), Length: time.Minute}
	add(t, s, noon, throughput(1, "a"), throughput(2, "a"), throughput(2, "b"), throughput(3, "a"), empty)
	wantThroughput(t, s, 1, 3, throughput(2, "a"), throughput(2, "b"), throughput(3, "a"))
	wantThroughput(t, s, 3, 100, empty)
	add(t, s, noon.Add(2*time.Minute), throughput(5, "a"))
	wantThroughput(t, s, 0, 100, throughput(3, "a"), empty, throughput(5, "a"))
	add(t, s, noon.Add(6*time.Minute), throughput(5, "a"))
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
	save(t, s, &sampling.Calculation{By: "another", At: noon})
	wantCalculation(t, s, &sampling.Calculation{By: "another", At: noon})
}

func (o Options) lease(t *testing.T) {
	now := noon
	s := o.New(t, func() time.Time { return now })
	lease := func(owner, want string, until time.Duration) {
		t.Helper()
		l, err := s.Lease(t.Context(), "lead", owner, 10*time.Second)
		if err != nil || l.Owner != want || !l.Until.Equal(noon.Add(until)) {
			t.Fatalf("lease for %s: %+v, %v; want %s until %s", owner, l, err, want, until)
		}
	}
	lease("a", "a", 10*time.Second)
	lease("b", "a", 10*time.Second)
	now = noon.Add(9 * time.Second)
	lease("a", "a", 19*time.Second)
	now = noon.Add(19 * time.Second)
	lease("b", "b", 29*time.Second) // expired
	lease("a", "b", 29*time.Second)
	for _, owner := range []string{"a", "b"} { // "a" holds no lease
		if err := s.EndLease(t.Context(), "lead", owner); err != nil {
			t.Fatal(err)
		}
		if owner == "a" {
			lease("a", "b", 29*time.Second)
		}
	}
	lease("a", "a", 29*time.Second)
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
		t.Errorf("concurrent leases: several leaders: %v", leaders)
	}
}

// badInput checks that invalid data is not stored.
func (o Options) badInput(t *testing.T) {
	s := o.store(t)
	save(t, s, calculation(0.5))
	for _, p := range []float64{-1, 1.5} {
		if s.SaveCalculation(t.Context(), calculation(p)) == nil {
			t.Errorf("accepted probability %v", p)
		}
	}
	wantCalculation(t, s, calculation(0.5))
	bad := throughput(1, "a")
	bad.Rows[0].Counts[0].Probability = 0
	tiny := throughput(1, "a")
	tiny.Rows[0].Counts[0].Probability = sampling.MinProbability / 2
	long := throughput(1, string(make([]byte, sampling.MaxName+1)))
	endless := throughput(1, "a")
	endless.Length = 0
	many := throughput(1, "a")
	for range sampling.MaxProbabilities {
		many.Rows[0].Counts = append(many.Rows[0].Counts, sampling.ProbabilityCount{Probability: 0.5, Count: 1})
	}
	for _, x := range []sampling.Throughput{bad, tiny, long, endless, many} {
		if s.AddThroughput(t.Context(), x, noon) == nil {
			t.Errorf("accepted %+v", x)
		}
	}
	wantThroughput(t, s, 0, 100)
}

// limits checks that the size of a store is limited, and that the newest data is kept.
func (o Options) limits(t *testing.T) {
	if testing.Short() {
		t.Skip("adds a few thousand throughputs")
	}
	s := o.store(t)
	const more = 3
	for i := range sampling.MaxThroughputs + more {
		add(t, s, noon.Add(-time.Hour), sampling.Throughput{Until: noon.Add(time.Duration(i)), Length: time.Minute})
	}
	got, err := s.Throughput(t.Context(), time.Time{}, noon.Add(time.Hour))
	if err != nil || len(got) != sampling.MaxThroughputs || !got[0].Until.Equal(noon.Add(more)) {
		t.Errorf("got %d throughputs, %v", len(got), err)
	}
}

func (o Options) restart(t *testing.T) {
	if o.Reopen == nil {
		t.Skip("store is not persistent")
	}
	s := o.store(t)
	add(t, s, noon, throughput(1, "a"), throughput(2, "b"))
	save(t, s, calculation(0.5))
	s = o.Reopen(t, s)
	wantCalculation(t, s, calculation(0.5))
	wantThroughput(t, s, 0, 100, throughput(1, "a"), throughput(2, "b"))
}
