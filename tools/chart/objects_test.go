package chart_test

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names and labels are valid, and no two objects have the same name.
func TestNames(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		seen := map[string]bool{}
		for _, o := range r.objects {
			if seen[o.String()] {
				t.Errorf("%s: two objects are %s", o.file, o)
			}
			seen[o.String()] = true
			for _, problem := range validation.IsDNS1035Label(o.meta.GetName()) {
				t.Errorf("%s: %s", o, problem)
			}
			for _, key := range []string{"name", "instance", "version", "managed-by"} {
				if o.meta.GetLabels()["app.kubernetes.io/"+key] == "" {
					t.Errorf("%s has no label app.kubernetes.io/%s", o, key)
				}
			}
			checkLabels(t, o.String(), o.meta.GetLabels())
		}
		for _, w := range workloads(r) {
			checkLabels(t, w.name, w.template.Labels)
		}
	})
}

func checkLabels(t *testing.T, of string, set map[string]string) {
	t.Helper()
	for key, value := range set {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			t.Errorf("%s: label %s: %s", of, key, problem)
		}
	}
}

// A selector selects the pods of its own workload and no others.
func TestSelectors(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		for _, w := range workloads(r) {
			selector, err := metav1.LabelSelectorAsSelector(w.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := selected(r, selector); len(got) != 1 || got[0].name != w.name {
				t.Errorf("selector of %s selects %v", w.name, got)
			}
		}
		for _, b := range all[*policyv1.PodDisruptionBudget](r) {
			checkSelectsOne(t, r, b.Name, b.Spec.Selector)
		}
		for _, p := range all[*networkingv1.NetworkPolicy](r) {
			checkSelectsOne(t, r, p.Name, &p.Spec.PodSelector)
		}
	})
}

func checkSelectsOne(t *testing.T, r release, name string, s *metav1.LabelSelector) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := selected(r, selector); len(got) != 1 || got[0].name != name {
		t.Errorf("%s selects %v", name, got)
	}
}

func selected(r release, s labels.Selector) (found []workload) {
	for _, w := range workloads(r) {
		if s.Matches(labels.Set(w.template.Labels)) {
			found = append(found, w)
		}
	}
	return found
}

// Every port of a service is a port of its pods, with the same protocol. Each port of a pod is
// offered by a service, and admitted by the network policy.
func TestPorts(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		offered := map[string]bool{}
		for _, s := range all[*corev1.Service](r) {
			pods := selected(r, labels.SelectorFromSet(s.Spec.Selector))
			if len(pods) != 1 {
				t.Fatalf("service %s selects %v", s.Name, pods)
			}
			for _, p := range s.Spec.Ports {
				c := namedPort(pods[0], p.TargetPort.StrVal)
				if c == nil || c.ContainerPort != p.Port || c.Protocol != p.Protocol {
					t.Errorf("service %s: port %v is not a port of %s: %v", s.Name, p, pods[0].name, c)
				}
				offered[pods[0].name+" "+p.TargetPort.StrVal] = true
			}
		}
		for _, w := range workloads(r) {
			policy := find[*networkingv1.NetworkPolicy](t, r, w.name)
			for _, p := range w.template.Spec.Containers[0].Ports {
				if !offered[w.name+" "+p.Name] {
					t.Errorf("no service offers port %s of %s", p.Name, w.name)
				}
				if len(peers(policy, int(p.ContainerPort), p.Protocol)) != 1 {
					t.Errorf("the network policy of %s does not have one rule for port %s", w.name, p.Name)
				}
				for _, problem := range validation.IsValidPortName(p.Name) {
					t.Errorf("%s: port %q: %s", w.name, p.Name, problem)
				}
			}
		}
	})
}

