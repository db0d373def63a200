package clickhouse

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// build returns an exporter whose attempts to connect last until their context ends. dialed gets a
// value when one begins.
func build(t *testing.T, edit func(*Config, *pipeline.Settings)) (e *exporter, dialed chan struct{}) {
	t.Helper()
	dialed = make(chan struct{}, 1)
	env := pipeline.SystemEnv()
	env.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case dialed <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	set := pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env, Report: func(error) {}}
	c := defaults()
	if edit != nil {
		edit(&c, &set)
	}
	e, err := newExporter(set, c, Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.db.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e, dialed
}

// TestStopWhileFollowing checks that Stop returns while spans of other processes are read.
func TestStopWhileFollowing(t *testing.T) {
	e, dialed := build(t, nil)
	feed, err := e.feeds.Follow(t.Context(), "acme", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	e.follower.cursors["acme"] = &cursor{}
	e.follower.run()
	<-dialed
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	e.follower.run() // must not read again
	e.follower.ended.Wait()
}

// TestFollowAgain checks that a feed does not continue where the last one was closed while spans
// were read.
func TestFollowAgain(t *testing.T) {
	var feed *tracestore.Feed
	e, _ := build(t, func(_ *Config, s *pipeline.Settings) {
		s.Env.Dial = func(context.Context, string, string) (net.Conn, error) {
			feed.Close()
			return nil, syscall.ECONNREFUSED
		}
	})
	defer e.Stop(t.Context()) //nolint:errcheck // nothing is left
	var err error
	if feed, err = e.feeds.Follow(t.Context(), "acme", 1); err != nil {
		t.Fatal(err)
	}
	e.follower.cursors["acme"] = &cursor{}
	e.follower.run()
	e.follower.ended.Wait()
	if n := len(e.follower.cursors); n != 0 {
		t.Errorf("%d cursors without feeds", n)
	}
}

// TestReportUnreachable checks that the exporter is degraded and counts a failure when a batch
// fails before its inserts, at first because the tables could not be prepared.
func TestReportUnreachable(t *testing.T) {
	var reported error
	e, _ := build(t, func(_ *Config, s *pipeline.Settings) {
		s.Env.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		s.Report = func(err error) { reported = err }
	})
	defer e.Stop(t.Context()) //nolint:errcheck // nothing is left
	failures := e.metrics.failures.WithLabelValues(db.Unreachable.String(), "payload")
	e.reportPreparation(&db.Error{Class: db.Unreachable})
	err := e.Consume(t.Context(), otlpdata.FromStored(nil, otlpdata.Meta{}))
	if !errors.Is(err, errNotPrepared) || testutil.ToFloat64(failures) != 1 {
		t.Errorf("error %v, %v failures", err, testutil.ToFloat64(failures))
	}
	e.prepared.done.Store(true)
	reported = nil
	err = e.Consume(t.Context(), otlpdata.FromStored(nil, otlpdata.Meta{}))
	if db.ClassOf(err) != db.Unreachable || reported == nil || testutil.ToFloat64(failures) != 2 {
		t.Errorf("error %v, reported %v, %v failures", err, reported, testutil.ToFloat64(failures))
	}
}

// TestPing checks that a server that does not answer within the timeout cannot be reached.
func TestPing(t *testing.T) {
	e, _ := build(t, func(c *Config, _ *pipeline.Settings) { c.Timeout = pipeline.Duration(time.Millisecond) })
	defer e.Stop(t.Context()) //nolint:errcheck // nothing is left
	if err := e.ping(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestRetention checks that statistics are stored at least as long as spans.
func TestRetention(t *testing.T) {
	const day = pipeline.Duration(24 * time.Hour)
	for _, c := range []struct{ spans, statistics, want pipeline.Duration }{
		{14 * day, 60 * day, 60 * day}, {90 * day, 60 * day, 90 * day}, {0, 60 * day, 0}, {14 * day, 0, 0},
	} {
		config := defaults()
		config.Retention = RetentionConfig{Spans: c.spans, Statistics: c.statistics}
		o := config.tables()
		if o.Spans != c.spans.Std() || o.Statistics != c.want.Std() {
			t.Errorf("%v: spans %v, statistics %v", c, o.Spans, o.Statistics)
		}
	}
}

// TestDurabilityText checks that only tables with replicas are said to have them.
func TestDurabilityText(t *testing.T) {
	for _, c := range []struct {
		cluster, quorum string
		replicas        int
		want            string
	}{
		{"", "", 0, "on one server, synced to disk later"},
		{"", "auto", 3, "on one server, synced to disk later"},
		{"", "3", 3, "on one server, synced to disk later"},
		{"main", "", 3, "on the majority of replicas, synced to disk later"},
		{"main", "", 2, "on one replica, copied to the others later, synced to disk later"},
		{"main", "3", 3, "on 3 replicas, synced to disk later"},
		{"main", "1", 3, "on one replica, copied to the others later, synced to disk later"},
	} {
		e, _ := build(t, func(o *Config, _ *pipeline.Settings) { o.Cluster.Name, o.InsertQuorum = c.cluster, c.quorum })
		e.db.SetReplicas(c.replicas)
		if got := e.durabilityText(); got != c.want {
			t.Errorf("cluster %q, quorum %q, %d replicas: %q, want %q", c.cluster, c.quorum, c.replicas, got, c.want)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestRecentFirst checks that windows divide all times.
func TestRecentFirst(t *testing.T) {
	e, _ := build(t, nil)
	defer e.Stop(t.Context()) //nolint:errcheck // nothing is left
	windows := e.recentFirst()
	if len(windows) != 3 {
		t.Errorf("%d windows", len(windows))
	}
	checkCover(t, slices.Values(windows), 0, math.MaxUint64)
}

// TestSlicesOfExtremeHours checks that slices cover a window, whatever the hours say.
func TestSlicesOfExtremeHours(t *testing.T) {
	const last = math.MaxUint64 / hourLength
	for _, hours := range [][]hourSpans{
		nil, {{last, 1 << 30}}, {{last, 0}, {0, 1 << 40}}, {{last, math.MaxUint64}, {7, 1}, {0, math.MaxUint64}},
	} {
		for _, w := range [][2]uint64{{0, math.MaxUint64}, {5, 5}, {3 * hourLength, 8*hourLength - 1}, {math.MaxUint64, math.MaxUint64}} {
			checkCover(t, func(yield func([2]uint64) bool) {
				for from, to := range slicesOf(rand.New(rand.NewPCG(1, 2)), hours, w[0], w[1]) {
					if !yield([2]uint64{from, to}) {
						return
					}
				}
			}, w[0], w[1])
		}
	}
}

// checkCover checks that windows, newest first, divide the time between two bounds.
func checkCover(t *testing.T, windows iter.Seq[[2]uint64], from, to uint64) {
	t.Helper()
	next, first, n := to, to, 0
	for w := range windows {
		if n++; n > 1000 || w[0] > w[1] || w[1] != next {
			t.Fatalf("window %d is %v, want its end at %d", n, w, next)
		}
		first, next = w[0], w[0]-1
	}
	if n == 0 || first != from {
		t.Errorf("windows begin at %d, want %d", first, from)
	}
}
