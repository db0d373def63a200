package chart_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// schema is the part of JSON Schema that values.schema.json uses.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
	Definitions          map[string]*schema `json:"definitions"`
}

// Every value has an entry in the schema, and the schema has no others.
func TestSchemaAndValuesAgree(t *testing.T) {
	var root schema
	if err := json.Unmarshal([]byte(readFile(t, chartFolder, "values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	delete(root.Properties, "global") // of Helm
	values := parse(t, readFile(t, chartFolder, "values.yaml"))
	compare(t, "", root.Definitions, &root, values)
}

func compare(t *testing.T, path string, definitions map[string]*schema, s *schema, values map[string]any) {
	t.Helper()
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		s = definitions[name]
	}
	if s.Properties == nil {
		return // free
	}
	if s.AdditionalProperties != false {
		t.Errorf("schema of %q accepts unknown keys", path)
	}
	if in, want := slices.Sorted(maps.Keys(s.Properties)), slices.Sorted(maps.Keys(values)); !slices.Equal(in, want) {
		t.Errorf("%q: the schema has the keys %v, values.yaml %v", path, in, want)
	}
	for key, below := range values {
		if block, ok := below.(map[string]any); ok && s.Properties[key] != nil {
			compare(t, path+"/"+key, definitions, s.Properties[key], block)
		}
	}
}

// Wrong values are refused with a message that names them.
func TestInvalidValues(t *testing.T) {
	for values, want := range map[string]string{
		"mode: cluster":                                 "/mode",
		"replicaCount: 3":                               "replicaCount",
		"collector: {replica: 3}":                       "replica",
		"query: {replicas: many}":                       "/query/replicas",
		"agent: {queueHostPath: queue}":                 "/agent/queueHostPath",
		"allInOne: {persistence: {size: 10GiB}}":        "/allInOne/persistence/size",
		"retention: {size: 10Gi}":                       "/retention/size",
		"retention: {time: 3 days}":                     "/retention/time",
		"image: {digest: latest}":                       "/image/digest",
		"services: {query: {type: ExternalName}}":       "/services/query/type",
		"clickhouse: {endpoints: [host]}":               "/clickhouse/endpoints/0",
		"{mode: split, collector: {replicas: 2}}":       "collector.replicas: a store on disk belongs to one collector",
		"{mode: split, storage: clickhouse}":            "clickhouse.endpoints: no servers",
		"storage: clickhouse":                           "storage: the mode all-in-one stores on disk",
		"ingress: {enabled: true}":                      "ingress.hosts: no hosts",
		"kafka: {brokers: [host]}":                      "/kafka/brokers/0",
		"kafka: {mechanism: GSSAPI}":                    "/kafka/mechanism",
		"kafka: {topic: a/b}":                           "/kafka/topic",
		"ingester: {replica: 3}":                        "replica",
		"kafka: {enabled: true}":                        "kafka.enabled: ingesters store in ClickHouse",
		"{mode: split, kafka: {enabled: true}}":         "kafka.enabled: ingesters store in ClickHouse",
		withKafka(""):                                   "kafka.brokers: no brokers",
		withKafka("brokers: [k:1], username: u"):        "kafka.username: a user needs a password",
		withKafka("brokers: [k:1], existingSecret: s"):  "kafka.username: a user needs a password",
		withKafka("brokers: [k:1], tls: {caSecret: s}"): "kafka.tls.caSecret: not used without TLS",
		"retention: {size: 60GiB}":                      "retention.size: 60GiB does not fit into a volume of 60Gi",
		"{mode: split, storage: clickhouse, clickhouse: {endpoints: [c:9000], settings: {sending_queue: {}}}, " +
			"kafka: {enabled: true, brokers: [k:9092]}}": "clickhouse.settings.sending_queue: ingesters need no queue",
		"{mode: split, retention: {size: 9GiB}, " + collectorVolume("5Gi") + "}": "retention.size: 9GiB does not fit into a volume of 5Gi",
	} {
		_, err := tryRender(t, parse(t, values), "v1.34.0")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", values, err, want)
		}
	}
}

// withKafka returns values with keys of the section kafka.
func withKafka(keys string) string {
	return "{mode: split, storage: clickhouse, clickhouse: {endpoints: [c:9000]}, kafka: {enabled: true, " + keys + "}}"
}

func collectorVolume(size string) string {
	return fmt.Sprintf("collector: {persistence: {size: %s}}", size)
}

// helm lint finds nothing, not even something to recommend.
func TestLint(t *testing.T) {
	version := chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	for name, values := range valueFiles(t) {
		result := lint.AllWithKubeVersion(chartFolder, values, namespace, &version)
		for _, m := range result.Messages {
			if m.Severity >= support.WarningSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
				t.Errorf("%s: %s: %v", name, m.Path, m.Err)
			}
		}
	}
}
