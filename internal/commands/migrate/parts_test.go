package migrate

import (
	"fmt"
	"strings"
	"testing"
)

// otlp returns a configuration that sends to a host.
func otlp(host string) string {
	return "receivers: {otlp: {protocols: {grpc: {}}}}\nexporters: {otlp: {endpoint: " + host + "}}\n" +
		"service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}}\n"
}

// configMap returns a manifest with configurations, given as keys and hosts.
func configMap(name string, keysAndHosts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: ConfigMap\nmetadata: {name: %s}\ndata:\n", name)
	for i := 0; i < len(keysAndHosts); i += 2 {
		fmt.Fprintf(&b, "  %s: |\n    %s\n", keysAndHosts[i], strings.ReplaceAll(otlp(keysAndHosts[i+1]), "\n", "\n    "))
	}
	return b.String()
}

// pod returns a manifest with a container for each name, of Jaeger 1 except for a sidecar.
func pod(containers ...string) string {
	text := "kind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n"
	for _, name := range containers {
		image := "jaegertracing/jaeger-" + name
		if name == "sidecar" {
			image = "nginx"
		}
		text += "  - {name: " + name + ", image: " + image + "}\n"
	}
	return text
}

// Every configuration of a file is in the output, in a note, or in the error.
func TestSeveralConfigurations(t *testing.T) {
	operator := "kind: OpenTelemetryCollector\nmetadata: {name: op}\nspec:\n  replicas: 2\n  config:\n    " +
		strings.ReplaceAll(otlp("third"), "\n", "\n    ")
	deployment := "kind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{image: jaegertracing/jaeger-collector, " +
		"name: c, ports: [{containerPort: 1}], args: [--collector.unknown=1]}]}}}\n"
	merging := "kind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{image: otel/collector, " +
		"args: [--config=/a.yaml, --config, /b.yaml, '--set=x=y']}]}}}\n"
	f := func(text, service string, want ...string) {
		t.Helper()
		got := ""
		result, err := Migrate(Input{From: Auto, Source: []byte(text), Service: service})
		if err != nil {
			got = err.Error()
		} else {
			got = string(result.YAML) + "\nsummary " + result.Summary()
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("no %q in\n%s\nfrom\n%s", w, got, text)
			}
		}
	}
	both := configMap("one", "config.yaml", "first") + "---\n" + configMap("two", "config.yaml", "second")
	f(both, "", "endpoint: first", "endpoint: second", "# one: one of 2 configurations", "summary "+names[OtelCol]+", 2 documents: ")
	f(both, "two", "endpoint: second", "key config.yaml of ConfigMap two")
	f(both, "three", "--service three: input has these configurations: one, two")
	f(both+"---\n"+operator, "", "first", "second", "third", "# dropped: spec.replicas: no part")
	f("kind: List\nitems:\n- "+strings.ReplaceAll(configMap("one", "c", "first"), "\n", "\n  ")+
		"\n- {kind: Service, metadata: {name: s}}\n", "",
		"endpoint: first", "# dropped: Service s: no part of a configuration", "1 dropped")
	f(configMap("one", "a.yaml", "first", "b.yaml", "second"), "", "# one/a.yaml: one of 2", "# one/b.yaml: one of 2", "first", "second")
	f(configMap("one", "a.yaml", "first")+"  other.json: |\n    {}\n  part.yaml: |\n    exporters: {nop: }\n", "",
		"# dropped: data.other.json: no part", "# decide: part.yaml of ConfigMap one: only a part of a configuration")
	f(configMap("one", "a.yaml", "first")+"---\nkind: ConfigMap\nmetadata: {name: two}\ndata: {c: 'exporters: {nop: }'}\n", "",
		"# decide: c of ConfigMap two: only a part of a configuration", ", 1 to decide")
	templated := "kind: ConfigMap\nmetadata: {name: two}\ndata:\n  b.yaml: |\n    exporters:\n    {{ .Values.exporters }}\n" +
		"  notes: |\n    a: {{ b }}\n"
	f(configMap("one", "a.yaml", "first")+"---\n"+templated, "", "endpoint: first",
		"# decide: b.yaml of ConfigMap two: not valid YAML: ", "translate it by itself", "# dropped: data.notes: no part")
	f(configMap("one", "a.yaml", "first")+"  b.yaml: |\n    receivers: {otlp: \n    exporters: [\n", "", "endpoint: first",
		"# decide: b.yaml of ConfigMap one: not valid YAML: ", "1 to decide")
	f(templated, "", "no configuration that can be read: b.yaml of ConfigMap two: not valid YAML: ")
	f(pod("sidecar", "collector", "query"), "x/sidecar", "input has these configurations: x/collector, x/query")
	f(pod("sidecar", "collector", "query"), "x/collector", "preset collector is missing")
	f(pod("sidecar", "collector", "query"), "x/query", "preset query is missing")
	f("kind: ConfigMap\ndata: {a: 'exporters: {nop: }'}\n", "", "no complete configuration: merge the parts a of ConfigMap")
	f(otlp("first")+"---\n"+otlp("second"), "", "# document-1: one of 2", "first", "# document-2: one of 2", "second")
	f(configMap("one", "config.yaml", "first")+"---\n"+merging, "", "# dropped: Deployment d: no part",
		"# decide: --config=/a.yaml --config /b.yaml --set=x=y: the program merges these")
	f("services: {c: {image: otel, command: [--config=/a, --config=/b]}}\nconfigs: {a: {content: '"+
		strings.ReplaceAll(otlp("first"), "\n", "\n\n")+"'}}\n", "", "first", "# decide: --config=/a --config=/b")
	f(deployment, "", "preset collector is missing")
}
