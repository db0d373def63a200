CREATE DATABASE IF NOT EXISTS `tracing` ON CLUSTER `main`;

CREATE TABLE IF NOT EXISTS `tracing`.`spans_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `service` LowCardinality(String) CODEC(ZSTD(1)),
    `start` UInt64 CODEC(Delta(8), ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `name` LowCardinality(String) CODEC(ZSTD(1)),
    `kind` LowCardinality(String) CODEC(ZSTD(1)),
    `status` LowCardinality(String) CODEC(ZSTD(1)),
    `status_message` String CODEC(ZSTD(1)),
    `error_group` LowCardinality(String) CODEC(ZSTD(1)),
    `duration` UInt64 CODEC(T64, ZSTD(1)),
    `calls` UInt64 CODEC(T64, ZSTD(1)),
    `trace_id` FixedString(16) CODEC(ZSTD(1)),
    `root` UInt8 CODEC(ZSTD(1)),
    `scope_name` LowCardinality(String) CODEC(ZSTD(1)),
    `scope_version` LowCardinality(String) CODEC(ZSTD(1)),
    `event_names` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `origin.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `origin.value` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `str.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `str.value` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `text.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `text.value` Array(String) CODEC(ZSTD(1)),
    `int.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `int.value` Array(Int64) CODEC(ZSTD(1)),
    `float.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `float.value` Array(Float64) CODEC(ZSTD(1)),
    `other.key` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `other.value` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `repeated` UInt8 DEFAULT length(arrayFilter(x -> startsWith(x, 'span.') OR startsWith(x, 'resource.'), arrayConcat(`origin.key`, `str.key`, `text.key`, `int.key`, `float.key`, `other.key`))) != arrayUniq(arrayFilter(x -> startsWith(x, 'span.') OR startsWith(x, 'resource.'), arrayConcat(`origin.key`, `str.key`, `text.key`, `int.key`, `float.key`, `other.key`))) CODEC(ZSTD(1)),
    `strings` Map(String, String) ALIAS mapFromArrays(arrayConcat(`origin.key`, `str.key`, `text.key`), arrayConcat(`origin.value`, `str.value`, `text.value`)),
    `ints` Map(String, Int64) ALIAS mapFromArrays(`int.key`, `int.value`),
    `floats` Map(String, Float64) ALIAS mapFromArrays(`float.key`, `float.value`),
    `others` Map(String, String) ALIAS mapFromArrays(`other.key`, `other.value`),
    INDEX `by_trace_id` trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_duration` duration TYPE minmax GRANULARITY 1,
    INDEX `by_name` name TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_status` status TYPE set(4) GRANULARITY 1,
    INDEX `by_origin` origin.value TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_string` str.value TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_text` text.value TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_int` arrayMap((k, v) -> concat(k, '=', toString(v)), int.key, int.value) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_float` float.value TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_other` arrayMap((k, v) -> concat(k, '=', v), other.key, other.value) TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/spans_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, service, start)
TTL day + toIntervalDay(15)
SETTINGS index_granularity = 2048, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`spans` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `service` LowCardinality(String),
    `start` UInt64,
    `day` Date,
    `odd` UInt8,
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `status` LowCardinality(String),
    `status_message` String,
    `error_group` LowCardinality(String),
    `duration` UInt64,
    `calls` UInt64,
    `trace_id` FixedString(16),
    `root` UInt8,
    `scope_name` LowCardinality(String),
    `scope_version` LowCardinality(String),
    `event_names` Array(LowCardinality(String)),
    `origin.key` Array(LowCardinality(String)),
    `origin.value` Array(LowCardinality(String)),
    `str.key` Array(LowCardinality(String)),
    `str.value` Array(LowCardinality(String)),
    `text.key` Array(LowCardinality(String)),
    `text.value` Array(String),
    `int.key` Array(LowCardinality(String)),
    `int.value` Array(Int64),
    `float.key` Array(LowCardinality(String)),
    `float.value` Array(Float64),
    `other.key` Array(LowCardinality(String)),
    `other.value` Array(LowCardinality(String)),
    `repeated` UInt8 DEFAULT length(arrayFilter(x -> startsWith(x, 'span.') OR startsWith(x, 'resource.'), arrayConcat(`origin.key`, `str.key`, `text.key`, `int.key`, `float.key`, `other.key`))) != arrayUniq(arrayFilter(x -> startsWith(x, 'span.') OR startsWith(x, 'resource.'), arrayConcat(`origin.key`, `str.key`, `text.key`, `int.key`, `float.key`, `other.key`))),
    `strings` Map(String, String) ALIAS mapFromArrays(arrayConcat(`origin.key`, `str.key`, `text.key`), arrayConcat(`origin.value`, `str.value`, `text.value`)),
    `ints` Map(String, Int64) ALIAS mapFromArrays(`int.key`, `int.value`),
    `floats` Map(String, Float64) ALIAS mapFromArrays(`float.key`, `float.value`),
    `others` Map(String, String) ALIAS mapFromArrays(`other.key`, `other.value`)
)
ENGINE = Distributed('main', 'tracing', 'spans_local', cityHash64(trace_id));

CREATE TABLE IF NOT EXISTS `tracing`.`payload_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `trace_id` FixedString(16) CODEC(ZSTD(1)),
    `start` UInt64 CODEC(Delta(8), ZSTD(1)),
    `ids` FixedString(16) CODEC(ZSTD(1)),
    `duration` UInt64 CODEC(T64, ZSTD(1)),
    `service` LowCardinality(String) CODEC(ZSTD(1)),
    `name` LowCardinality(String) CODEC(ZSTD(1)),
    `failed` UInt8 CODEC(ZSTD(1)),
    `call` LowCardinality(String) CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `stored` LowCardinality(String) DEFAULT toString(toUnixTimestamp64Milli(now64(3))) CODEC(ZSTD(1)),
    `batch` LowCardinality(String) CODEC(ZSTD(1)),
    `origin` LowCardinality(String) CODEC(ZSTD(3)),
    `shape` LowCardinality(String) CODEC(ZSTD(3)),
    `texts` Array(LowCardinality(String)) CODEC(ZSTD(3)),
    `rest` String CODEC(ZSTD(3)),
    INDEX `by_trace_id` trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX `by_stored` stored TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/payload_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, trace_id, start)
