package foreign

import (
	"slices"
	"strings"
)

// kafkaClient has the rules for keys that the `kafka` receiver and exporter share.
var kafkaClient = slices.Concat([]rule{
	{"logs", drop(onlySpans)},
	{"metrics", drop(onlySpans)},
	{"profiles", drop(onlySpans)},
	{"protocol_version", drop("the version of the protocol is negotiated with the brokers")},
	{"resolve_canonical_bootstrap_servers_only", first(when(quietly, "false"),
		drop("brokers are connected to by the names that they report"))},
	{"use_leader_epoch", first(when(quietly, "true"), drop("leader epochs are used if the brokers support them"))},
	{"dial_timeout", to("connect_timeout")},
	{"metadata.full", drop("only the metadata of the topic is requested")},
	{"metadata.retry", drop("requests are repeated until the brokers respond or a timeout ends them")},
	{"auth.tls", to("tls")},
	{"auth.plain_text", plainText},
	{"auth.kerberos", refuse("Kerberos is not supported; use sasl with the mechanism SCRAM-SHA-512, or tls with client certificates")},
	{"auth.sasl.version", quietly},
	{"auth.sasl.mechanism", when(refuse("authentication with IAM is not supported; brokers of MSK also accept the mechanism "+
		"SCRAM-SHA-512, and client certificates"), "aws_msk_iam", "aws_msk_iam_oauthbearer")},
	{"auth.sasl.aws_msk", quietly},
	{"auth.sasl.oauthbearer_token_source", tokenSource},
}, below("tls", clientTLS))

var kafkaExporter = slices.Concat([]rule{
	{"traces.topic", to("topic")},
	{"traces.encoding", to("encoding")},
	{"traces.topic_from_metadata_key", refuse(oneTopic)},
	{"traces.message_key_from_metadata_key", drop("the key of a record is selected by key: trace_id, service or none")},
	{"traces", emptied},
	{"topic_from_attribute", refuse(oneTopic)},
	{"include_metadata_keys", drop("the only header of records is the tenant, see tenant_header")},
	{"record_headers", drop("the only header of records is the tenant, see tenant_header")},
	{"partition_traces_by_id", partitionByTrace},
	{"partition_metrics_by_resource_attributes", drop(onlySpans)},
	{"partition_logs_by_resource_attributes", drop(onlySpans)},
	{"partition_logs_by_trace_id", drop(onlySpans)},
	{"record_partitioner.extension", refuse("only the partitioner of Kafka's clients is supported, with key: trace_id, service or none")},
	{"record_partitioner.round_robin", anyPartition},
	{"record_partitioner.least_backup", anyPartition},
	{"record_partitioner.sticky_key.hasher", when(removeParent, "murmur2")},
	{"record_partitioner", drop("keys are hashed with murmur2, as by the clients of Kafka; while other programs hash them in another way, " +
		"spans of a trace may be in two partitions")},
	{"producer.required_acks", first(when(quietly, "all", "-1"),
		drop("records are always acknowledged by all in-sync replicas; min.insync.replicas of the topic is their minimum number"))},
	{"producer.compression_params.level", compressionLevel},
	{"producer.max_broker_write_bytes", drop("requests have the size that brokers accept")},
	{"producer.flush_max_messages", drop("the number of records in a request is not limited")},
	{"producer.allow_auto_topic_creation", first(when(quietly, "false"),
		drop("the topic must exist, or create_topic creates it with its partitions and replicas"))},
}, kafkaClient, delivery)

const (
	oneTopic    = "all spans of an exporter go to one topic; add an exporter for each topic"
	oneTopicIn  = "a receiver reads one topic; add a receiver for each, with its own group_id"
	markedLater = "the offset of a record is committed after its spans were accepted"
	deadLetters = "spans are repeated until they are accepted; records that are refused permanently become dead letters, see dead_letter"
)

var kafkaReceiver = slices.Concat([]rule{
	{"traces.topic", to("topic")},
	{"traces.encoding", to("encoding")},
	{"traces.topics", onlyTopic},
	{"traces.exclude_topics", refuse(oneTopicIn)},
	{"traces", emptied},
	{"group_rebalance_strategy", otherStrategy},
	{"group_rebalance_strategies", otherStrategies},
	{"autocommit.enable", first(when(quietly, "true"), drop(markedLater+", at most once per interval"))},
	{"message_marking.after", first(when(quietly, "true"), drop(markedLater))},
	{"message_marking.on_error", first(when(quietly, "false"), drop(deadLetters))},
	{"message_marking.on_permanent_error", first(when(quietly, "true"), drop(deadLetters))},
	{"message_marking", emptied},
	{"error_backoff.enabled", first(when(quietly, "true"), drop("temporary errors are always repeated"))},
	{"error_backoff.multiplier", drop("each delay is twice the one before")},
	{"error_backoff.randomization_factor", drop("each delay is twice the one before")},
	{"error_backoff.max_elapsed_time", drop("spans are repeated until they are accepted")},
	{"partition_processing", drop("each partition always has its own worker; max_concurrent limits them")},
	{"max_decompress_batch_bytes", to("max_decompressed_batch_size")},
	{"header_extraction", headerExtraction},
	{"telemetry", drop("all metrics are always collected")},
}, kafkaClient)

