package password

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hashOf returns a hash that fakeBcrypt matches with the password.
func hashOf(password string, cost int) string {
	return fmt.Sprintf("$2a$%02d$%s", cost, password+strings.Repeat(".", len(mismatchHash)-len(password)))
}

// fakeBcrypt counts the rounds of comparisons. Each takes a microsecond of fake time.
type fakeBcrypt struct{ rounds, running, peak atomic.Int64 }

func (f *fakeBcrypt) compare(hash, password []byte) error {
	f.peak.Store(max(f.peak.Load(), f.running.Add(1)))
	defer f.running.Add(-1)
	cost, err := bcrypt.Cost(hash)
	if err != nil {
		return err
	}
	f.rounds.Add(1 << cost)
	time.Sleep(time.Microsecond << cost)
	if string(hash[7:]) != hashOf(string(password), cost)[7:] {
		return bcrypt.ErrMismatchedHashAndPassword
	}
	return nil
}

func newChecker(t *testing.T, change func(*Config)) (*Checker, *fakeBcrypt, *prometheus.Registry) {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	c, err := New(cfg, time.Now, reg)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeBcrypt{}
	c.compare = f.compare
	return c, f, reg
}

func parse(t *testing.T, previous *Users, lines ...string) *Users {
	t.Helper()
	u, err := Parse("users", []byte(strings.Join(lines, "\n")), 17, previous)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A wrong password costs the same work for every user name, whatever the costs in the file are.
func TestWrongPasswordsCostTheSameWork(t *testing.T) {
	users := parse(t, nil, "low:"+hashOf("a", 4), "middle:"+hashOf("b", 7), "high:"+hashOf("c", 12))
	for _, name := range []string{"low", "middle", "high", "unknown", ""} {
		f := &fakeBcrypt{}
		if users.match(name, []byte("wrong"), func(hash, password []byte) error {
			cost, err := bcrypt.Cost(hash)
			f.rounds.Add(1 << cost)
			return errors.Join(err, bcrypt.ErrMismatchedHashAndPassword)
		}) {
			t.Errorf("%s: wrong password accepted", name)
		}
		if got := f.rounds.Load(); got != 1<<12 {
			t.Errorf("%s: %d rounds, want %d", name, got, 1<<12)
		}
	}
}

// The real bcrypt accepts the hash of no user and compares with it.
func TestHashOfNoneIsValid(t *testing.T) {
	if err := bcrypt.CompareHashAndPassword(hashOfNone(bcrypt.MinCost), []byte("x")); !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		t.Errorf("error %v, want a mismatch", err)
	}
	if cost, valid := bcryptCost(hashOfNone(11)); cost != 11 || !valid {
		t.Errorf("cost %d, valid %t", cost, valid)
	}
}

