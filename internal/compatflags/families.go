package compatflags

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// family returns flags that are accepted without an effect: names are flags with a value, switches
// are flags whose value is optional. instead is the text of the warnings.
func family(prefix, instead, names, switches string) []pipeline.Flag {
	var flags []pipeline.Flag
	add := func(names string, isSwitch bool) {
		for name := range strings.FieldsSeq(names) {
			flags = append(flags, pipeline.Flag{Name: prefix + "." + name, Family: prefix, Instead: instead, Switch: isSwitch})
		}
	}
	add(names, false)
	add(switches, true)
	return flags
}

// Names of flags that several families have.
const (
	tlsNames    = "tls.ca tls.cert tls.key tls.server-name "
	tlsSwitches = "tls tls.enabled tls.skip-host-verify tls.verify-host "
)

// OtherStores returns the flags of stores that this program does not support. They have no effect;
// --span-storage.type rejects the store itself.
func OtherStores() []pipeline.Flag {
	const (
		instead       = "spans are stored without a database; the keys of exporters.disk configure the embedded store"
		elasticsearch = tlsNames + "adaptive-sampling.lookback api-key api-key-file bulk.actions bulk.flush-interval bulk.size " +
			"bulk.workers http-compression index-date-separator index-prefix index-rollover-frequency-adaptive-sampling " +
			"index-rollover-frequency-services index-rollover-frequency-spans log-level max-doc-count max-num-spans " +
			"max-span-age num-replicas num-shards password password-file prioirity-dependencies-template " +
			"prioirity-service-template prioirity-span-template remote-read-clusters send-get-body-as server-urls " +
			"service-cache-ttl tags-as-fields.config-file tags-as-fields.dot-replacement tags-as-fields.include timeout " +
			"token-file username version"
		elasticsearchSwitches = tlsSwitches + "create-index-templates disable-health-check enabled sniffer sniffer-tls-enabled " +
			"tags-as-fields.all use-aliases use-ilm"
		cassandra = tlsNames + "basic.allowed-authenticators connect-timeout connections-per-host consistency " +
			"index.tag-blacklist index.tag-whitelist keyspace local-dc max-retry-attempts password port proto-version " +
			"reconnect-interval schema.compaction-window schema.datacenter schema.dependencies-ttl schema.replication-factor " +
			"schema.trace-ttl servers socket-keep-alive span-store-write-cache-ttl timeout username"
		cassandraSwitches = tlsSwitches + "disable-compression enable-dependencies-v2 enabled index.logs index.process-tags " +
			"index.tags schema.create"
		plugin = "plugins are separate processes: start the plugin as a remote storage server and set --grpc-storage.server"
	)
	flags := family("grpc-storage-plugin", plugin, "binary configuration-file log-level", "")
	for _, prefix := range []string{"es", "es-archive"} {
		flags = append(flags, family(prefix, instead, elasticsearch, elasticsearchSwitches)...)
	}
	for _, prefix := range []string{"cassandra", "cassandra-archive"} {
		flags = append(flags, family(prefix, instead, cassandra, cassandraSwitches)...)
	}
	return flags
}

// storageTypes returns the environment variables, also accepted as flags, that select stores for
// single purposes.
func storageTypes() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "dependency-storage.type", Instead: "dependencies are calculated from the stored spans: see /api/dependencies"},
		{Name: "metrics-storage.type", Instead: "service performance is calculated from the stored spans: see /api/metrics"},
	}
}

// prometheusFlags returns the flags of a metrics store for service performance monitoring.
func prometheusFlags() []pipeline.Flag {
	return family("prometheus", "service performance is calculated from the stored spans, without Prometheus: see /api/metrics",
		tlsNames+"connect-timeout extra-query-params query.duration-unit query.namespace server-url token-file",
		tlsSwitches+"query.normalize-calls query.normalize-duration query.support-spanmetrics-connector token-override-from-context")
}