TTL day + toIntervalDay(15)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`payload` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `trace_id` FixedString(16),
    `start` UInt64,
    `ids` FixedString(16),
    `duration` UInt64,
    `service` LowCardinality(String),
    `name` LowCardinality(String),
    `failed` UInt8,
    `call` LowCardinality(String),
    `day` Date,
    `odd` UInt8,
    `stored` LowCardinality(String) DEFAULT toString(toUnixTimestamp64Milli(now64(3))),
    `batch` LowCardinality(String),
    `origin` LowCardinality(String),
    `shape` LowCardinality(String),
    `texts` Array(LowCardinality(String)),
    `rest` String
)
ENGINE = Distributed('main', 'tracing', 'payload_local', cityHash64(trace_id));

CREATE TABLE IF NOT EXISTS `tracing`.`bounds_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `trace_id` FixedString(16) CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `first` SimpleAggregateFunction(min, UInt64) CODEC(ZSTD(1)),
    `last` SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(1)),
    `spans` SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1)),
    `errors` SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1)),
    `stored` SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/tracing/bounds_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, trace_id, day, odd)
TTL day + toIntervalDay(15)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`bounds` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `trace_id` FixedString(16),
    `day` Date,
    `odd` UInt8,
    `first` SimpleAggregateFunction(min, UInt64),
    `last` SimpleAggregateFunction(max, UInt64),
    `spans` SimpleAggregateFunction(sum, UInt64),
    `errors` SimpleAggregateFunction(sum, UInt64),
    `stored` SimpleAggregateFunction(max, UInt64)
)
ENGINE = Distributed('main', 'tracing', 'bounds_local', cityHash64(trace_id));

CREATE TABLE IF NOT EXISTS `tracing`.`operations_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `service` LowCardinality(String) CODEC(ZSTD(1)),
    `name` LowCardinality(String) CODEC(ZSTD(1)),
    `kind` LowCardinality(String) CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/tracing/operations_local', '{replica}')
