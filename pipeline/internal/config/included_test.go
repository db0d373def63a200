package config_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// wrongPlaces are configurations in which REF is not valid, whatever the mistake.
var wrongPlaces = map[string]string{
	"duration":     `service: {stop_timeout: "REF"}`,
	"unit":         `service: {stop_timeout: "5REF"}`,
	"bool":         `service: {watch: REF}`,
	"whole number": `service: {limits: {connections: REF}}`,
	"size":         `service: {limits: {inflight: "REF"}}`,
	"enum":         `service: {telemetry: {logs: {level: "REF"}}}`,
	"block":        `service: {telemetry: "REF"}`,
	"list":         `service: {extensions: "REF"}`,
	"id":           `service: {extensions: ["REF"]}`,
	"type":         `service: {extensions: ["REF/REF"]}`,
	"reference":    `service: {pipelines: {traces: {receivers: ["REF"], exporters: ["REF"]}}}`,
	"endpoint":     `receivers: {source: {endpoint: "REF"}}`,
	"listener":     `extensions: {hub: {listeners: {a: {endpoint: "REF"}}}}`,
	"unknown key":  `service: {nothing: "REF"}`,
	"section":      `nothing: "REF"`,
	"whole":        `"REF"`,
	"component":    `receivers: "REF"`,
}

// loadIncluding returns the error of a configuration. The environment variable VALUE and the files
// have the given contents.
func loadIncluding(yaml, value string, files map[string]string) error {
	_, err := load(yaml, value, files)
	return err
}

func load(yaml, value string, files map[string]string) (*config.Config, error) {
	return app.Load(app.LoadOptions{Factories: hosttest.NewWorld().Factories(), Files: []string{"a.yaml"},
		LookupEnv: func(name string) (string, bool) { return value, name == "VALUE" },
		ReadFile: func(name string) ([]byte, error) {
			if name == "a.yaml" {
				return []byte(yaml), nil
			}
			return []byte(files[name]), nil
		}})
}

// The running configuration names variables and files, and contains none of their values, however
// short.
func TestPrintRunning(t *testing.T) {
	const yaml = `receivers: {source: {endpoint: "localhost:0"}}
exporters: {sink: }
service: {data_dir: "/x/${VALUE}", stop_timeout: "${file:/timeout}", pipelines: {traces: {receivers: [source], exporters: [sink]}}}`
	c, err := load(yaml, "pw1", map[string]string{"/timeout": "17s"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.PrintRunning(func(config.Pipeline) string { return "in memory" })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"data_dir: /x/${VALUE}", "stop_timeout: ${file:/timeout}", "endpoint: localhost:0",
		"# acknowledged spans are"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "pw1") || strings.Contains(got, "17s") {
		t.Errorf("values of variables and files are shown:\n%s", got)
	}
}

// An included file or variable that lands in a field where it is not valid is not quoted.
func TestMessagesDoNotQuoteIncludedValues(t *testing.T) {
	const secret = "hunter2-S3cr3tPassw0rd"
	files := map[string]string{
		"/passwd": "root:x:0:0:" + secret + ":/root\nother:" + secret + "\n",
		"/json":   `{"password": "` + secret + `"}`,
	}
	for _, ref := range []string{"${env:VALUE}", "${VALUE}", "${NONE:-${VALUE}}", "${file:/passwd}", "${file:/json}",
		"prefix ${VALUE}", "prefix${VALUE}suffix", "1h${VALUE}", "https://u:${VALUE}@h\\nx/"} {
		for place, yaml := range wrongPlaces {
			err := loadIncluding(strings.ReplaceAll(yaml, "REF", ref), secret, files)
			if err == nil {
				t.Errorf("%s, %s: no error", place, ref)
				continue
			}
			for _, part := range []string{"hunter", "S3cr3t", "root:x", "Passw0rd"} {
				if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(part)) {
					t.Errorf("%s, %s: %v", place, ref, err)
					break
				}
			}
		}
	}
}

// A message keeps what cannot be a secret, and what only looks like the value.
func TestMessagesKeepWhatIsNotIncluded(t *testing.T) {
	for _, c := range []struct{ yaml, value, want string }{
		{`receivers: {source/a: {endpoint: "${VALUE}:4317"}, source/b: {endpoint: "${VALUE}:4317"}}
exporters: {sink: }
service: {pipelines: {traces: {receivers: [source/a, source/b], exporters: [sink]}}}`, "collector.internal",
			"receivers.source/b.endpoint: collector.internal:4317 is already used by receivers.source/a.endpoint"},
		{`receivers: {source/a: {endpoint: "${VALUE}"}, source/b: {endpoint: "${VALUE}"}}
exporters: {sink: }
service: {pipelines: {traces: {receivers: [source/a, source/b], exporters: [sink]}}}`, "127.0.0.1:4317",
			"receivers.source/b.endpoint: 127.0.0.1:4317 is already used by receivers.source/a.endpoint"},
		{`service: {limits: {connections: "${VALUE}"}}`, "1.5e300", `service.limits.connections: "1.5e300" is not a whole number`},
		{`service: {stop_timeout: "${VALUE}"}`, "-100h30m", `-100h30m`},
		{`service: {watch: "${VALUE}"}`, "FALSE", `"FALSE" is not true or false`},
		{`service: {extensions: ["${VALUE}"], pipelines: {traces: {receivers: [sourcerer], exporters: [sinking]}}}
receivers: {source/prod: }
exporters: {sink/prod-memory: }`, "prod-memory", `exporter "sinking" is not configured; configured are: sink/prod-memory`},
		{`service: {pipelines: {traces: {receivers: [source], exporters: ["${VALUE}"]}}}
receivers: {source: }
exporters: {sink/production: }`, "production2000-store",
			`exporter "${VALUE}" is not configured; configured are: sink/production`},
		{`service: {telemetry: {logs: {level: "${VALUE}"}}}`, "warnings", `"${VALUE}"`},
	} {
		if err := loadIncluding(c.yaml, c.value, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s\ngot  %v\nwant %s", c.yaml, c.value, err, c.want)
		}
	}
}

func FuzzMessagesDoNotQuoteIncludedValues(f *testing.F) {
	for _, value := range []string{"hunter2-S3cr3tPassw0rd", "a\nS3cr3t::B\t\"", "5mS3cr3tX", "x/S3cr3tY", "S3cr3t%zz@[::1", `\"S3cr3t`} {
		f.Add(value, "p", "")
	}
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		secret = "S3cr3t" + secret
		if strings.Contains(before+after, "cr3t") || strings.ContainsAny(before+after, "'$") || len(secret) > 1000 {
			t.Skip()
		}
		for place, yaml := range wrongPlaces {
			yaml = strings.ReplaceAll(strings.ReplaceAll(yaml, `"REF"`, "REF"), "REF", "'"+before+"${VALUE}"+after+"'")
			if err := loadIncluding(yaml, secret, nil); err != nil && strings.Contains(err.Error(), "S3cr3t") {
				t.Errorf("%s: %v", place, err)
			}
		}
	})
}
