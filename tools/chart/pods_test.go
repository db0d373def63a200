package chart_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// All pods comply with the Pod Security Standard "restricted", so that they run in namespaces that
// enforce it.
func TestPodsAreRestricted(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		for _, w := range workloads(r) {
			if got := violations(t, w.template.ObjectMeta.Annotations, &w.template.Spec); got != "" {
				t.Errorf("%s: %s", w.name, got)
			}
		}
		canary := find[*corev1.Pod](t, r, fullName+"-canary")
		if got := violations(t, nil, &canary.Spec); got != "" {
			t.Errorf("canary: %s", got)
		}
	})
}

// Ports and folders of nodes need more rights, which is why they are off by default.
func TestAgentOnNode(t *testing.T) {
	r := render(t, parse(t, "agent: {enabled: true, hostPorts: true, queueHostPath: /var/lib/tracing-agent}"))
	agent := workloadNamed(t, r, fullName+"-agent")
	got := violations(t, nil, &agent.template.Spec)
	for _, want := range []string{"hostPort", "hostPath"} {
		if !strings.Contains(got, want) {
			t.Errorf("violations %q do not contain %s", got, want)
		}
	}
	for _, p := range agent.template.Spec.Containers[0].Ports {
		if published := p.HostPort == p.ContainerPort; published != (p.Name != "admin") {
			t.Errorf("port %s: published: %v", p.Name, published)
		}
	}
}

// violations returns how a pod violates the standard, or "".
func violations(t *testing.T, annotations map[string]string, spec *corev1.PodSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	meta := corev1.PodTemplateSpec{}.ObjectMeta
	meta.Annotations = annotations
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &meta, spec))
	return result.ForbiddenDetail()
}

// The root file system is read-only, the tokens of the cluster are not mounted, and the variables
// that Kubernetes sets for services, which are also flags, are off.
func TestPods(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		for _, w := range workloads(r) {
			spec, c := w.template.Spec, w.template.Spec.Containers[0]
			if !*c.SecurityContext.ReadOnlyRootFilesystem || *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks {
				t.Errorf("%s: %+v", w.name, spec)
			}
			find[*corev1.ServiceAccount](t, r, spec.ServiceAccountName)
			if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" ||
				namedPort(w, c.ReadinessProbe.HTTPGet.Port.StrVal) == nil || namedPort(w, c.LivenessProbe.HTTPGet.Port.StrVal) == nil {
				t.Errorf("%s: probes %v, %v", w.name, c.ReadinessProbe, c.LivenessProbe)
			}
			if got := *spec.TerminationGracePeriodSeconds; got < c.Lifecycle.PreStop.Sleep.Seconds+stopTimeout {
				t.Errorf("%s may be killed after %d s, before it has stopped", w.name, got)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: resources %v", w.name, c.Resources)
			}
		}
	})
}

const stopTimeout = 30 // service.stop_timeout, in seconds

// Versions of Kubernetes without a sleep before the stop get none.
func TestOldKubernetes(t *testing.T) {
	r, err := tryRender(t, nil, "v1.27.3")
	if err != nil {
		t.Fatal(err)
	}
	if c := workloadNamed(t, r, fullName+"-all-in-one").template.Spec.Containers[0]; c.Lifecycle != nil {
		t.Errorf("lifecycle %v", c.Lifecycle)
	}
}

func TestImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for values, want := range map[string]string{
		"{}":                       "tracing:dev",
		"image: {tag: 1.2.3}":      "tracing:1.2.3",
		"image: {tag: \"1.2\"}":    "tracing:1.2",
		"image: {repository: a/b}": "a/b:dev",
		"image: {repository: a/b, tag: 1.2.3, digest: \"" + digest + "\"}": "a/b@" + digest,
		"{image: {tag: 1.2.3}, allInOne: {debug: true}}":                   "tracing-debug:1.2.3",
	} {
		got := workloadNamed(t, render(t, parse(t, values)), fullName+"-all-in-one").template.Spec.Containers[0].Image
		if got != want {
			t.Errorf("%s: image %s, want %s", values, got, want)
		}
	}
}

// A component under a debugger has no probes, and the debugger listens on the loopback address,
// which only port-forward reaches.
func TestDebug(t *testing.T) {
	r := render(t, parse(t, "{mode: split, query: {debug: true}}"))
	c := workloadNamed(t, r, fullName+"-query").template.Spec.Containers[0]
	if c.ReadinessProbe != nil || c.LivenessProbe != nil {
		t.Errorf("probes %v, %v", c.ReadinessProbe, c.LivenessProbe)
	}
	image := readFile(t, "../../deploy/docker/Dockerfile.debug")
	for _, word := range c.Command {
		if original := strings.Replace(word, "127.0.0.1", "", 1); !strings.Contains(image, `"`+original+`"`) {
			t.Errorf("the entry point of Dockerfile.debug does not contain %q", original)
		}
	}
	if !strings.Contains(strings.Join(c.Command, " "), "--listen=127.0.0.1:12345") || !strings.Contains(r.notes, "port-forward deployment/") {
		t.Errorf("command %v\n%s", c.Command, r.notes)
	}
	if other := workloadNamed(t, r, fullName+"-collector").template.Spec.Containers[0]; len(other.Command) != 0 {
		t.Errorf("the collector runs %v", other.Command)
	}
}

