package chart_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// printed returns the configuration that the program runs in a container, in parts that the tests
// look at.
func printed(t *testing.T, r release, component string) (c struct {
	Receivers, Exporters, Extensions map[string]map[string]any
	Service                          struct {
		Extensions []string
		Pipelines  map[string]struct{ Receivers, Exporters []string }
	}
}) {
	t.Helper()
	out, err := asProcess(t, r, workloadNamed(t, r, fullName+"-"+component)).command(t.Context(), t, "print-config").Output()
	if err != nil {
		t.Fatalf("print-config %s: %v", component, err)
	}
	if err := yaml.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// Collectors write to the topic, ingesters store its spans in ClickHouse, and query services read
// them there.
func TestKafka(t *testing.T) {
	r := render(t, valueFiles(t)["kafka"])
	collector, ingester, query := printed(t, r, "collector"), printed(t, r, "ingester"), printed(t, r, "query")
	for component, got := range map[string][]string{
		"collector": collector.Service.Pipelines["traces"].Exporters,
		"ingester":  append(ingester.Service.Pipelines["traces"].Receivers, ingester.Service.Pipelines["traces"].Exporters...),
	} {
		want := map[string][]string{"collector": {"kafka"}, "ingester": {"kafka", "clickhouse"}}[component]
		if !slices.Equal(got, want) {
			t.Errorf("%s: pipeline %v, want %v", component, got, want)
		}
	}
	if !slices.Equal(ingester.Service.Extensions, []string{"admin"}) || len(ingester.Exporters) != 1 || len(ingester.Extensions) != 1 {
		t.Errorf("ingester: extensions %v, exporters %v", ingester.Extensions, ingester.Exporters)
	}
	writer, reader := configured(t, r, "collector").Exporters["kafka"], configured(t, r, "ingester").Receivers["kafka"]
	for _, key := range []string{"brokers", "topic", "auth", "tls"} {
		if writer[key] == nil || !reflect.DeepEqual(writer[key], reader[key]) {
			t.Errorf("%s: the collector has %v, the ingester %v", key, writer[key], reader[key])
		}
	}
	if id := ingester.Receivers["kafka"]["group_instance_id"]; id != fullName+"-ingester-0" || writer["create_topic"] == nil {
		t.Errorf("the configuration in the values is not merged: %v, %v", id, writer)
	}
	store := ingester.Exporters["clickhouse"]
	if !reflect.DeepEqual(store["endpoints"], query.Exporters["clickhouse"]["endpoints"]) {
		t.Errorf("the ingester stores in %v, the query service reads %v", store, query.Exporters["clickhouse"])
	}
	if retry := store["retry_on_failure"].(map[string]any); retry["max_elapsed_time"] != "0s" || store["sending_queue"] != nil {
		t.Errorf("the ingester gives up, or has a queue: %v", store)
	}
}

// configured returns the configuration of a component in its config map.
func configured(t *testing.T, r release, component string) (c struct {
	Receivers, Exporters map[string]map[string]any
}) {
	t.Helper()
	text := find[*corev1.ConfigMap](t, r, fullName+"-"+component).Data["config.yaml"]
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// The settings are in the exporter and in the receiver, and win over the other values.
func TestKafkaSettings(t *testing.T) {
	r := render(t, parse(t, withKafka("brokers: [k:9092], settings: {topic: other, client_id: shop, tls: {min_version: \"1.3\"}}")))
	for component, block := range map[string]map[string]any{
		"collector": printed(t, r, "collector").Exporters["kafka"],
		"ingester":  printed(t, r, "ingester").Receivers["kafka"],
	} {
		tls, _ := block["tls"].(map[string]any)
		if block["topic"] != "other" || block["client_id"] != "shop" || tls["min_version"] != "1.3" || block["auth"] != nil {
			t.Errorf("%s: %v", component, block)
		}
	}
}

// Without secrets, TLS uses the authorities of the image, and no files are mounted.
func TestKafkaTLSWithoutSecrets(t *testing.T) {
	r := render(t, parse(t, withKafka("brokers: [k:9092], tls: {enabled: true}")))
	writer, reader := configured(t, r, "collector").Exporters["kafka"], configured(t, r, "ingester").Receivers["kafka"]
	for component, block := range map[string]map[string]any{"collector": writer, "ingester": reader} {
		if tls, ok := block["tls"].(map[string]any); !ok || len(tls) != 0 || block["auth"] != nil {
			t.Errorf("%s: %v", component, block)
		}
		if got := mountedSecrets(workloadNamed(t, r, fullName+"-"+component)); len(got) != 0 {
			t.Errorf("%s mounts %v", component, got)
		}
	}
}

// A component has only the secrets of what it connects to.
func TestKafkaSecrets(t *testing.T) {
	sets := valueFiles(t)
	for set, want := range map[string]map[string][]string{
		"kafka": {
			"collector": {"kafka-tracing", "kafka-cluster-ca-cert"},
			"ingester":  {"clickhouse-tracing", "kafka-tracing", "kafka-cluster-ca-cert"},
			"query":     {"clickhouse-tracing"},
		},
		"clickhouse": {"collector": {"clickhouse-tracing"}, "query": {"clickhouse-tracing"}},
	} {
		r := render(t, sets[set])
		for component, secrets := range want {
			if got := mountedSecrets(workloadNamed(t, r, fullName+"-"+component)); !slices.Equal(got, secrets) {
				t.Errorf("%s: %s mounts %v, want %v", set, component, got, secrets)
			}
		}
	}
}

func mountedSecrets(w workload) (names []string) {
	for _, v := range w.template.Spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				names = append(names, source.Secret.Name)
			}
		}
	}
	return names
}

// The status page of a query service shows every collector and ingester at its admin port.
func TestKafkaPeers(t *testing.T) {
	r := render(t, valueFiles(t)["kafka"])
	peers := printed(t, r, "query").Extensions["query"]["peers"].(map[string]any)["endpoints"].([]any)
	if len(peers) != 6 {
		t.Errorf("peers %v, want three collectors and three ingesters", peers)
	}
	for _, component := range []string{"collector", "ingester"} {
		w := workloadNamed(t, r, fullName+"-"+component)
		service := find[*corev1.Service](t, r, w.name+"-headless")
		for i := range w.replicas {
			want := fmt.Sprintf("http://%s-%d.%s:%d", w.name, i, service.Name, namedPort(w, "admin").ContainerPort)
			if !slices.Contains(peers, any(want)) {
				t.Errorf("peers %v do not contain %s", peers, want)
			}
		}
	}
}
