package migrate

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/app"
)

// notReadable matches the errors about text that is not a configuration file at all.
var notReadable = regexp.MustCompile(`not valid YAML|second YAML document|duplicate key|keys must be|the file must have|too large`)

// Any input has a clear error, or becomes YAML that the program reads, with a bounded size.
func FuzzMigrate(f *testing.F) {
	files, err := filepath.Glob("../../../testdata/foreign/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		if b, err := os.ReadFile(file); err == nil && filepath.Ext(file) != ".golden" {
			f.Add(uint8(i), b)
		}
	}
	for _, text := range []string{
		"a: &a {b: *a}", "? [a]\n: 1", "a: !!binary aGk=\nservice: {pipelines: {traces: }}", "service:\n  extensions: jaeger_storage\n",
		"extensions: {jaeger_storage: {backends: {x: {badger: [1]}}}, jaeger_query: [1], remote_sampling: x}\nservice: {pipelines: [1]}",
		"exporters: {kafka: , jaeger_storage_exporter: 1}\nreceivers: {kafka: }\n" +
			"service: {pipelines: {traces: {receivers: kafka, exporters: [kafka]}}}",
		"connectors: {jaeger_storage_writer: {trace_storage: x}}\nextensions: {jaeger_storage: {memory: {x: }}}\nservice: {pipelines: {}}",
		"kind: ConfigMap\ndata: {a: \"service: {pipelines: {traces: {}}}\"}\n", "# c\n\n# d\nservice: {pipelines: }\n# e\n",
		"--span-storage.type=badger", "SPAN_STORAGE_TYPE=elasticsearch\nES_SERVER_URLS=http://es:9200\n",
	} {
		for from := range uint8(4) {
			f.Add(from, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, from uint8, source []byte) {
		formats := []From{Auto, OtelCol, Jaeger2, Jaeger1}
		result, err := Migrate(Input{From: formats[int(from)%len(formats)], Source: source})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		if limit := 64<<20 + 100*len(source); len(result.YAML) > limit {
			t.Errorf("%d bytes from %d", len(result.YAML), len(source))
		}
		documents := bytes.Split(result.YAML, []byte("\n---\n"))
		if len(documents) < result.Documents {
			t.Errorf("%d documents, want %d", len(documents), result.Documents)
		}
		if result.Documents == 1 {
			documents = [][]byte{result.YAML} // a text in it may have the separator
		}
		if len(documents) > result.Documents {
			return
		}
		for _, d := range documents {
			_, err = app.Load(app.LoadOptions{Files: []string{"output"}, LookupEnv: func(string) (string, bool) { return "", false },
				ReadFile: func(string) ([]byte, error) { return d, nil }})
			if err != nil && notReadable.MatchString(err.Error()) {
				t.Errorf("%v\n%s", err, d)
			}
		}
	})
}