// Everything that the values of a component offer arrives in its pod.
func TestPodValues(t *testing.T) {
	values := `
extraArgs: [--log-level, debug]
env: [{name: A, value: b}]
envFrom: [{secretRef: {name: s}}]
podAnnotations: {note: text}
podLabels: {team: x}
nodeSelector: {disk: ssd}
tolerations: [{key: k, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
priorityClassName: high
extraVolumes: [{name: tls, secret: {secretName: tls}}]
extraVolumeMounts: [{name: tls, mountPath: /etc/tls}]
`
	all := parse(t, withKafka("brokers: [k:9092]"))
	maps.Copy(all, parse(t, "{imagePullSecrets: [{name: p}], commonLabels: {all: \"1\"}}"))
	for _, component := range []string{"collector", "ingester", "query", "agent"} {
		all[component] = parse(t, values)
	}
	all["agent"].(map[string]any)["enabled"] = true
	list := workloads(render(t, all))
	if len(list) != 4 {
		t.Errorf("%d workloads, want 4", len(list))
	}
	for _, w := range list {
		spec, c := w.template.Spec, w.template.Spec.Containers[0]
		last := c.VolumeMounts[len(c.VolumeMounts)-1]
		for what, ok := range map[string]bool{
			"args":         strings.HasSuffix(strings.Join(c.Args, " "), "--log-level debug"),
			"env":          c.Env[len(c.Env)-1].Name == "A",
			"envFrom":      len(c.EnvFrom) == 1 && c.EnvFrom[0].SecretRef.Name == "s",
			"annotations":  w.template.Annotations["note"] == "text",
			"labels":       w.template.Labels["team"] == "x" && w.template.Labels["all"] == "1",
			"nodeSelector": spec.NodeSelector["disk"] == "ssd",
			"tolerations":  len(spec.Tolerations) == 1,
			"affinity":     spec.Affinity != nil && spec.Affinity.NodeAffinity != nil,
			"spread":       len(spec.TopologySpreadConstraints) == 1,
			"priority":     spec.PriorityClassName == "high",
			"secrets":      spec.ImagePullSecrets[0].Name == "p",
			"mounts":       last.Name == "tls" && last.MountPath == "/etc/tls",
		} {
			if !ok {
				t.Errorf("%s: %s is not in the pod: %+v", w.name, what, w.template)
			}
		}
	}
}

// A pod keeps its spans in a claim, or in a folder with the size of the claim.
func TestPersistence(t *testing.T) {
	r := render(t, parse(t, "allInOne: {persistence: {size: 70Gi, storageClassName: fast}}"))
	set := find[*appsv1.StatefulSet](t, r, fullName+"-all-in-one")
	claim := set.Spec.VolumeClaimTemplates[0]
	if claim.Name != "data" || claim.Spec.Resources.Requests.Storage().String() != "70Gi" || *claim.Spec.StorageClassName != "fast" {
		t.Errorf("claim %+v", claim)
	}
	r = render(t, parse(t, "allInOne: {persistence: {size: 70Gi, enabled: false}}"))
	set = find[*appsv1.StatefulSet](t, r, fullName+"-all-in-one")
	data := set.Spec.Template.Spec.Volumes[1]
	if len(set.Spec.VolumeClaimTemplates) != 0 || data.Name != "data" || data.EmptyDir.SizeLimit.String() != "70Gi" {
		t.Errorf("volumes %+v", set.Spec.Template.Spec.Volumes)
	}
}

// No replicas are possible, for example to stop the intake while a volume is restored.
func TestNoReplicas(t *testing.T) {
	values := parse(t, withKafka("brokers: [k:9092]"))
	names := []string{"collector", "ingester", "query"}
	for _, name := range names {
		values[name] = map[string]any{"replicas": 0}
	}
	r := render(t, values)
	for _, name := range names {
		if w := workloadNamed(t, r, fullName+"-"+name); w.replicas != 0 {
			t.Errorf("%s has %d replicas", name, w.replicas)
		}
	}
}

// A changed configuration changes no pod if it is reloaded, and restarts the pods otherwise.
func TestReload(t *testing.T) {
	template := func(values string) corev1.PodTemplateSpec {
		return workloadNamed(t, render(t, parse(t, values)), fullName+"-all-in-one").template
	}
	const level = "allInOne: {config: {service: {telemetry: {logs: {level: debug}}}}}"
	const strategies = "sampling: {strategies: {default_strategy: null}}"
	for _, change := range []string{level, strategies} {
		if !reflect.DeepEqual(template("{}"), template("{"+change+"}")) {
			t.Errorf("%s changes the pod", change)
		}
		if reflect.DeepEqual(template("{reload: false}"), template("{reload: false, "+change+"}")) {
			t.Errorf("%s does not change the pod without reload", change)
		}
	}
}