func namedPort(w workload, name string) *corev1.ContainerPort {
	for _, p := range w.template.Spec.Containers[0].Ports {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// peers returns the peers of each rule for a port; no peers are all peers.
func peers(p *networkingv1.NetworkPolicy, port int, protocol corev1.Protocol) (lists [][]networkingv1.NetworkPolicyPeer) {
	for _, rule := range p.Spec.Ingress {
		for _, admitted := range rule.Ports {
			if *admitted.Port == intstr.FromInt(port) && *admitted.Protocol == protocol {
				lists = append(lists, rule.From)
			}
		}
	}
	return lists
}

// Only query services reach the store of a collector; the admin ports are for the pods of the
// release and the configured peers.
func TestRestrictedPorts(t *testing.T) {
	r := render(t, valueFiles(t)["split"])
	collector := find[*networkingv1.NetworkPolicy](t, r, fullName+"-collector")
	query := labels.Set(workloadNamed(t, r, fullName+"-query").template.Labels)
	agent := labels.Set(workloadNamed(t, r, fullName+"-agent").template.Labels)
	for _, c := range []struct {
		port         int
		peers        int
		query, agent bool
	}{
		{17271, 1, true, false},
		{14269, 2, true, true},
		{4317, 0, true, true}, // all
	} {
		lists := peers(collector, c.port, corev1.ProtocolTCP)
		if len(lists) != 1 || len(lists[0]) != c.peers {
			t.Fatalf("port %d: peers %v, want %d", c.port, lists, c.peers)
		}
		if got := admits(t, lists[0], query); got != c.query {
			t.Errorf("port %d: query services are admitted: %v", c.port, got)
		}
		if got := admits(t, lists[0], agent); got != c.agent {
			t.Errorf("port %d: agents are admitted: %v", c.port, got)
		}
	}
}

// admits reports whether one of from admits a pod of the same namespace with these labels.
func admits(t *testing.T, from []networkingv1.NetworkPolicyPeer, pod labels.Set) bool {
	t.Helper()
	for _, peer := range from {
		if peer.PodSelector == nil || peer.NamespaceSelector != nil {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if s.Matches(pod) {
			return true
		}
	}
	return len(from) == 0
}

// Peers for spans and queries restrict the ports, but never the release itself: agents, and the pod
// of helm test.
func TestPeers(t *testing.T) {
	values := valueFiles(t)["split"]
	values["networkPolicy"] = parse(t, `
intakeFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]
queryFrom: [{ipBlock: {cidr: 10.1.0.0/16}}]
adminFrom: []
`)
	r := render(t, values)
	canary := labels.Set(find[*corev1.Pod](t, r, fullName+"-canary").Labels)
	for name, ports := range map[string][]int{"collector": {4317, 4318, 14250, 14268}, "query": {16685, 16686}} {
		policy := find[*networkingv1.NetworkPolicy](t, r, fullName+"-"+name)
		for _, port := range ports {
			from := peers(policy, port, corev1.ProtocolTCP)[0]
			if len(from) != 2 || !admits(t, from, canary) || admits(t, from, labels.Set{"app": "other"}) {
				t.Errorf("%s: port %d: peers %v", name, port, from)
			}
		}
	}
	admin := peers(find[*networkingv1.NetworkPolicy](t, r, fullName+"-agent"), 14271, corev1.ProtocolTCP)[0]
	if len(admin) != 1 || admits(t, admin, labels.Set{"app": "other"}) {
		t.Errorf("admin port: peers %v", admin)
	}
}

// Every mounted volume exists, and every config map is the one of the component.
func TestVolumes(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		for _, w := range workloads(r) {
			volumes := map[string]bool{}
			for _, v := range w.template.Spec.Volumes {
				volumes[v.Name] = true
				if v.ConfigMap != nil {
					find[*corev1.ConfigMap](t, r, v.ConfigMap.Name)
				}
			}
			for _, claim := range w.claims {
				volumes[claim.Name] = true
			}
			mounts := w.template.Spec.Containers[0].VolumeMounts
			for _, m := range mounts {
				if !volumes[m.Name] {
					t.Errorf("%s mounts %s, which does not exist", w.name, m.Name)
				}
			}
			if len(mounts) != len(volumes) {
				t.Errorf("%s has %d volumes and mounts %d", w.name, len(volumes), len(mounts))
			}
		}
		for _, s := range all[*appsv1.StatefulSet](r) {
			if governing := find[*corev1.Service](t, r, s.Spec.ServiceName); governing.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("the governing service of %s is not headless", s.Name)
			}
		}
	})
}

