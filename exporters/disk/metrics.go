package disk

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
)

// metrics describes what the store holds and what happened to it.
type metrics struct {
	segments, bytes, logBytes, memtableSpans, memtableBytes, storedSpans prometheus.Gauge

	segmentsByLevel *prometheus.GaugeVec
	mergeBacklog    prometheus.Gauge

	free, minFree, oldest, retention, retentionBytes prometheus.Gauge

	segmentsWritten, flushedSpans, flushedBytes, duplicates, flushSeconds prometheus.Counter
	waits, flushFailures, logFailures, logRotations                       prometheus.Counter
	damage, quarantined, lostRecords, lostSpans, lostDeletions, restored  prometheus.Counter

	merges, mergedSpans, mergedBytes, mergeDuplicates, mergeSeconds, mergePauses prometheus.Counter
	mergeFailures, mergeAborts, unmergeable                                      prometheus.Counter

	expired *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, c *Config) (*metrics, error) {
	var all []prometheus.Collector
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_disk_" + name, Help: help})
		all = append(all, g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_disk_" + name, Help: help})
		all = append(all, c)
		return c
	}
	m := &metrics{
		segments:        gauge("segments", "Segment files."),
		bytes:           gauge("segment_bytes", "Size of all segment files."),
		logBytes:        gauge("log_bytes", "Size of the log files, including spare files kept for reuse."),
		storedSpans:     gauge("segment_spans", "Spans in segments."),
		memtableSpans:   gauge("memtable_spans", "Spans in memory that are not in a segment yet."),
		memtableBytes:   gauge("memtable_bytes", "Memory of spans that are not in a segment yet."),
		segmentsWritten: counter("segments_written_total", "Segments flushed from memtables."),
		flushedSpans:    counter("flushed_spans_total", "Spans written to segments."),
		flushedBytes:    counter("flushed_bytes_total", "Bytes written to segments."),
		duplicates:      counter("duplicate_spans_total", "Duplicate spans left out of segments."),
		flushSeconds:    counter("flush_seconds_total", "Time spent flushing memtables."),
		waits:           counter("waits_total", "Requests that waited for a flush."),
		flushFailures:   counter("flush_failures_total", "Failed flushes; they are retried."),
		logFailures:     counter("log_failures_total", "Logs abandoned after failed writes."),
		logRotations:    counter("log_rotations_total", "Failed log writes that were repeated in another file without loss."),
		damage:          counter("damaged_reads_total", "Reads of damaged parts of segments."),
		quarantined:     counter("quarantined_segments_total", "Segments moved to the quarantine because they could not be opened."),
		lostRecords:     counter("lost_log_records_total", "Log records with acknowledged spans that are missing or damaged at start."),
		lostSpans:       counter("lost_spans_total", "Acknowledged spans of damaged or missing files at start, or that could not be flushed."),
		lostDeletions:   counter("lost_deletions_total", "Deletions that could not be read at start; the spans they hid are visible again."),
		restored:        counter("restored_files_total", "Damaged or deleted files that were restored without loss."),
		free:            gauge("free_bytes", "Free space of the disk."),
		minFree:         gauge("min_free_bytes", "Setting min_free: below this free space, the disk counts as full."),
		oldest:          gauge("oldest_span_seconds", "Time since the oldest stored span arrived; 0 if the store is empty."),
		retention:       gauge("retention_seconds", "Setting retention.time; 0 if it is not limited."),
		retentionBytes:  gauge("retention_bytes", "Setting retention.size; 0 if it is not limited."),
		mergeBacklog:    gauge("merge_backlog_segments", "Segments that can still be merged, including segments that wait for more neighbors."),
		merges:          counter("merges_total", "Segments merged from other segments."),
		mergedSpans:     counter("merged_spans_total", "Spans written by merges."),
		mergedBytes:     counter("merged_bytes_total", "Bytes written by merges."),
		mergeDuplicates: counter("merge_duplicate_spans_total", "Duplicate spans left out by merges."),
		mergeSeconds:    counter("merge_seconds_total", "Time of merges, including pauses."),
		mergePauses:     counter("merge_pause_seconds_total", "Time that merges paused in favor of other work."),
		mergeFailures:   counter("merge_failures_total", "Failed merges; they are retried."),
		mergeAborts:     counter("merge_aborts_total", "Merges aborted because a segment expired or the disk became full."),
		unmergeable:     counter("unmergeable_segments_total", "Segments excluded from merges, most likely because they are damaged."),
		segmentsByLevel: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tracing_disk_level_segments", Help: "Segments by level: flushed from a memtable, or merged."}, []string{"level"}),
		expired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tracing_disk_expired_spans_total", Help: "Spans deleted with their segments, by reason."}, []string{"reason"}),
	}
	m.minFree.Set(float64(c.MinFree))
	m.retention.Set(c.Retention.Time.Std().Seconds())
	m.retentionBytes.Set(float64(c.Retention.Size))
	for _, reason := range []string{expiredByTime, expiredBySize, expiredByFull, expiredEmpty} {
		m.expired.WithLabelValues(reason)
	}
	for _, level := range []string{levelFlushed, levelMerged} {
		m.segmentsByLevel.WithLabelValues(level)
	}
	for _, c := range append(all, m.expired, m.segmentsByLevel) {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) flushed(info segment.Info, took time.Duration) {
	m.segmentsWritten.Inc()
	m.flushedSpans.Add(float64(info.Rows))
	m.flushedBytes.Add(float64(info.Size))
	m.duplicates.Add(float64(info.Duplicates))
	m.flushSeconds.Add(took.Seconds())
}

func (m *metrics) merged(info segment.Info, took time.Duration) {
	m.merges.Inc()
	m.mergedSpans.Add(float64(info.Rows))
	m.mergedBytes.Add(float64(info.Size))
	m.mergeDuplicates.Add(float64(info.Duplicates))
	m.mergeSeconds.Add(took.Seconds())
}

// Values of the label level.
const (
	levelFlushed = "flushed"
	levelMerged  = "merged"
)

func (e *exporter) updateGauges() {
	var stored, bytes, live, memory int64
	e.intake.mu.Lock()
	for _, l := range e.intake.memtables() {
		live, memory = live+int64(l.table.Rows()), memory+l.table.Bytes()
	}
	e.intake.mu.Unlock()
	e.segments.mu.Lock()
	for _, h := range e.segments.list {
		stored, bytes = stored+int64(h.info.Rows), bytes+h.info.Size
	}
	segments, single, backlog := len(e.segments.list), singles(e.segments.list), backlog(e.segments.list)
	e.segments.mu.Unlock()
	m := e.metrics
	m.segments.Set(float64(segments))
	m.segmentsByLevel.WithLabelValues(levelFlushed).Set(float64(single))
	m.segmentsByLevel.WithLabelValues(levelMerged).Set(float64(segments - single))
	m.mergeBacklog.Set(float64(backlog))
	m.bytes.Set(float64(bytes))
	m.storedSpans.Set(float64(stored))
	m.memtableSpans.Set(float64(live))
	m.memtableBytes.Set(float64(memory))
	age := 0.0
	if oldest := e.oldestArrival(); !oldest.IsZero() {
		age = max(e.env.Now().Sub(oldest), 0).Seconds() // the clock may be set back
	}
	m.oldest.Set(age)
}
