package compare

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/engines/process"
)

// schema is a subject before it has a database.
type schema struct {
	name   string
	create func(testing.TB, *server) subject
}

var all3 = []schema{{"tracing", newOwn}, {"Jaeger", newJaeger}, {"Collector contrib", newOtel}}

// number returns the value of an environment variable.
func number(tb testing.TB, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		tb.Fatalf("%s=%s: not a positive number", variable, text)
	}
	return n
}

// BenchmarkSchemas loads SPANS spans (1,000,000) in batches of BATCH (50,000) into the schemas that
// SCHEMAS lists (all), one after the other, each into a new server.
func BenchmarkSchemas(b *testing.B) {
	d := newData(number(b, "SPANS", 1_000_000))
	size, chosen := number(b, "BATCH", 50_000), os.Getenv("SCHEMAS")
	var reports []*report
	for b.Loop() {
		reports = nil
		for _, s := range all3 {
			if chosen == "" || slices.Contains(strings.Split(chosen, ","), s.name) {
				reports = append(reports, measure(b, d, s, size))
				printReports(os.Stdout, reports[len(reports)-1:])
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	fmt.Printf("\n%d spans in %d traces, batches of %d, one writer, protocol http\n", d.spans, d.traces, size)
	printReports(os.Stdout, reports)
}

// report is what was measured of one schema.
type report struct {
	name                 string
	insert               time.Duration // waiting for acknowledgements
	serverCPU, clientCPU time.Duration // until the last acknowledgement
	settledCPU           time.Duration // of the server, until its merges have ended
	peakMemory           int64         // of the server while loading, bytes
	spans                int
	tables               map[string]int64 // bytes on disk by table
	optimized            int64            // bytes on disk of all tables when each is one part
	parts                uint64           // active parts after loading
	columns              []string         // the largest columns of the parts of optimized, for development
	medians              map[string]time.Duration
	right                float64 // share of the newest traces that was returned
}

func (r *report) bytes() (sum int64) {
	for _, n := range r.tables {
		sum += n
	}
	return sum
}

func measure(b *testing.B, d *data, s schema, size int) *report {
	b.Helper()
	r := &report{name: s.name, spans: d.spans, medians: map[string]time.Duration{}}
	e := engine.Start(b, engine.Options{})
	defer e.Stop()
	const database = "compare"
	e.Exec(b, "CREATE DATABASE "+database)
	db := connect(b, e.HTTPAddr(), database)
	sub := s.create(b, db)
	before := serverCPU(b, e.PID())
	for batch := range d.batches(b, size) {
		start, busy := time.Now(), ownCPU(b)
		if err := sub.write(b.Context(), batch); err != nil {
			b.Fatalf("%s: %v", s.name, err)
		}
		r.insert += time.Since(start)
		r.clientCPU += ownCPU(b) - busy
	}
	r.serverCPU = serverCPU(b, e.PID()) - before
	r.peakMemory = peakMemory(b, e.PID())
	settle(b, e)
	r.settledCPU = serverCPU(b, e.PID()) - before
	r.sizes(b, db)
	queries(b, d, sub, r)
	r.optimize(b, db)
	b.Logf("%s\nlargest columns: %s", r, strings.Join(r.columns, ", "))
	return r
}

// settle waits until the server merges no more.
func settle(b *testing.B, e *engine.Server) {
	b.Helper()
	for quiet := 0; quiet < 5; time.Sleep(500 * time.Millisecond) {
		if quiet++; strings.TrimSpace(e.Exec(b, "SELECT count() FROM system.merges")) != "0" {
			quiet = 0
		}
	}
}

func (r *report) sizes(b *testing.B, db *server) {
	b.Helper()
	r.tables = map[string]int64{}
	var table string
	var bytes, parts uint64
	rows, err := db.Query(b.Context(), "SELECT table, sum(bytes_on_disk), count() FROM system.parts WHERE database = ? AND active "+
		"GROUP BY table", db.database)
	err = all(rows, err, func() error { r.tables[table], r.parts = int64(bytes), r.parts+parts; return nil }, &table, &bytes, &parts)
	if err != nil {
		b.Fatal(err)
	}
	var column string
	rows, err = db.Query(b.Context(), "SELECT table, column, sum(column_bytes_on_disk) AS n FROM system.parts_columns WHERE database = ? "+
		"AND active GROUP BY table, column ORDER BY n DESC LIMIT 50", db.database)
	err = all(rows, err, func() error {
		r.columns = append(r.columns, fmt.Sprintf("%s.%s %.2f", table, column, float64(bytes)/float64(r.spans)))
		return nil
	}, &table, &column, &bytes)
	if err != nil {
		b.Fatal(err)
	}
}

// optimize merges all parts of a partition into one.
func (r *report) optimize(b *testing.B, db *server) {
	b.Helper()
	settled := r.tables
	for _, table := range slices.Sorted(maps.Keys(settled)) {
		if err := db.Exec(b.Context(), "OPTIMIZE TABLE `"+table+"` FINAL"); err != nil {
			b.Fatal(err)
		}
	}
	parts := r.parts
	r.columns = nil
	r.sizes(b, db)
	r.optimized = r.bytes()
	r.tables, r.parts = settled, parts
}

// The queries that are measured.
const (
	byID      = "trace by id"
	newest    = "newest 20 of a service"
	summaries = "newest 20, with summaries"
	attribute = "attribute without a service"
	red       = "calls, errors and durations"
	heatmap   = "heatmap"
)

var allQueries = []string{byID, newest, summaries, attribute, red, heatmap}

// queries measures each query with different arguments, and checks the results.
func queries(b *testing.B, d *data, sub subject, r *report) {
	b.Helper()
	ctx, services := b.Context(), d.set.Services()
	const turns = 30
	from, to := d.window()
	at := func(turn int) search {
		return search{service: services[turn%len(services)], from: from, to: to, limit: 20}
	}
	answers := map[string][]otlpdata.TraceID{} // by service
	for _, service := range services {
		answers[service] = d.newest(service, 20)
	}
	due, right := 0, 0
	run := func(name string, one func(turn int) error) {
		r.medians[name] = median(b, name, turns, one)
	}
	run(byID, func(turn int) error {
		spans := d.set.Trace((turn + 3) * 7919 % d.traces)
		return expect(len(spans))(sub.trace(ctx, spans[0].TraceID))
	})
	run(newest, func(turn int) error {
		found, err := sub.newest(ctx, at(turn))
		want := answers[at(turn).service]
		due += len(want)
		for _, id := range found {
			right += len(slices.DeleteFunc(slices.Clone(want), func(w otlpdata.TraceID) bool { return w != id }))
		}
		return err
	})
	r.right = float64(right) / float64(due)
	run(summaries, func(turn int) error { return expect(20)(sub.summaries(ctx, at(turn))) })
	run(attribute, func(turn int) error {
		_, err := sub.newest(ctx, search{user: fmt.Sprintf("user-%05d", (turn+3)*599%20_000), from: from, to: to, limit: 20})
		return err
	})
	var calls uint64
	run(red, func(turn int) (err error) { calls, err = sub.red(ctx, at(turn)); return err })
	var spans uint64
	run(heatmap, func(turn int) (err error) { spans, err = sub.heatmap(ctx, at(turn)); return err })
	if calls != spans {
		b.Errorf("%s: %d calls, %d spans in the heatmap of the same service", r.name, calls, spans)
	}
}

// expect checks the number that a query returns.
func expect(want int) func(got int, err error) error {
	return func(got int, err error) error {
		if err == nil && got != want {
			err = fmt.Errorf("got %d, want %d", got, want)
		}
		return err
	}
}

// median returns the median duration of a query, after three runs that are not measured. It is 0 if
// there is no such query.
func median(b *testing.B, name string, turns int, one func(turn int) error) time.Duration {
	b.Helper()
	var times []time.Duration
	for turn := -3; turn < turns; turn++ {
		start := time.Now()
		err := one(max(turn, 0))
		if errors.Is(err, errNone) {
			return 0
		}
		if err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		if turn >= 0 {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// ownCPU returns the CPU time of this process.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU returns the CPU time of a process.
func serverCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	cpu, err := process.CPU(pid)
	if err != nil {
		b.Fatal(err)
	}
	return cpu
}

// peakMemory returns the maximum resident memory of a process.
func peakMemory(b *testing.B, pid int) int64 {
	b.Helper()
	m, err := process.ReadMemory(pid)
	if err != nil {
		b.Fatal(err)
	}
	return m.Peak
}