// Requests from many addresses with wrong passwords use one CPU, wait in a bounded queue, and do
// not delay the new login of another address by more than that queue.
func TestWorkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, reg := newChecker(t, nil)
		users := parse(t, nil, "ann:"+hashOf("secret", 10))
		var wg sync.WaitGroup
		var delayed atomic.Int64
		for i := range 13_000 {
			wg.Go(func() {
				var d *DelayedError
				if errors.As(c.Check(t.Context(), users, "10.0.0.1", "ann", fmt.Append(nil, "wrong", i)), &d) {
					delayed.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := len(c.checks); n != 4 {
			t.Errorf("%d comparisons wait, want max_waiting_per_client", n)
		}
		start := time.Now()
		if err := c.Check(t.Context(), users, "10.0.0.2", "ann", []byte("secret")); err != nil {
			t.Errorf("correct password: %v", err)
		}
		if waited, want := time.Since(start), 5*time.Microsecond<<10; waited != want {
			t.Errorf("correct password waited %v, want %v: four comparisons and its own", waited, want)
		}
		wg.Wait()
		if f.rounds.Load() != 5<<10 || f.peak.Load() != 1 || delayed.Load() != 13_000-4 {
			t.Errorf("%d rounds, %d concurrent, %d requests delayed", f.rounds.Load(), f.peak.Load(), delayed.Load())
		}
		results := func(o outcome) float64 { return testutil.ToFloat64(c.results.WithLabelValues(o.String())) }
		if results(match) != 1 || results(mismatch) != 4 || results(canceled) != 0 {
			t.Errorf("%v matches, %v mismatches, %v canceled", results(match), results(mismatch), results(canceled))
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP tracing_server_password_checks_waiting Comparisons of passwords that run or wait.
# TYPE tracing_server_password_checks_waiting gauge
tracing_server_password_checks_waiting 0
# HELP tracing_server_password_clients Client addresses whose wrong passwords are counted.
# TYPE tracing_server_password_clients gauge
tracing_server_password_clients 1
`), "tracing_server_password_checks_waiting", "tracing_server_password_clients"); err != nil {
			t.Error(err)
		}
	})
}

// Many addresses fill the queue. Further requests are refused immediately.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, _ := newChecker(t, func(c *Config) { c.MaxWaiting, c.MaxConcurrent = 10, 3 })
		users := parse(t, nil, "ann:"+hashOf("secret", 10))
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				c.Check(t.Context(), users, fmt.Sprint(i), "ann", []byte("wrong")) //nolint:errcheck // a flood
			})
		}
		synctest.Wait()
		start := time.Now()
		var d *DelayedError
		err := c.Check(t.Context(), users, "other", "ann", []byte("secret"))
		if !errors.As(err, &d) || d.Failures || d.After != time.Second {
			t.Errorf("error %v, want a delay", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("refused after %v", time.Since(start))
		}
		wg.Wait()
		if f.peak.Load() != 3 {
			t.Errorf("%d concurrent comparisons", f.peak.Load())
		}
	})
}

// Concurrent requests with the same credentials share one comparison.
func TestEqualRequestsShareAComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, _ := newChecker(t, nil)
		users := parse(t, nil, "ann:"+hashOf("secret", 10))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := c.Check(t.Context(), users, "10.0.0.1", "ann", []byte("secret")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f.rounds.Load() != 1<<10 {
			t.Errorf("%d rounds, want one comparison", f.rounds.Load())
		}
	})
}

// After allowed_failures, an address waits twice as long after each wrong password. Other addresses
// do not wait. A correct password resets the failures.
func TestDelayOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newChecker(t, func(c *Config) { c.AllowedFailures = 2 })
		users := parse(t, nil, "ann:"+hashOf("secret", 4))
		check := func(client, password string) error {
			return c.Check(t.Context(), users, client, "ann", []byte(password))
		}
		for i := range 3 {
			if err := check("a", "wrong"); err != ErrWrong {
				t.Fatalf("attempt %d: %v", i, err)
			}
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			var d *DelayedError
			if err := check("a", "secret"); !errors.As(err, &d) || !d.Failures || d.After.Round(time.Second) != want*time.Second {
				t.Fatalf("error %v (%+v), want a delay of %d s", err, d, want)
			}
			if err := check("b", "secret"); err != nil {
				t.Fatalf("another address: %v", err)
			}
			time.Sleep(d.After)
			if err := check("a", "wrong"); err != ErrWrong {
				t.Fatalf("after the delay: %v", err)
			}
		}
		time.Sleep(time.Minute)
		if err := check("a", "secret"); err != nil {
			t.Fatalf("after the delay: %v", err)
		}
		if err := check("a", "wrong"); err != ErrWrong {
			t.Fatal(err)
		}
		if err := check("a", "secret"); err != nil {
			t.Errorf("after one failure: %v", err)
		}
	})
}

func TestNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newChecker(t, func(c *Config) { c.MinDelay, c.MaxDelay, c.AllowedFailures = 0, 0, 0 })
		users := parse(t, nil, "ann:"+hashOf("secret", 4))
		for range 100 {
			if err := c.Check(t.Context(), users, "a", "ann", []byte("wrong")); err != ErrWrong {
				t.Fatal(err)
			}
		}
	})
}

// The table of addresses is bounded, and forgets failures.
func TestClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newChecker(t, func(c *Config) { c.MaxClients, c.AllowedFailures = 100, 1 })
		users := parse(t, nil, "ann:"+hashOf("secret", 4))
		for i := range 1000 {
			c.Check(t.Context(), users, fmt.Sprint(i), "ann", []byte("wrong")) //nolint:errcheck // counted
		}
		if n := len(c.clients.byKey); n != 100 || c.clients.recent.Len() != 100 {
			t.Errorf("%d clients", n)
		}
		time.Sleep(forgetAfter*time.Minute + 1)
		if err := c.Check(t.Context(), users, "999", "ann", []byte("wrong")); err != ErrWrong {
			t.Fatal(err)
		}
		if err := c.Check(t.Context(), users, "999", "ann", []byte("wrong")); err != ErrWrong {
			t.Errorf("old failure was not forgotten: %v", err)
		}
	})
}

// A request whose client disconnects, and all requests when the server stops, end immediately. A
// comparison that no request waits for does not begin.
func TestWaitingRequestsEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, _ := newChecker(t, func(c *Config) { c.WaitTimeout = 20e9 })
		users := parse(t, nil, "slow:"+hashOf("secret", 17), "ann:"+hashOf("secret", 4))
		start := time.Now()
		results := make(chan error, 3)
		check := func(ctx context.Context, client, name string) {
			results <- c.Check(ctx, users, client, name, []byte("x"))
		}
		go check(t.Context(), "a", "slow")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go check(ctx, "b", "ann")
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("disconnected: %v", err)
		}
		go check(t.Context(), "c", "ann")
		synctest.Wait()
		c.Stop()
		c.Stop()
		for range 2 {
			if err := <-results; err != ErrStopping {
				t.Errorf("stopping: %v", err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("ended after %v", time.Since(start))
		}
		time.Sleep(time.Minute)
		if f.rounds.Load() != 1<<17 {
			t.Errorf("%d rounds, want those of the running comparison", f.rounds.Load())
		}
	})
}

func TestWaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, _ := newChecker(t, func(c *Config) { c.WaitTimeout = 1e8 })
		users := parse(t, nil, "slow:"+hashOf("secret", 17))
		go c.Check(t.Context(), users, "a", "slow", []byte("x")) //nolint:errcheck // occupies the slot
		synctest.Wait()
		start := time.Now()
		var d *DelayedError
		if err := c.Check(t.Context(), users, "b", "slow", []byte("secret")); !errors.As(err, &d) || time.Since(start) != 1e8 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Minute)
		if f.rounds.Load() != 1<<17 {
			t.Errorf("%d rounds", f.rounds.Load())
		}
	})
}

// A reload of the file keeps what was proven, unless the entry of the user has changed.
func TestProvenUsersSurviveAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, _ := newChecker(t, nil)
		before := parse(t, nil, "ann:"+hashOf("secret", 4), "bob:"+hashOf("secret", 4), "eve:"+hashOf("secret", 4))
		for _, name := range []string{"ann", "bob", "eve"} {
			if before.Proven(name, []byte("secret")) {
				t.Errorf("%s is proven without a comparison", name)
			}
			if err := c.Check(t.Context(), before, "a", name, []byte("secret")); err != nil {
				t.Error(err)
			}
		}
		after := parse(t, before, "new:"+hashOf("secret", 4), "bob:"+hashOf("other", 4), "ann:"+hashOf("secret", 4))
		for name, want := range map[string]bool{"ann": true, "bob": false, "eve": false, "new": false} {
			if after.Proven(name, []byte("secret")) != want {
				t.Errorf("%s: proven %t", name, !want)
			}
		}
		if after.Proven("ann", []byte("wrong")) || after.Proven("ann", nil) {
			t.Error("wrong password is proven")
		}
		if f.rounds.Load() != 3<<4 {
			t.Errorf("%d rounds", f.rounds.Load())
		}
	})
}
