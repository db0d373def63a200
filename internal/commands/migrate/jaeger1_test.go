package migrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestShellWords(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		if got, err := shellWords(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	f("a  --b=c\td\n", "a", "--b=c", "d")
	f(`--a='x "y"' --b="c d" e\ f "" g"h"i`, `--a=x "y"`, "--b=c d", "e f", "", "ghi")
	f("a \\\n  b # comment 'x\n c", "a", "b", "c")
	f("a#b", "a#b")
	if _, err := shellWords("a 'b"); err == nil {
		t.Error("no error for an open quote")
	}
}

func TestInterpolate(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "$$x": "$x", "${A:-b}": "b", "${A-b}c": "bc", "${A:-}": "", "${A}": "${A}", "${A:?x}": "${A:?x}", "p:${V:-1.5}/q": "p:1.5/q",
	} {
		if got := interpolate(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Each spelling of a program is replaced by the same preset.
func TestPresetOf(t *testing.T) {
	for word, want := range map[string]string{
		"jaegertracing/all-in-one:1.57": "all-in-one", "cr.jaegertracing.io/jaegertracing/jaeger-collector": "collector",
		"quay.io/opendevmirror/jaegertracing-all-in-one:1.58.1": "all-in-one", "jaeger-query": "query", "/go/bin/agent-linux": "agent",
		"jaegertracing/jaeger-agent@sha256:ab": "agent", "./jaeger-collector-linux-amd64": "collector", "agent": "agent",
		"jaegertracing/jaeger-ingester": "ingester", "jaegertracing/jaeger-remote-storage:1": "collector",
		"jaegertracing/jaeger:2.5.0": "", "jaegertracing/example-hotrod": "", "--agent": "", "otel/opentelemetry-collector-contrib:1": "",
		"jaegertracing/jaeger-cassandra-schema": "", "my-agent": "",
	} {
		if got, _ := presetOf(word); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

// Flags and variables in a YAML file or of a service work as on a command line.
func TestReadJaeger1(t *testing.T) {
	f := func(text, service, want string) {
		t.Helper()
		parts, err := (&Input{From: Jaeger1, Source: []byte(text), Service: service}).read()
		var got []string
		for _, part := range parts {
			p := part.program
			got = append(got, strings.Join(slices.Concat([]string{p.name, p.preset}, p.environ, p.args), " "))
		}
		if err != nil {
			got = append(got, err.Error())
		}
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("%s: got\n%s\nwant\n%s", text, s, want)
		}
	}
	f("es:\n  tls.enabled: true\n  hosts: [a, b]\nx: 1", "", " all-in-one --es.tls.enabled=true --es.hosts=a,b --x=1")
	f("# c\nexport A=b\n\nB='c d'\n", "", " all-in-one A=b B=c d")
	f("docker run --name jaeger-agent -e A=b jaegertracing/jaeger-query:1 --x", "", " query A=b --x")
	const compose = "services: {a: {image: jaegertracing/jaeger-agent, command: --x 'y z', environment: {A: 1}}, db: {image: db}, " +
		"q: {image: jaegertracing/jaeger-query, environment: [B=2]}}"
	f(compose, "", "a agent A=1 --x y z\nq query B=2")
	f(compose, "q", "q query B=2")
	f(compose, "db", "--service db: input has these configurations: a, q")
	f("services: {db: {image: db}}", "", "compose file has no service with an image of Jaeger 1, such as jaegertracing/all-in-one; "+
		"translate the configuration file of Jaeger 2 by itself")
}

// Any text is either programs with presets of this program, or an error.
func FuzzReadJaeger1(f *testing.F) {
	for _, dir := range []string{"jaeger1", "compose"} {
		files, _ := filepath.Glob("../../../testdata/foreign/" + dir + "/*.[^g]*")
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				f.Add(string(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := (&Input{From: Jaeger1, Source: []byte(text)}).read()
		if err == nil && len(parts) == 0 {
			t.Error("neither programs nor an error")
		}
		for _, p := range parts {
			if !slices.Contains([]string{"all-in-one", "agent", "collector", "ingester", "query"}, p.program.preset) {
				t.Errorf("unknown preset %q", p.program.preset)
			}
		}
		isJaeger1(text)
	})
}
