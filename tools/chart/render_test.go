package chart_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const (
	chartFolder    = "../../deploy/helm/tracing"
	examplesFolder = "../../deploy/helm/examples"
	releaseName    = "obs"
	namespace      = "observability"
	fullName       = "obs-tracing"
)

// object is a rendered object with the template that it comes from.
type object struct {
	runtime.Object
	meta metav1.Object
	file string
}

func (o object) String() string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + o.meta.GetName()
}

// release is everything that one installation of the chart renders.
type release struct {
	objects []object
	notes   string
}

// render renders the chart with values for a recent version of Kubernetes.
func render(t *testing.T, values map[string]any) release {
	t.Helper()
	r, err := tryRender(t, values, "v1.34.0")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tryRender is like renderChart, with the chart in the repository.
func tryRender(t *testing.T, values map[string]any, kubernetes string) (release, error) {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return renderChart(t, c, values, kubernetes)
}

// renderChart returns the error of a chart or of its schema, as helm install would show it. Objects
// that are not exactly as the API of Kubernetes describes them fail the test.
func renderChart(t *testing.T, c *chart.Chart, values map[string]any, kubernetes string) (release, error) {
	t.Helper()
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = *version
	options := chartutil.ReleaseOptions{Name: releaseName, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, &capabilities)
	if err != nil {
		return release{}, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return release{}, err
	}
	var r release
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			r.notes = files[file]
			continue
		}
		r.objects = append(r.objects, decode(t, file, files[file])...)
	}
	return r, nil
}

var separator = regexp.MustCompile(`(?m)^---$`)

// decode decodes the documents of a file strictly: unknown and repeated fields and wrong types fail
// the test.
func decode(t *testing.T, file, text string) (objects []object) {
	t.Helper()
	decoder := serializer.NewCodecFactory(kubernetesTypes(t), serializer.EnableStrict).UniversalDeserializer()
	for _, document := range separator.Split(text, -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		decoded, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, numbered(document))
		}
		objects = append(objects, object{decoded, decoded.(metav1.Object), file})
	}
	return objects
}

func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+1, line)
	}
	return b.String()
}

func kubernetesTypes(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// valueFiles are the values that most tests render: the values of the chart and of the examples.
func valueFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examplesFolder, "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d value files in %s: %v", len(files), examplesFolder, err)
	}
	sets := map[string]map[string]any{"defaults": {}}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return sets
}

// eachRelease runs test on the release of each of valueFiles.
func eachRelease(t *testing.T, test func(t *testing.T, r release)) {
	t.Helper()
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) { test(t, render(t, values)) })
	}
}

// parse returns the values in a YAML text.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// find returns the object of type T with a name.
func find[T runtime.Object](t *testing.T, r release, name string) T {
	t.Helper()
	found, ok := lookup[T](r, name)
	if !ok {
		t.Fatalf("no %T %s in %v", found, name, r.objects)
	}
	return found
}

func lookup[T runtime.Object](r release, name string) (found T, ok bool) {
	for _, o := range r.objects {
		if found, ok = o.Object.(T); ok && o.meta.GetName() == name {
			return found, true
		}
	}
	return found, false
}

// all returns the objects of type T.
func all[T runtime.Object](r release) (found []T) {
	for _, o := range r.objects {
		if typed, ok := o.Object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// workload is what all kinds of workloads have in common.
type workload struct {
	name     string
	replicas int
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
}

func workloads(r release) (list []workload) {
	for _, s := range all[*appsv1.StatefulSet](r) {
		list = append(list, workload{s.Name, int(*s.Spec.Replicas), s.Spec.Selector, s.Spec.Template, s.Spec.VolumeClaimTemplates})
	}
	for _, d := range all[*appsv1.Deployment](r) {
		list = append(list, workload{d.Name, int(*d.Spec.Replicas), d.Spec.Selector, d.Spec.Template, nil})
	}
	for _, d := range all[*appsv1.DaemonSet](r) {
		list = append(list, workload{d.Name, 1, d.Spec.Selector, d.Spec.Template, nil})
	}
	return list
}

func workloadNamed(t *testing.T, r release, name string) workload {
	t.Helper()
	for _, w := range workloads(r) {
		if w.name == name {
			return w
		}
	}
	t.Fatalf("no workload %s in %v", name, r.objects)
	return workload{}
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
