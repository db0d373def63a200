package migrate

import (
	"strings"
	"testing"
)

// edited returns text after an edit, and fails the test if it cannot be read or written.
func edited(t *testing.T, text string, edit func(d *document)) string {
	t.Helper()
	d, err := newDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	edit(d)
	out, err := d.render()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The order, the comments and the quotes of the input survive. Notes are above the lines that they
// are about, also if that line is gone, or part of a list on one line.
func TestNotes(t *testing.T) {
	got := edited(t, `# my collector
receivers:
  otlp: # from applications
    protocols: {grpc: {endpoint: "${env:HOST}:4317"}, http: }
  kafka:
    topic: spans

exporters:
  # where traces go
  old/a:
    gone: 1
  nop:
service:
  extensions: [x]
  pipelines:
    traces: {receivers: [otlp, kafka], exporters: [nop, old/a]}
`, func(d *document) {
		d.renameComponent(exporters, "old/a", "new/a")
		d.root.block(exporters, "new/a").drop("gone", "a reason that is so long that it does not fit on one line, because it explains "+
			"all of the circumstances")
		d.dropComponent(receivers, "kafka", "no queue")
		d.root.block(receivers, "otlp").note(decide, "protocols", "which one?")
		d.root.block("service").drop(extensions, "none")
		d.root.ensure("service").set("data_dir", "./data")
	})
	want := `# my collector
receivers:
  otlp: # from applications
    # decide: which one?
    protocols:
      grpc: {endpoint: "${env:HOST}:4317"}
      http:
  # dropped: kafka: no queue

exporters:
  # changed: new/a was old/a
  # where traces go
  new/a:
    # dropped: gone: a reason that is so long that it does not fit on one line, because it explains
    #   all of the circumstances
  nop:

service:
  # dropped: extensions: none
  pipelines:
    traces:
      # dropped: kafka
      receivers: [otlp]
      # changed: new/a was old/a
      exporters: [nop, new/a]
  data_dir: ./data
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Aliases and merges are written out, so that one use can be changed without another.
func TestAliases(t *testing.T) {
	got := edited(t, "a: &base {x: 1, y: &list [1, 2]}\nb: {<<: *base, x: 3}\nc: *list\n", func(d *document) {
		d.root.block("b").drop("y", "unused")
	})
	want := "a: {x: 1, y: [1, 2]}\nb:\n  x: 3\n  # dropped: y: unused\nc: [1, 2]\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Input that is not usable has an error that says why.
func TestUnusableInput(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "input is empty",
		"a: [":                  "not valid YAML: line 1: did not find expected node content",
		"- a":                   "input must be a map of sections such as receivers, exporters and service",
		"a: 1\n---\nb: 2\n":     "no configuration in 2 YAML documents: a; b",
		"a: 1\nb: 1\na: 2\n":    `line 3: duplicate key "a"`,
		"? [a, b]\n: 1\n":       "line 1: keys must be words",
		"a: &a [*a]\n":          "input too large: more than 20000 values, 64 levels or 16 MiB of text",
		"a: {<<: [1]}\n":        "line 1: << needs an alias of a map, or a list of such aliases",
		"service: {}\nx: *gone": "not valid YAML: unknown anchor 'gone' referenced",
	} {
		_, err := Migrate(Input{From: OtelCol, Source: []byte(text)})
		if err == nil || err.Error() != want && err.Error() != "line 1: "+want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A format that is not recognized has the reason in its error.
func TestUnrecognizedInput(t *testing.T) {
	for text, want := range map[string]string{
		"hello":        "format not recognized: input must be a map of sections such as receivers, exporters and service; ",
		"a: 1":         "format not recognized: no sections such as receivers, exporters and service; ",
		"a: &a [*a]\n": "format not recognized: line 1: input too large: more than 20000 values, 64 levels or 16 MiB of text; ",
	} {
		_, err := Migrate(Input{From: Auto, Source: []byte(text)})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