// Each mode has the workloads and optional objects that have an effect in it, and no others.
func TestObjectsOfModes(t *testing.T) {
	sets := valueFiles(t)
	want := map[string][]string{
		"defaults":   {"StatefulSet obs-tracing-all-in-one"},
		"all-in-one": {"StatefulSet obs-tracing-all-in-one", "Ingress obs-tracing-query"},
		"split": {"StatefulSet obs-tracing-collector", "Deployment obs-tracing-query", "DaemonSet obs-tracing-agent",
			"PodDisruptionBudget obs-tracing-query", "ServiceMonitor obs-tracing-agent", "ServiceMonitor obs-tracing-collector",
			"ServiceMonitor obs-tracing-query", "PrometheusRule obs-tracing"},
		"clickhouse": {"StatefulSet obs-tracing-collector", "Deployment obs-tracing-query",
			"PodDisruptionBudget obs-tracing-collector", "PodDisruptionBudget obs-tracing-query"},
		"kafka": {"StatefulSet obs-tracing-collector", "StatefulSet obs-tracing-ingester", "Deployment obs-tracing-query",
			"PodDisruptionBudget obs-tracing-collector", "PodDisruptionBudget obs-tracing-ingester",
			"PodDisruptionBudget obs-tracing-query", "ServiceMonitor obs-tracing-collector", "ServiceMonitor obs-tracing-ingester",
			"ServiceMonitor obs-tracing-query", "PrometheusRule obs-tracing"},
	}
	for name, list := range want {
		wanted := map[string]bool{}
		for _, o := range list {
			wanted[o] = true
		}
		for _, o := range render(t, sets[name]).objects {
			switch o.Object.(type) {
			case *corev1.Service, *corev1.ConfigMap, *corev1.ServiceAccount, *corev1.Pod, *networkingv1.NetworkPolicy:
			default:
				if !wanted[o.String()] {
					t.Errorf("%s: unexpected %s", name, o)
				}
				delete(wanted, o.String())
			}
		}
		for missing := range wanted {
			t.Errorf("%s: no %s", name, missing)
		}
	}
}

// A service monitor selects one service, whose port it names, and sets the job that alerts and
// dashboards expect.
func TestServiceMonitors(t *testing.T) {
	sets := valueFiles(t)
	for _, name := range []string{"split", "kafka"} {
		t.Run(name, func(t *testing.T) { checkServiceMonitors(t, render(t, sets[name])) })
	}
}

func checkServiceMonitors(t *testing.T, r release) {
	t.Helper()
	for _, m := range all[*monitoringv1.ServiceMonitor](r) {
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		var services []string
		for _, s := range all[*corev1.Service](r) {
			if selector.Matches(labels.Set(s.Labels)) {
				services = append(services, s.Name)
			}
		}
		if len(services) != 1 || services[0] != m.Name+"-headless" {
			t.Errorf("%s selects the services %v", m.Name, services)
		}
		endpoint := m.Spec.Endpoints[0]
		job := endpoint.RelabelConfigs[0]
		if endpoint.Port != "admin" || job.TargetLabel != "job" || *job.Replacement != "tracing-"+m.Labels["app.kubernetes.io/component"] {
			t.Errorf("%s: endpoint %+v", m.Name, endpoint)
		}
		if m.Labels["release"] != "prometheus" {
			t.Errorf("%s has the labels %v", m.Name, m.Labels)
		}
	}
}
