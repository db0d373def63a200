package pages

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/engines/process"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

const config = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: {min_interval: 1s, send_batch_size: 50000, send_batch_max_size: 50000, send_batch_max_bytes: 64MiB}}
exporters:
  disk: {reserve: 0}
  clickhouse: {endpoints: [%q], protocol: http, timeout: 10m, connect_timeout: 5m, max_inserts: 2}
  clickhouse/logged: {endpoints: [%q], protocol: http, schema: check, connect_timeout: 5m}
extensions:
  query/disk: {storage: disk, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}
  query/clickhouse: {storage: clickhouse/logged, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  limits: {inflight: 1GiB}
  extensions: [query/disk, query/clickhouse]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [disk, clickhouse]}}
`

// BenchmarkPages stores SPANS spans (2,000,000), and an eighth of them in the time before, in both
// stores, and measures each page TURNS times (3). PAGES lists the pages to measure (all).
func BenchmarkPages(b *testing.B) {
	s := newStores(b, number(b, "SPANS", 2_000_000))
	turns, chosen := number(b, "TURNS", 3), os.Getenv("PAGES")
	var results []result
	for b.Loop() {
		results = nil
		for _, p := range s.pages() {
			if chosen == "" || slices.Contains(strings.Split(chosen, ","), p.name) {
				results = append(results, s.measure(b, p, turns))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	fmt.Printf("\n%d spans in range, medians of %d\n", s.spans, turns)
	printResults(os.Stdout, results)
}

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

// stores are two query services over the same spans.
type stores struct {
	set              *bench.Dataset
	spans            int
	from, to         time.Time // of the pages
	disk, clickhouse client
	engine           *engine.Server
	log              *statementLog
}

func newStores(b *testing.B, spans int) *stores {
	b.Helper()
	e := engine.Start(b, engine.Options{})
	log := logStatements(b, e.HTTPAddr())
	p := inprocess.StartYAML(b, fmt.Sprintf(config, e.HTTPAddr(), log.address, b.TempDir()))
	length := time.Duration(spans/19/bench.TracesPerSecond)*time.Second + time.Minute
	s := &stores{spans: spans, engine: e, log: log, to: time.Now().Truncate(time.Minute)}
	s.from = s.to.Add(-length).Truncate(time.Minute)
	s.set = bench.New(7, s.from)
	sent := 0
	for set, n := range map[*bench.Dataset]int{s.set: spans, bench.New(8, s.from.Add(-length)): spans / 8} {
		o := load.Options{Target: p.OTLPGRPC(), Connections: 4, InFlight: 8, Retry: time.Hour, Timeout: time.Hour}
		r, err := load.Run(b.Context(), o, set.Requests(n, 512))
		if err != nil || r.Acked != r.Spans {
			b.Fatalf("%+v %v", r, err)
		}
		sent += r.Spans
	}
	// On a busy machine, requests are retried, and some spans are stored twice.
	stored, err := strconv.Atoi(strings.TrimSpace(e.Exec(b, "SELECT count() FROM tracing.spans")))
	if err != nil || stored < sent {
		b.Fatalf("%d of %d spans are stored: %v", stored, sent, err)
	}
	if stored > sent {
		b.Logf("%d spans are stored, of which %d are duplicates", stored, stored-sent)
	}
	for quiet := 0; quiet < 5; time.Sleep(500 * time.Millisecond) { // until the server merges no more
		if quiet++; strings.TrimSpace(e.Exec(b, "SELECT count() FROM system.merges")) != "0" {
			quiet = 0
		}
	}
	address := func(store string) string { return p.App.Addr(pipeline.ID{Type: "query", Name: store}, "http") }
	s.disk = client{b, "http://" + address("disk")}
	s.clickhouse = client{b, "http://" + address("clickhouse")}
	return s
}

// result is what was measured of a page: medians.
type result struct {
	page             string
	disk, clickhouse took
	statements       []statement
}

// took is the time until the last response of a page, and the CPU time of the query services and
// the server that it took. The second hardly depends on what else the machine does.
type took struct{ time, cpu time.Duration }

// measure opens a page with one store and the other in turns.
func (s *stores) measure(b *testing.B, p page, turns int) result {
	b.Helper()
	r := result{page: p.name}
	var disk, clickhouse []took
	for range turns {
		disk = append(disk, s.open(b, p, &s.disk))
		s.log.take()
		clickhouse = append(clickhouse, s.open(b, p, &s.clickhouse))
		r.statements = s.log.take()
	}
	r.disk, r.clickhouse = median(disk), median(clickhouse)
	if os.Getenv("PROFILE") == "1" {
		printStatements(os.Stdout, p.name, r.statements)
	}
	return r
}

func (s *stores) open(b *testing.B, p page, c *client) took {
	b.Helper()
	before := s.cpu(b)
	t := took{time: p.open(c)}
	t.cpu = s.cpu(b) - before
	return t
}

// cpu returns the CPU time of this process and the server.
func (s *stores) cpu(b *testing.B) time.Duration {
	b.Helper()
	own, err := process.CPU(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	server, err := process.CPU(s.engine.PID())
	if err != nil {
		b.Fatal(err)
	}
	return own + server
}

func median(all []took) (m took) {
	slices.SortFunc(all, func(a, b took) int { return cmp.Compare(a.time, b.time) })
	m.time = all[len(all)/2].time
	slices.SortFunc(all, func(a, b took) int { return cmp.Compare(a.cpu, b.cpu) })
	m.cpu = all[len(all)/2].cpu
	return m
}

func printResults(w io.Writer, results []result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush() //nolint:errcheck // standard output
	fmt.Fprintln(t, "page\tdisk ms\tClickHouse ms\tratio\tdisk CPU ms\tClickHouse CPU ms\tratio\tstatements\trows read\t")
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	for _, r := range results {
		var rows int64
		for _, s := range r.statements {
			rows += s.rows
		}
		d, c := r.disk, r.clickhouse
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.1f\t%.0f\t%.0f\t%.1f\t%d\t%d\t\n", r.page, ms(d.time), ms(c.time), ms(c.time)/ms(d.time),
			ms(d.cpu), ms(c.cpu), ms(c.cpu)/max(ms(d.cpu), 10), len(r.statements), rows)
	}
}

// printStatements prints the statements of a page by kind, those that took longest first.
func printStatements(w io.Writer, page string, all []statement) {
	type kind struct {
		text string
		n    int
		statement
	}
	kinds := make(map[string]*kind)
	for _, s := range all {
		name := kindOf(s.text)
		if kinds[name] == nil {
			kinds[name] = &kind{text: name}
		}
		k := kinds[name]
		k.n, k.time, k.rows = k.n+1, k.time+s.time, k.rows+s.rows
	}
	sorted := slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int { return cmp.Compare(b.time, a.time) })
	fmt.Fprintf(w, "\n%s: %d statements\n", page, len(all))
	for _, k := range sorted {
		fmt.Fprintf(w, "%5d %6.0f ms %9d rows  %s\n", k.n, k.time.Seconds()*1e3, k.rows, k.text)
	}
}

var numbers = regexp.MustCompile(`\d+`)

// kindOf returns a short text that similar statements have in common: their columns and table.
func kindOf(text string) string {
	const most = 90 // of the columns
	columns, from, _ := strings.Cut(text, " FROM `")
	table, _, _ := strings.Cut(from, " WHERE ")
	return numbers.ReplaceAllString(columns[:min(len(columns), most)]+" FROM "+table[:min(len(table), most)], "0")
}

// params returns parameters of a request for the time range of the pages.
func (s *stores) params(params ...string) string {
	v := url.Values{"start": {fmt.Sprint(s.from.UnixNano())}, "end": {fmt.Sprint(s.to.UnixNano())}}
	for i := 0; i+1 < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return v.Encode()
}
