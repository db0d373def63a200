package schema

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// Finding is a property of a server that is unsuitable for the exporter.
type Finding struct {
	// Problem reports that spans can be lost, counted twice or refused. Otherwise the finding is
	// advice.
	Problem bool
	// Text says what is wrong and what to do.
	Text string
}

// String returns the finding as a line for operators.
func (f Finding) String() string {
	if f.Problem {
		return "problem: " + f.Text
	}
	return "warning: " + f.Text
}

// Oldest server version whose deduplication of inserts includes views as the exporter requires.
const oldestMajor, oldestMinor = 24, 8

// Check compares the tables and the settings of the servers with what the exporter needs. An error
// means that the servers could not be examined, or matches [ErrUnusable].
func (s *Schema) Check(ctx context.Context, on Server) ([]Finding, error) {
	found, err := s.CheckServer(ctx, on)
	if err != nil {
		return found, err
	}
	todo, err := s.Missing(ctx, on)
	for _, st := range todo {
		found = append(found, st.finding())
	}
	return found, err
}

// finding describes the purpose of the statement. A retention or setting that differs from this
// configuration may be intended, unless servers do not recognize repeated inserts with it.
func (st *Statement) finding() Finding {
	if st.tunes && !st.dedups {
		return Finding{Text: fmt.Sprintf("%s has another retention or other settings than this configuration; \"schema apply\" would run: %s",
			st.Object, firstLine(st.SQL))}
	}
	return Finding{Problem: true, Text: fmt.Sprintf("%s is missing or differs: %s; run \"tracing clickhouse schema apply\"",
		st.Object, firstLine(st.SQL))}
}

// CheckServer is like [Schema.Check] without the tables.
func (s *Schema) CheckServer(ctx context.Context, on Server) ([]Finding, error) {
	if s.opts.Blind {
		return nil, nil
	}
	c := &checker{Schema: s, ctx: ctx, on: on}
	for _, check := range []func() error{c.version, c.settings, c.space, c.cluster, c.macros, c.replicas} {
		if err := check(); err != nil {
			return c.found, fmt.Errorf("examining the server: %w", err)
		}
	}
	return c.found, nil
}

func firstLine(sql string) string {
	line, _, _ := strings.Cut(sql, "\n")
	return line
}

// checker collects findings.
type checker struct {
	*Schema
	ctx   context.Context //nolint:containedctx // a checker lives for one call
	on    Server
	found []Finding
}

