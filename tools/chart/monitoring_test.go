package chart_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const monitoringFolder = "../../deploy/monitoring"

// The PrometheusRule has the alerts of deploy/monitoring, and the labels by which Prometheus
// selects it.
func TestPrometheusRule(t *testing.T) {
	r := render(t, valueFiles(t)["split"])
	rule := find[*monitoringv1.PrometheusRule](t, r, fullName)
	var want monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(readFile(t, monitoringFolder, "alerts.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Groups) == 0 || !reflect.DeepEqual(rule.Spec, want) {
		t.Errorf("%d groups differ from the %d groups of alerts.yaml", len(rule.Spec.Groups), len(want.Groups))
	}
	if rule.Labels["release"] != "prometheus" {
		t.Errorf("labels %v", rule.Labels)
	}
}

// Each dashboard is a config map with the label by which the sidecar of Grafana selects it.
func TestDashboards(t *testing.T) {
	r := render(t, parse(t, "metrics: {dashboards: {enabled: true, annotations: {grafana_folder: Tracing}}}"))
	found := map[string]string{}
	for _, m := range all[*corev1.ConfigMap](r) {
		if m.Labels["grafana_dashboard"] != "1" {
			continue
		}
		if m.Annotations["grafana_folder"] != "Tracing" {
			t.Errorf("%s: annotations %v", m.Name, m.Annotations)
		}
		for name, text := range m.Data {
			found[name] = text
		}
	}
	files, err := filepath.Glob(filepath.Join(monitoringFolder, "dashboards", "*.json"))
	if err != nil || len(files) == 0 || len(files) != len(found) {
		t.Fatalf("%d dashboards in config maps, want %d (%v)", len(found), len(files), err)
	}
	for _, file := range files {
		var got, want any
		text := found["tracing-"+filepath.Base(file)]
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := json.Unmarshal([]byte(readFile(t, file)), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s differs from the dashboard in its config map (%v)", file, err)
		}
	}
}

// A checkout without symbolic links has a file monitoring instead of the folder. The chart does not
// leave out its alerts and dashboards then.
func TestMonitoringWithoutFiles(t *testing.T) {
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	c.Files = []*chart.File{{Name: "monitoring", Data: []byte("../../monitoring")}}
	if _, err := renderChart(t, c, nil, "v1.34.0"); err != nil {
		t.Errorf("without alerts and dashboards: %v", err)
	}
	for name, file := range map[string]string{"prometheusRule": "alerts.yaml", "dashboards": "dashboards/*.json"} {
		_, err := renderChart(t, c, parse(t, "metrics: {"+name+": {enabled: true}}"), "v1.34.0")
		want := "the chart has no monitoring/" + file + "; check out the repository with symbolic links"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// Alerts and dashboards are objects of their own only if the values ask for them.
func TestNoMonitoringByDefault(t *testing.T) {
	for _, o := range render(t, nil).objects {
		if filepath.Base(o.file) == "monitoring.yaml" {
			t.Errorf("%s is rendered by default", o)
		}
	}
}