PARTITION BY day
ORDER BY (tenant, service, name, kind, day, odd)
TTL day + toIntervalDay(15)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`operations` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `service` LowCardinality(String),
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `day` Date,
    `odd` UInt8
)
ENGINE = Distributed('main', 'tracing', 'operations_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`attributes_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `service` LowCardinality(String) CODEC(ZSTD(1)),
    `key` LowCardinality(String) CODEC(ZSTD(1)),
    `value` String CODEC(ZSTD(1)),
    `hour` UInt32 CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `spans` SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1)),
    `first` SimpleAggregateFunction(min, UInt64) CODEC(ZSTD(1)),
    `last` SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/tracing/attributes_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, service, key, value, hour, day, odd)
TTL day + toIntervalDay(15)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`attributes` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `service` LowCardinality(String),
    `key` LowCardinality(String),
    `value` String,
    `hour` UInt32,
    `day` Date,
    `odd` UInt8,
    `spans` SimpleAggregateFunction(sum, UInt64),
    `first` SimpleAggregateFunction(min, UInt64),
    `last` SimpleAggregateFunction(max, UInt64)
)
ENGINE = Distributed('main', 'tracing', 'attributes_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`minutes_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `service` LowCardinality(String) CODEC(ZSTD(1)),
    `name` LowCardinality(String) CODEC(ZSTD(1)),
    `kind` LowCardinality(String) CODEC(ZSTD(1)),
    `failed` UInt8 CODEC(ZSTD(1)),
    `minute` UInt32 CODEC(Delta(4), ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `spans` UInt64 CODEC(T64, ZSTD(1)),
    `calls` UInt64 CODEC(T64, ZSTD(1)),
    `duration` UInt128 CODEC(ZSTD(1)),
    `bucketsMap.bucket` Array(UInt16) CODEC(ZSTD(1)),
    `bucketsMap.spans` Array(UInt64) CODEC(T64, ZSTD(1)),
    `bucketsMap.calls` Array(UInt64) CODEC(T64, ZSTD(1))
)
ENGINE = ReplicatedSummingMergeTree('/clickhouse/tables/{shard}/tracing/minutes_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, service, name, kind, failed, minute, day, odd)
TTL day + toIntervalDay(61)
SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`minutes` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `service` LowCardinality(String),
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `failed` UInt8,
    `minute` UInt32,
    `day` Date,
    `odd` UInt8,
    `spans` UInt64,
    `calls` UInt64,
    `duration` UInt128,
    `bucketsMap.bucket` Array(UInt16),
    `bucketsMap.spans` Array(UInt64),
    `bucketsMap.calls` Array(UInt64)
)
ENGINE = Distributed('main', 'tracing', 'minutes_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`hours_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `hour` UInt32 CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `odd` UInt8 CODEC(ZSTD(1)),
    `spans` SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1)),
    `stored` SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/tracing/hours_local', '{replica}')
PARTITION BY (day, odd)
ORDER BY (tenant, hour, day, odd)
TTL day + toIntervalDay(61)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`hours` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `hour` UInt32,
    `day` Date,
    `odd` UInt8,
    `spans` SimpleAggregateFunction(sum, UInt64),
    `stored` SimpleAggregateFunction(max, UInt64)
)
ENGINE = Distributed('main', 'tracing', 'hours_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`edges_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `hour` UInt32 CODEC(ZSTD(1)),
    `day` Date DEFAULT toDate(now(), 'UTC') CODEC(ZSTD(1)),
    `counted` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))) CODEC(ZSTD(1)),
    `state` UInt64 CODEC(ZSTD(1)),
    `omitted` UInt8 CODEC(ZSTD(1)),
    `calls.parent` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `calls.child` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `calls.flags` Array(UInt8) CODEC(ZSTD(1)),
    `calls.connection` Array(UInt8) CODEC(ZSTD(1)),
    `calls.calls` Array(UInt64) CODEC(ZSTD(1)),
    `calls.errors` Array(UInt64) CODEC(ZSTD(1)),
    `calls.duration` Array(UInt64) CODEC(ZSTD(1)),
    `calls.first` Array(UInt16) CODEC(ZSTD(1)),
    `calls.counts` Array(Array(UInt64)) CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/tracing/edges_local', '{replica}', counted)
