package delivery_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/engines/process"
	"github.com/tracing-backend/tracing/test/harness"
)

const (
	// enduranceTime is how long BenchmarkEndurance runs after it has found a rate, unless DURATION
	// says otherwise.
	enduranceTime = 10 * time.Minute
	// topicBytes is the maximum size of the topic, without its replicas.
	topicBytes = 2 << 30
	// The rate is multiplied by 1.5 from firstRate while it is sustained, and then bisected.
	firstRate  = 20_000
	bisections = 2
	stepTime   = 20 * time.Second
	// A rate is sustained if clients get this share of their requests acknowledged, and the spans
	// that are not stored at the end of a step are at most the spans of this time.
	sustainedShare = 0.98
	sustainedLag   = time.Second

	rows = 20 // of the table
)

// BenchmarkEndurance writes spans through three brokers into a store. It raises the rate until it
// is not sustained any more. Then it keeps the highest sustained rate, or that in RATE (spans/s),
// for DURATION (10m), and prints lag, CPU time in cores and memory over time. The sender
// shares the machine.
func BenchmarkEndurance(b *testing.B) {
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("DURATION"), enduranceTime.String()))
	if err != nil {
		b.Fatalf("DURATION: %v", err)
	}
	rate, err := strconv.Atoi(cmp.Or(os.Getenv("RATE"), "0"))
	if err != nil {
		b.Fatalf("RATE: %v", err)
	}
	for b.Loop() {
		e := newEndurance(b)
		if rate == 0 {
			rate = e.findRate()
		}
		e.run(rate, duration)
	}
	b.ReportMetric(0, "ns/op")
}

// endurance is a collector that writes to brokers, and an ingester with a store, as their presets
// configure them.
type endurance struct {
	b                   *testing.B
	brokers             *broker.Cluster
	topic               string
	collector, ingester *member
	requests            *requests
	acked               atomic.Int64
}

func newEndurance(b *testing.B) *endurance {
	b.Helper()
	e := &endurance{b: b, brokers: broker.Start(b, broker.Options{Measured: true, Heap: 400}), requests: newRequests(b)}
	const partitions, segment = 12, 16 << 20
	e.topic = e.brokers.Topic(b, partitions, fmt.Sprintf("retention.bytes=%d", topicBytes/partitions-segment),
		fmt.Sprintf("segment.bytes=%d", segment))
	brokers := "::kafka::brokers=[" + strings.Join(e.brokers.Brokers(), ", ") + "]"
	start := func(preset, kind string) *member {
		p := harness.Run(b, harness.PresetArgs(preset, b.TempDir(), harness.SetArgs(kind+brokers, kind+"::kafka::topic="+e.topic)...)...)
		p.AwaitReady()
		return &member{Process: p}
	}
	e.collector, e.ingester = start("collector-kafka", "exporters"), start("ingester", "receivers")
	return e
}