// partitionByTrace sets the keys of records.
func partitionByTrace(r *rewriter, block, path []string) {
	key := "none"
	if r.Text(path...) == "true" {
		key = "trace_id"
	}
	r.Drop(path, "")
	if !strings.HasPrefix(r.Text(at(block, "encoding")...), "jaeger_") && !r.Has(at(block, "key")...) {
		r.Set(at(block, "key"), key, "key was partition_traces_by_id")
	}
}

// compressionLevel leaves out a level that is the default or has no effect.
func compressionLevel(r *rewriter, block, path []string) {
	method := r.Text(at(block, "producer.compression")...)
	if r.Text(path...) == "-1" || !slices.Contains([]string{"gzip", "lz4", "zstd"}, method) {
		r.Drop(path, "")
	}
}

// anyPartition leaves the choice of partitions to the client.
func anyPartition(r *rewriter, block, path []string) {
	r.Drop(path, "")
	r.Drop(path[:len(path)-1], "")
	r.Set(at(block, "key"), "none", "records without a key are distributed over all partitions")
}

// removeParent leaves out record_partitioner, which asks for what this program always does.
func removeParent(r *rewriter, block, path []string) {
	r.Omit(path)
	r.Drop(at(block, "record_partitioner"), "")
}

// onlyTopic sets the topic to the only item of a list of topics.
func onlyTopic(r *rewriter, block, path []string) {
	topics := r.Texts(path...)
	switch {
	case len(topics) == 1 && !strings.HasPrefix(topics[0], "^") && !r.Has(at(block, "topic")...):
		r.Drop(path, "")
		r.Set(at(block, "topic"), topics[0], "topic was traces.topics")
	default:
		r.Refuse(path, oneTopicIn)
	}
}

// otherStrategy warns about a different assignment of partitions, which matters for groups with
// other members.
func otherStrategy(r *rewriter, _, path []string) { dropStrategies(r, path, r.Text(path...)) }

func otherStrategies(r *rewriter, _, path []string) { dropStrategies(r, path, r.Texts(path...)...) }

func dropStrategies(r *rewriter, path []string, strategies ...string) {
	const cooperative = "cooperative-sticky"
	reason := ""
	if !slices.Contains(strategies, cooperative) {
		reason = cooperative + " is used; stop the other members of the group before the first start"
	}
	r.Drop(path, reason)
}

// headerExtraction drops the extraction of headers, unless that is off.
func headerExtraction(r *rewriter, _, path []string) {
	reason := ""
	if r.Text(at(path, "extract_headers")...) == "true" {
		reason = "headers of records do not become attributes; tenancy.header names the one with the tenant"
	}
	r.Drop(path, reason)
}

// plainText sets the user and the password for the mechanism PLAIN.
func plainText(r *rewriter, block, path []string) {
	sasl := at(block, "auth.sasl")
	if r.Has(sasl...) {
		r.Drop(path, "sasl has precedence")
		return
	}
	r.Move(path, sasl, "is called sasl here")
	r.Set(at(sasl, "mechanism"), "PLAIN", "")
}

// tokenSource replaces an extension that provides tokens with the keys of auth.sasl.oauth.
func tokenSource(r *rewriter, block, path []string) {
	id := r.Text(path...)
	ext, oauth := []string{extensions, id}, at(block, "auth.sasl.oauth")
	switch {
	case !r.Has(ext...):
		r.Refuse(path, "no extension "+id+" is configured")
		return
	case TypeOf(id) == "bearertokenauth" && r.Has(at(ext, "filename")...):
		r.Drop(path, "")
		r.Copy(at(ext, "filename"), at(oauth, "token_file"), "", id+" provides the token")
		return
	case TypeOf(id) != "oauth2client" || r.Has(at(ext, "client_id_file")...):
		r.Refuse(path, "only oauth2client with client_id, and bearertokenauth with filename, are supported; "+
			"write the token to a file and name it in auth.sasl.oauth.token_file")
		return
	}
	r.Drop(path, "")
	reason := id + " provides the token"
	for _, key := range []string{"token_url", "client_id", "client_secret", "client_secret_file"} {
		if r.Has(at(ext, key)...) {
			r.Copy(at(ext, key), at(oauth, key), "", reason)
			reason = ""
		}
	}
	if scopes := r.Texts(at(ext, "scopes")...); len(scopes) > 0 {
		r.SetList(at(oauth, "scopes"), scopes, "")
	}
	r.tokenSources = append(r.tokenSources, id)
}

// dropTokenSources leaves out the extensions whose settings have become keys of auth.sasl.oauth.
func (r *rewriter) dropTokenSources() {
	for _, id := range r.tokenSources {
		if r.Has(extensions, id) && !r.known(extensions, TypeOf(id)) {
			r.Drop([]string{extensions, id, "scopes"}, "")
			r.replacedComponent(extensions, id, "the components kafka have the key auth.sasl.oauth")
		}
	}
}