PARTITION BY day
ORDER BY (tenant, hour)
TTL day + toIntervalDay(61)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`edges` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `hour` UInt32,
    `day` Date DEFAULT toDate(now(), 'UTC'),
    `counted` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))),
    `state` UInt64,
    `omitted` UInt8,
    `calls.parent` Array(LowCardinality(String)),
    `calls.child` Array(LowCardinality(String)),
    `calls.flags` Array(UInt8),
    `calls.connection` Array(UInt8),
    `calls.calls` Array(UInt64),
    `calls.errors` Array(UInt64),
    `calls.duration` Array(UInt64),
    `calls.first` Array(UInt16),
    `calls.counts` Array(Array(UInt64))
)
ENGINE = Distributed('main', 'tracing', 'edges_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`deletions_local` ON CLUSTER `main`
(
    `tenant` LowCardinality(String) CODEC(ZSTD(1)),
    `epoch` UInt64 CODEC(ZSTD(1)),
    `at` UInt64 CODEC(ZSTD(1)),
    `day` Date CODEC(ZSTD(1)),
    `what` String CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/deletions_local', '{replica}')
PARTITION BY day
ORDER BY (tenant, epoch)
TTL day + toIntervalDay(61)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`deletions` ON CLUSTER `main`
(
    `tenant` LowCardinality(String),
    `epoch` UInt64,
    `at` UInt64,
    `day` Date,
    `what` String
)
ENGINE = Distributed('main', 'tracing', 'deletions_local', cityHash64(tenant));

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_throughput_local` ON CLUSTER `main`
(
    `added` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))) CODEC(ZSTD(1)),
    `day` Date DEFAULT toDate(now(), 'UTC') CODEC(ZSTD(1)),
    `until` Int64 CODEC(ZSTD(1)),
    `since` Int64 CODEC(ZSTD(1)),
    `body` String CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/sampling_throughput_local', '{replica}')
PARTITION BY day
ORDER BY added
TTL day + toIntervalDay(15)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_throughput` ON CLUSTER `main`
(
    `added` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))),
    `day` Date DEFAULT toDate(now(), 'UTC'),
    `until` Int64,
    `since` Int64,
    `body` String
)
ENGINE = Distributed('main', 'tracing', 'sampling_throughput_local', 1);

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_calculations_local` ON CLUSTER `main`
(
    `added` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))) CODEC(ZSTD(1)),
    `day` Date DEFAULT toDate(now(), 'UTC') CODEC(ZSTD(1)),
    `body` String CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/sampling_calculations_local', '{replica}')
PARTITION BY day
ORDER BY added
TTL day + toIntervalDay(15)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_calculations` ON CLUSTER `main`
(
    `added` UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))),
    `day` Date DEFAULT toDate(now(), 'UTC'),
    `body` String
)
ENGINE = Distributed('main', 'tracing', 'sampling_calculations_local', 1);

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_leases_local` ON CLUSTER `main`
(
    `resource` String CODEC(ZSTD(1)),
    `term` UInt64 CODEC(ZSTD(1)),
    `owner` String CODEC(ZSTD(1)),
    `until` Int64 CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/tracing/sampling_leases_local', '{replica}', term)
ORDER BY resource
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`sampling_leases` ON CLUSTER `main`
(
    `resource` String,
    `term` UInt64,
    `owner` String,
    `until` Int64
)
ENGINE = Distributed('main', 'tracing', 'sampling_leases_local', 1);

CREATE TABLE IF NOT EXISTS `tracing`.`meta_local` ON CLUSTER `main`
(
    `version` UInt32 CODEC(ZSTD(1)),
    `oldest` UInt32 CODEC(ZSTD(1)),
    `at` DateTime DEFAULT now() CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/tracing/meta_local', '{replica}')
ORDER BY version
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS `tracing`.`meta` ON CLUSTER `main`
(
    `version` UInt32,
    `oldest` UInt32,
    `at` DateTime DEFAULT now()
)
ENGINE = Distributed('main', 'tracing', 'meta_local', 1);

CREATE MATERIALIZED VIEW IF NOT EXISTS `tracing`.`bounds_view` ON CLUSTER `main` TO `tracing`.`bounds_local` AS
SELECT s.tenant AS tenant, s.trace_id AS trace_id, s.day AS day, s.odd AS odd,
    min(s.start) AS first, max(s.start) AS last, count() AS spans, countIf(s.status = 'error') AS errors,
    toUInt64(max(toUnixTimestamp(now()))) AS stored
FROM `tracing`.`spans_local` AS s
GROUP BY s.tenant, s.trace_id, s.day, s.odd;

CREATE MATERIALIZED VIEW IF NOT EXISTS `tracing`.`operations_view` ON CLUSTER `main` TO `tracing`.`operations_local` AS
SELECT s.tenant AS tenant, s.service AS service, s.name AS name, s.kind AS kind, s.day AS day, s.odd AS odd
FROM `tracing`.`spans_local` AS s
GROUP BY s.tenant, s.service, s.name, s.kind, s.day, s.odd;

CREATE MATERIALIZED VIEW IF NOT EXISTS `tracing`.`attributes_view` ON CLUSTER `main` TO `tracing`.`attributes_local` AS
SELECT s.tenant AS tenant, s.service AS service, tupleElement(pair, 1) AS key, tupleElement(pair, 2) AS value,
    toUInt32(intDiv(s.start, 3600000000000)) AS hour, s.day AS day, s.odd AS odd,
    count() AS spans, min(s.start) AS first, max(s.start) AS last
FROM `tracing`.`spans_local` AS s
ARRAY JOIN arrayConcat(
    arrayMap((k, v) -> (toString(k), if(k IN ('resource.service.instance.id', 'resource.k8s.pod.name', 'resource.host.name', 'resource.service.version'), toString(v), '')), s.`origin.key`, s.`origin.value`),
    arrayMap((k, v) -> (toString(k), if(k IN ('resource.service.instance.id', 'resource.k8s.pod.name', 'resource.host.name', 'resource.service.version'), toString(v), '')), s.`int.key`, s.`int.value`),
    arrayMap(k -> (toString(k), ''), arrayConcat(s.`str.key`, s.`text.key`, s.`float.key`, s.`other.key`))) AS pair
GROUP BY s.tenant, s.service, key, value, hour, s.day, s.odd;

CREATE MATERIALIZED VIEW IF NOT EXISTS `tracing`.`minutes_view` ON CLUSTER `main` TO `tracing`.`minutes_local` AS
SELECT s.tenant AS tenant, s.service AS service, s.name AS name, s.kind AS kind, s.status = 'error' AS failed,
    toUInt32(intDiv(s.start, 60000000000)) AS minute, s.day AS day, s.odd AS odd,
    count() AS spans, sum(s.calls) AS calls,
    sum(least(toUInt128(s.duration) * s.calls, toUInt128(18446744073709551615))) AS duration,
    tupleElement(sumMap([toUInt16(32 * toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 9425337585438007768) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 9631725603661576981) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 9842632931000616232) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 10058158527438640871) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 10278403519900636097) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 10503471249702896439) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 10733467321041881442) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 10968499650544839024) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 11208678517905446201) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 11454116617628225966) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 11704929111906019353) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 11961233684655323371) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 12223150596734848761) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 12490802742373206727) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 12764315706832201104) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 13043817825332782213) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 13329440243271311082) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 13621316977754388159) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 13919584980481119319) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 14224384202002324190) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 14535857657386837923) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 14854151493325717732) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 15179415056705840219) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 15511800964685064949) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 15851465176301844310) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 16198567065652879634) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 16553269496673159337) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 16915738899553466671) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 17286145348831213004) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 17664662643191237677) + (bitShiftLeft(s.duration, toUInt8(63 - toUInt16(round(log2(roundToExp2(bitOr(s.duration, 1))))))) >= 18051468387014017851)) AS span_bucket], [toUInt64(1)], [s.calls]), 1) AS `bucketsMap.bucket`,
    tupleElement(sumMap([span_bucket], [toUInt64(1)], [s.calls]), 2) AS `bucketsMap.spans`,
    tupleElement(sumMap([span_bucket], [toUInt64(1)], [s.calls]), 3) AS `bucketsMap.calls`
FROM `tracing`.`spans_local` AS s
GROUP BY s.tenant, s.service, s.name, s.kind, failed, minute, s.day, s.odd;

CREATE MATERIALIZED VIEW IF NOT EXISTS `tracing`.`hours_view` ON CLUSTER `main` TO `tracing`.`hours_local` AS
SELECT s.tenant AS tenant, toUInt32(intDiv(s.start, 3600000000000)) AS hour, s.day AS day, s.odd AS odd,
    count() AS spans, toUInt64(max(toUnixTimestamp(now()))) AS stored
FROM `tracing`.`spans_local` AS s
GROUP BY s.tenant, hour, s.day, s.odd;