// findRate returns the highest rate that is sustained, to about a tenth, or the lowest that was
// tried.
func (e *endurance) findRate() int {
	low, high := firstRate, firstRate
	for e.sustains(high) {
		low, high = high, high*3/2
	}
	for range bisections {
		if middle := (low + high) / 2; e.sustains(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// sustains tries a rate.
func (e *endurance) sustains(rate int) bool {
	before := e.acked.Load()
	e.send(rate, stepTime, func() {})
	acked := float64(e.acked.Load()-before) / stepTime.Seconds()
	behind := e.acked.Load() - e.stored()
	fmt.Printf("%d spans/s offered: %.0f acknowledged, %d spans not stored at the end\n", rate, acked, behind)
	e.awaitStored()
	return acked >= sustainedShare*float64(rate) && float64(behind) <= float64(rate)*sustainedLag.Seconds()
}

// run keeps a rate and prints the table.
func (e *endurance) run(rate int, duration time.Duration) {
	e.b.Helper()
	fmt.Printf("\n%d spans/s for %v; CPU time in cores, memory in MiB\n", rate, duration)
	fmt.Printf("%6s %9s %9s %9s %7s %9s %8s %7s %6s %9s %8s %7s %8s\n", "s", "acked/s", "stored/s", "lag recs", "lag s",
		"collector", "ingester", "brokers", "sender", "collector", "ingester", "brokers", "log MiB")
	first := e.usage()
	last, n := first, 0
	e.send(rate, duration, func() {
		if now := e.usage(); n < rows-1 && now.at.Sub(first.at) >= time.Duration(n+1)*duration/rows {
			e.row(first, last, now)
			last = now
			n++
		}
	})
	end := e.usage()
	e.row(first, last, end)
	e.awaitStored()
	spans := float64(end.acked - first.acked)
	achieved := spans / end.at.Sub(first.at).Seconds()
	perSpan := func(cpu func(usage) time.Duration) float64 {
		return float64((cpu(end) - cpu(first)).Microseconds()) / spans
	}
	e.b.ReportMetric(achieved, "spans/s")
	e.b.ReportMetric(perSpan(func(u usage) time.Duration { return u.collector.cpu }), "collector-µs/span")
	e.b.ReportMetric(perSpan(func(u usage) time.Duration { return u.ingester.cpu }), "ingester-µs/span")
	e.b.ReportMetric(perSpan(func(u usage) time.Duration { return u.brokers.cpu }), "brokers-µs/span")
	e.b.ReportMetric(float64(end.collector.memory.Peak>>20), "collector-peak-MiB")
	e.b.ReportMetric(float64(end.ingester.memory.Peak>>20), "ingester-peak-MiB")
	e.b.ReportMetric(e.ingester.repeatedRecords(), "repeated-records")
	if achieved < sustainedShare*float64(rate) {
		e.b.Errorf("%.0f of %d spans/s were acknowledged", achieved, rate)
	}
}

// send sends spans at a rate for some time, and calls tick about every second.
func (e *endurance) send(rate int, duration time.Duration, tick func()) {
	e.b.Helper()
	start, sent, ticked := time.Now(), 0, time.Now()
	paced := func(yield func(bench.Request) bool) {
		for time.Since(start) < duration {
			if time.Since(ticked) >= time.Second {
				ticked = time.Now()
				tick()
			}
			r := e.requests.fresh()
			time.Sleep(time.Until(start.Add(time.Duration(float64(sent) / float64(rate) * float64(time.Second)))))
			sent += r.Spans
			if !yield(r) {
				return
			}
		}
	}
	r, err := load.Run(context.Background(), load.Options{Target: e.collector.OTLPGRPC(), Connections: 4, InFlight: 8, Retry: time.Minute,
		Acked: func(r bench.Request) { e.acked.Add(int64(r.Spans)) }}, paced)
	if err != nil || r.Acked != r.Spans {
		e.b.Fatalf("%+v %v", r, err)
	}
}

// stored returns the number of spans that the ingester has stored.
func (e *endurance) stored() int64 {
	return int64(e.ingester.sum("tracing_pipeline_spans_total", `kind="exporter"`, `outcome="sent"`))
}

// awaitStored waits until every acknowledged span is stored.
func (e *endurance) awaitStored() {
	e.b.Helper()
	harness.Poll(e.b, "acknowledged spans are stored", func() bool { return e.stored() >= e.acked.Load() })
}

// usage is what the processes have used until a moment.
type usage struct {
	at                           time.Time
	acked, stored                int64
	lagRecords, lagSeconds       float64
	collector, ingester, brokers used
	sender                       time.Duration
	logBytes                     int64 // of all replicas
}

// used is what processes have used together.
type used struct {
	cpu    time.Duration
	memory process.Memory
}

func (e *endurance) usage() usage {
	e.b.Helper()
	u := usage{at: time.Now(), acked: e.acked.Load(), stored: e.stored(), lagRecords: e.ingester.sum("tracing_kafka_consumer_lag_records"),
		collector: e.used(e.collector.Cmd.Process.Pid), ingester: e.used(e.ingester.Cmd.Process.Pid), brokers: e.used(e.brokers.PIDs()...),
		sender: e.used(os.Getpid()).cpu}
	for sample, v := range harness.Metrics(e.b, e.ingester.AdminURL()) {
		if strings.HasPrefix(sample, "tracing_kafka_consumer_lag_seconds{") {
			u.lagSeconds = max(u.lagSeconds, v)
		}
	}
	logs, err := filepath.Glob(filepath.Join(e.brokers.Dir(), "*", "data", e.topic+"-*", "*.log"))
	if err != nil {
		e.b.Fatal(err)
	}
	for _, log := range logs {
		if info, err := os.Stat(log); err == nil { // a segment may have been deleted
			u.logBytes += info.Size()
		}
	}
	return u
}

func (e *endurance) used(pids ...int) (all used) {
	e.b.Helper()
	for _, pid := range pids {
		cpu, err1 := process.CPU(pid)
		memory, err2 := process.ReadMemory(pid)
		if err := cmp.Or(err1, err2); err != nil {
			e.b.Fatal(err)
		}
		all.cpu += cpu
		all.memory.Now += memory.Now
		all.memory.Peak += memory.Peak
	}
	return all
}

// row prints what has been used since the last row.
func (e *endurance) row(first, last, now usage) {
	s := now.at.Sub(last.at).Seconds()
	cores := func(a, b time.Duration) float64 { return (b - a).Seconds() / s }
	fmt.Printf("%6.0f %9.0f %9.0f %9.0f %7.2f %9.2f %8.2f %7.2f %6.2f %9d %8d %7d %8d\n", now.at.Sub(first.at).Seconds(),
		float64(now.acked-last.acked)/s, float64(now.stored-last.stored)/s, now.lagRecords, now.lagSeconds,
		cores(last.collector.cpu, now.collector.cpu), cores(last.ingester.cpu, now.ingester.cpu),
		cores(last.brokers.cpu, now.brokers.cpu), cores(last.sender, now.sender),
		now.collector.memory.Now>>20, now.ingester.memory.Now>>20, now.brokers.memory.Now>>20, now.logBytes>>20)
}
