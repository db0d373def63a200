// Package collectorkeys describes the configuration keys of the built-in processors of the
// OpenTelemetry Collector. The texts follow the documentation and code of the processors in version
// 0.161.0. Each function returns an argument of otelcol.Keys.
package collectorkeys

import "maps"

// Texts of keys that several processors have.
const (
	errorMode = "Effect of an error in a condition or statement: ignore (it is logged), silent (none) or propagate (the request is refused)."
	groupMode = "Value for error_mode in this group."
	noContext = "Context of names without a prefix: resource, scope, span or spanevent. Normally not needed."
)

// with returns a map with the entries of two others.
func with(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// matches returns the keys of the blocks `include` and `exclude`.
func matches() map[string]string {
	const forLogs = "Only for logs."
	const anyValue = "Value of the attribute. Without it, every value matches."
	return map[string]string{
		"match_type":         "How strings are compared: strict (equal) or regexp. Required.",
		"regexp":             "Options of match_type: regexp.",
		"cacheenabled":       "Whether results are cached.",
		"cachemaxnumentries": "Maximum number of cached results. 0 disables the limit.",
		"services":           "Names of services. At least one must match.",
		"span_names":         "Names of spans. At least one must match.",
		"span_kinds": "Kinds of spans. At least one must match: " +
			"SPAN_KIND_SERVER, SPAN_KIND_CLIENT and so on.",
		"attributes":                          "Attributes that the span must have.",
		"attributes[].key":                    "Name of the attribute.",
		"attributes[].value":                  anyValue,
		"resources":                           "Attributes that the resource must have.",
		"resources[].key":                     "Name of the attribute.",
		"resources[].value":                   anyValue,
		"libraries":                           "Instrumentation scope. All items must match.",
		"libraries[].name":                    "Name of the scope.",
		"libraries[].version":                 "Version of the scope. Without it, every version matches.",
		"log_bodies":                          forLogs,
		"log_severity_texts":                  forLogs,
		"log_severity_number":                 forLogs,
		"log_severity_number.min":             forLogs,
		"log_severity_number.match_undefined": forLogs,
		"metric_names":                        "Only for metrics.",
	}
}

// actions returns the keys of an action on an attribute.
func actions() map[string]string {
	return map[string]string{
		"key":           "Name of the attribute. Required, except for delete and hash with a pattern.",
		"value":         "New value, for insert, update and upsert.",
		"default_value": "New value if from_attribute or from_context finds none.",
		"pattern": "Regular expression: for delete and hash, it matches further names of " +
			"attributes; for extract, it has a named group for each new attribute.",
		"from_attribute": "Attribute whose value is copied.",
		"from_context": "Property of the request whose value is copied: metadata.NAME for a header, which the " +
			"receiver must pass on (include_metadata). Several values are joined with semicolons.",
		"converted_type": "New type, for convert: int, double or string.",
		"action": "Change: insert (only if the attribute is missing), update (only if it exists), " +
			"upsert (in any case), delete, hash (replace the value with its SHA-256), extract (new attributes from parts of " +
			"the value) or convert (change the type). Required.",
	}
}

// Attributes returns the keys of the `attributes` processor.
func Attributes() map[string]string {
	return with(with(matches(), actions()), map[string]string{
		"include": "Spans that are changed. At least one condition is required, and all must be met. Without " +
			"the block, all spans are changed.",
		"exclude": "Spans selected by include that are not changed.",
		"actions": "Changes of attributes, in this order.",
	})
}

// Resource returns the keys of the `resource` processor.
func Resource() map[string]string {
	return with(actions(), map[string]string{"attributes": "Changes of attributes of resources, in this order."})
}

// Filter returns the keys of the `filter` processor.
func Filter() map[string]string {
	return with(matches(), map[string]string{
		"error_mode":    errorMode,
		"spans":         "Deprecated: use trace_conditions. Spans to drop, by their properties.",
		"spans.include": "Spans to keep. All others are dropped.",
		"spans.exclude": "Spans to drop among the spans that include keeps.",
		"traces": "Deprecated: use trace_conditions. Conditions in the OpenTelemetry " +
			"Transformation Language (OTTL); one is enough to drop.",
		"traces.resource":  "Conditions that drop all spans of a resource.",
		"traces.span":      "Conditions that drop a span.",
		"traces.spanevent": "Conditions that drop an event of a span.",
		"trace_conditions": "Groups of conditions in OTTL, or a list of conditions. A matching " +
			"condition drops what its names refer to: resource, scope, span or spanevent.",
		"trace_conditions[].context":    noContext,
		"trace_conditions[].conditions": "Conditions of the group.",
		"trace_conditions[].error_mode": groupMode,
	})
}

// Transform returns the keys of the `transform` processor.
func Transform() map[string]string {
	return map[string]string{
		"error_mode": errorMode,
		"trace_statements": "Groups of statements in the OpenTelemetry Transformation Language " +
			"(OTTL), or a list of statements. They are executed in this order.",
		"trace_statements[].context":      noContext,
		"trace_statements[].conditions":   "Conditions in OTTL. The statements are executed if one of them is met.",
		"trace_statements[].statements":   "Statements of the group.",
		"trace_statements[].error_mode":   groupMode,
		"trace_statements[].shared_cache": "Whether the group shares its cache with the other groups that have this key. Experimental.",
		"flatten_data":                    "For log records, with a feature gate that is off; an error if true.",
	}
}

// GroupByTrace returns the keys of the `groupbytrace` processor.
func GroupByTrace() map[string]string {
	return map[string]string{
		"num_traces":      "Maximum number of traces that are held. Above it, the oldest trace is dropped.",
		"num_workers":     "Number of workers. All spans of a trace go to the same worker.",
		"wait_duration":   "Time for which a trace is held after its first span.",
		"discard_orphans": "Not implemented by the processor; an error if true.",
		"store_on_disk":   "Not implemented by the processor; an error if true.",
	}
}

// Redaction returns the keys of the `redaction` processor.
func Redaction() map[string]string {
	const enabled = "Whether these queries are sanitized."
	const attributes = "Attributes that contain the queries."
	queries := func(system string) string { return system + " queries." }
	return map[string]string{
		"allow_all_keys":       "Whether all attributes are kept. allowed_keys then has no effect; values are still masked.",
		"allowed_keys":         "Attributes that are kept. All others are deleted: without allow_all_keys, an empty list deletes all.",
		"blocked_key_patterns": "Regular expressions for names of attributes whose values are masked.",
		"hash_function": "Hash that replaces masked values: md5, sha1, sha3, hmac-sha256 or hmac-sha512. " +
			"If empty, they are replaced with ****.",
		"hmac_key":             "Key for hmac-sha256 (at least 32 bytes) or hmac-sha512 (at least 64 bytes).",
		"ignored_keys":         "Attributes that are neither deleted nor masked.",
		"ignored_key_patterns": "Regular expressions for names of attributes that are neither deleted nor masked.",
		"redact_all_types":     "Whether values that are not strings are masked too.",
		"blocked_values":       "Regular expressions for the parts of values that are masked, applied in this order.",
		"allowed_values":       "Regular expressions for values that are not masked, although they are in blocked_values.",
		"db_sanitizer":         "Removal of values from database queries, in spans with db.system.name or db.system.",
		"sql":                  queries("SQL"),
		"redis":                queries("Redis"),
		"valkey":               queries("Valkey"),
		"memcached":            queries("Memcached"),
		"mongo":                queries("MongoDB"),
		"opensearch":           queries("OpenSearch"),
		"es":                   queries("Elasticsearch"),
		"enabled":              enabled,
		"attributes":           attributes,
		"sanitize_span_name":   "Whether names of client and server spans are sanitized too. The default is true.",
		"summary": "Attributes that describe the changes: debug (numbers and names), info (numbers) " +
			"or silent (the default).",
		"url_sanitizer":            "Replacement of variable parts of URLs, such as identifiers.",
		"url_sanitizer.enabled":    "Whether URLs are sanitized.",
		"url_sanitizer.attributes": "Attributes that contain URLs.",
	}
}

// TailSampling returns the keys of the `tail_sampling` processor.
func TailSampling() map[string]string {
	const ottl = "Conditions in OTTL. One must be met by "
	return map[string]string{
		"decision_wait":                     "Time from the first span of a trace to the decision about it.",
		"decision_wait_after_root_received": "Time from the root span of a trace to the decision, if that is earlier. 0 disables it.",
		"num_traces":                        "Maximum number of traces that are held.",
		"block_on_overflow":                 "Whether spans wait when num_traces is reached. If false, the oldest trace is dropped.",
		"expected_new_traces_per_sec":       "Expected number of new traces per second, for which memory is reserved.",
		"policies":                          "Policies. A trace is kept if one of them keeps it and no policy of type drop matches.",
		"policies[].name":                   "Name in metrics and logs.",
		"policies[].type": "Type: always_sample (every trace), trace_flags (traces with a span " +
			"whose sampled flag is set), or the name of a block below, which is then required.",
		"latency":                 "Keeps traces by their duration, from the earliest start to the latest end.",
		"threshold_ms":            "Duration in milliseconds above which traces are kept.",
		"upper_threshold_ms":      "Maximum duration in milliseconds. 0 disables the limit.",
		"numeric_attribute":       "Keeps traces by a number in an attribute of a span or resource.",
		"key":                     "Name of the attribute.",
		"min_value":               "Minimum value. 0 disables the limit.",
		"max_value":               "Maximum value. 0 disables the limit.",
		"invert_match":            "Deprecated: use the policy type not or drop. Whether traces without a match are kept.",
		"probabilistic":           "Keeps a percentage of traces, selected by trace id.",
		"hash_salt":               "Salt of the hash, different for each layer of collectors.",
		"sampling_percentage":     "Percentage of traces.",
		"status_code":             "Keeps traces with a span of one of these statuses.",
		"status_codes":            "Statuses: OK, ERROR or UNSET.",
		"string_attribute":        "Keeps traces with one of these strings in an attribute of a span or resource.",
		"values":                  "Values. One must equal the value of the entry.",
		"string_attribute.values": "Values or regular expressions. One must match.",
		"enabled_regex_matching":  "Whether values are regular expressions.",
		"cache_max_size":          "Maximum number of cached results of regular expressions. 0 means 128.",
		"rate_limiting":           "Keeps traces up to a number of spans per second.",
		"spans_per_second":        "Number of spans per second.",
		"rate_limiting.burst_capacity": "Maximum number of spans in a burst, and in one trace. 0 " +
			"means twice spans_per_second.",
		"bytes_limiting":   "Keeps traces up to a number of bytes per second.",
		"bytes_per_second": "Number of bytes per second.",
		"bytes_limiting.burst_capacity": "Maximum number of bytes in a burst, and in one trace. 0 " +
			"means twice bytes_per_second.",
		"span_count":                 "Keeps traces by their number of spans.",
		"min_spans":                  "Minimum number of spans.",
		"max_spans":                  "Maximum number of spans. 0 disables the limit.",
		"trace_state":                "Keeps traces by an entry of their tracestate.",
		"trace_state.key":            "Key of the entry.",
		"boolean_attribute":          "Keeps traces with a boolean in an attribute of a span or resource.",
		"boolean_attribute.value":    "Value that must match.",
		"ottl_condition":             "Keeps traces that meet a condition in the OpenTelemetry Transformation Language (OTTL).",
		"error_mode":                 errorMode,
		"span":                       ottl + "a span.",
		"spanevent":                  ottl + "an event of a span.",
		"composite":                  "Keeps traces by several policies, each with a part of max_total_spans_per_second.",
		"max_total_spans_per_second": "Number of spans per second.",
		"policy_order":               "Names of the policies, in order of evaluation.",
		"composite_sub_policy":       "Policies with the keys of policies[], except composite, not and drop.",
		"rate_allocation":            "Share of each policy: maps with the keys policy (name) and percent.",
		"and":                        "Keeps traces that all of several policies keep.",
		"and_sub_policy":             "Policies with the keys of policies[], except the types composite, and, and drop.",
		"not":                        "Keeps traces that a policy does not keep.",
		"not_sub_policy":             "Policy with the keys of policies[], except composite, and, not and drop.",
		"drop":                       "Drops traces that all of several policies keep, whatever other policies decide.",
		"drop_sub_policy":            "Policies with the keys of policies[], except the types composite, and, and drop.",
		"decision_cache": "Decisions about traces that are no longer held, for late spans. " +
			"Should be much larger than num_traces.",
		"sampled_cache_size":     "Number of kept traces that are remembered.",
		"non_sampled_cache_size": "Number of dropped traces that are remembered.",
		"tail_storage":           "Not supported here.",
		"sample_on_first_match":  "Whether the first policy that matches decides.",
		"sampling_strategy": "When policies are evaluated: trace-complete (after decision_wait) " +
			"or span-ingest (for each request, without policies that need whole traces; undecided traces are dropped " +
			"after decision_wait).",
		"drop_pending_traces_on_shutdown": "Whether undecided traces are dropped at shutdown instead of being decided.",
		"maximum_trace_size_bytes":        "Size of a trace in bytes above which it is dropped immediately. 0 disables the limit.",
		"num_shards": "Number of workers, at most 256. All spans of a trace go to the same " +
			"worker. Numbers of traces and rates, but not bursts, are divided among them.",
	}
}