func (c *checker) problem(format string, args ...any) {
	c.found = append(c.found, Finding{Problem: true, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(format string, args ...any) {
	c.found = append(c.found, Finding{Text: fmt.Sprintf(format, args...)})
}

func (c *checker) version() error {
	var version string
	if err := read(c.ctx, c.on, "SELECT version()", &version); err != nil {
		return err
	}
	parts := append(strings.Split(version, "."), "", "")
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		c.problem("server version %s is too old; upgrade it to %d.%d or later", version, oldestMajor, oldestMinor)
	}
	return nil
}

// rule is a condition on a setting.
type rule struct {
	table, name string
	ok          func(value int64) bool
	problem     bool
	advice      string
}

func equals(want int64) func(int64) bool { return func(v int64) bool { return v == want } }

// atLeast also accepts 0, which means no limit.
func atLeast(least int64) func(int64) bool { return func(v int64) bool { return v == 0 || v >= least } }

// Minimum limits of servers.
const (
	minInsertMemory = 1 << 30 // bytes; statements that read have a limit of their own
	minMemory       = 2 << 30 // bytes of a server
	minParts        = 300     // of a partition before inserts are delayed
	minQueries      = 50
	minFreeShare    = 0.1 // of a disk
	maxDelay        = 300 // seconds that a replica may lag
)

// rules returns the rules for settings that the exporter does not set itself with each statement.
func rules() []rule {
	const settings, tables, server = "system.settings", "system.merge_tree_settings", "system.server_settings"
	return []rule{
		{settings, "readonly", equals(0), true, "must be 0, so that the user can insert and set settings"},
		{settings, "max_memory_usage", atLeast(minInsertMemory), false, "should be at least 1 GiB or 0, or large inserts fail"},
		{tables, "parts_to_delay_insert", atLeast(minParts), false, "should be at least 300, or inserts slow down under load"},
		{tables, "parts_to_throw_insert", atLeast(2 * minParts), false, "should be at least 600, or inserts are refused under load"},
		{server, "max_server_memory_usage", atLeast(minMemory), false, "should be at least 2 GiB"},
		{server, "max_concurrent_queries", atLeast(minQueries), false, "should be at least 50 or 0"},
	}
}

// sets are the settings that the exporter sets with statements, which a profile must not forbid.
var sets = []string{"insert_deduplicate", "insert_deduplication_token", "deduplicate_blocks_in_dependent_materialized_views",
	"async_insert", "distributed_foreground_insert", "insert_quorum", "max_insert_block_size", "max_partitions_per_insert_block",
	"max_execution_time", "max_memory_usage", "max_query_size", "max_rows_to_read", "skip_unavailable_shards"}

func (c *checker) settings() error {
	for _, r := range rules() {
		var text string
		if err := read(c.ctx, c.on, "SELECT toString(value) FROM "+r.table+" WHERE name = "+where.Text(r.name), &text); err != nil {
			return err
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || r.ok(value) {
			continue // a server without the setting has no limit
		}
		text = fmt.Sprintf("setting %s is %d and %s", r.name, value, r.advice)
		c.found = append(c.found, Finding{Problem: r.problem, Text: text})
	}
	var fixed []string
	err := read(c.ctx, c.on, "SELECT groupArray(name) FROM system.settings WHERE readonly = 1 AND name IN ("+where.Texts(sets)+")", &fixed)
	if err == nil && len(fixed) > 0 {
		c.problem("user must not change the settings %s; remove the constraint from the profile", strings.Join(fixed, ", "))
	}
	return err
}

// space examines the disks.
func (c *checker) space() error {
	var disks []string
	err := read(c.ctx, c.on, fmt.Sprintf("SELECT groupArray(name) FROM system.disks WHERE total_space > 0 AND free_space < %g * total_space",
		minFreeShare), &disks)
	if err == nil && len(disks) > 0 {
		c.warn("less than a tenth of disk %s is free; add space or shorten the retention", strings.Join(disks, ", "))
	}
	return err
}

// cluster examines the cluster that the options name.
func (c *checker) cluster() error {
	if c.opts.Shape == Single {
		return nil
	}
	var servers, shards uint64
	of := "FROM system.clusters WHERE cluster = " + where.Text(c.opts.Cluster)
	if err := read(c.ctx, c.on, "SELECT count(), uniqExact(shard_num) "+of, &servers, &shards); err != nil {
		return err
	}
	switch {
	case servers == 0:
		c.problem("cluster %s is not in the configuration of the server; add it to remote_servers", c.opts.Cluster)
		return nil
	case shards > 1 && c.opts.Shape == Replicated:
		c.problem("cluster %s has %d shards, and each gets a part of the traces; set cluster::sharded", c.opts.Cluster, shards)
	}
	var has uint64
	column := "SELECT count() FROM system.columns WHERE database = 'system' AND table = 'clusters' AND name = 'internal_replication'"
	if err := read(c.ctx, c.on, column, &has); err != nil || has == 0 || c.opts.Shape != Sharded {
		return err
	}
	var without uint64
	err := read(c.ctx, c.on, "SELECT countIf(internal_replication = 0) "+of, &without)
	if err == nil && without > 0 {
		c.problem("cluster %s lacks internal_replication, so that each insert goes to all replicas; set it to true", c.opts.Cluster)
	}
	return err
}

// macros examines the names of the server in paths of replicated tables.
func (c *checker) macros() error {
	if c.opts.Shape == Single {
		return nil
	}
	var names []string
	if err := read(c.ctx, c.on, "SELECT groupArray(macro) FROM system.macros", &names); err != nil {
		return err
	}
	for _, name := range []string{"shard", "replica"} {
		if !slices.Contains(names, name) {
			c.problem("server has no macro %s; add it to macros in its configuration", name)
		}
	}
	return nil
}

// replicas examines the state of replication.
func (c *checker) replicas() error {
	if c.opts.Shape == Single {
		return nil
	}
	var readonly, late []string
	err := read(c.ctx, c.on, fmt.Sprintf("SELECT groupArrayIf(table, is_readonly = 1), groupArrayIf(table, absolute_delay > %d) "+
		"FROM system.replicas WHERE database = %s", maxDelay, where.Text(c.opts.Database)), &readonly, &late)
	if err == nil && len(readonly) > 0 {
		c.problem("tables %s are read-only; check the connection of the server to its coordination service", strings.Join(readonly, ", "))
	}
	if err == nil && len(late) > 0 {
		c.warn("replica lags by more than five minutes for tables %s", strings.Join(late, ", "))
	}
	return err
}
