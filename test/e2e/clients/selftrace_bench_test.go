package clients_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// BenchmarkIntake measures requests with one span through a receiver, a processor and an exporter
// that discards them: with self-tracing off, with a sampler that selects no request, and with
// spans about all requests, which the process receives from itself.
func BenchmarkIntake(b *testing.B) {
	const yaml = `
receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}
processors: {batch: }
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [nop]}}}
`
	body := []byte(userSpan())
	for _, mode := range []string{"off", "always_off", "always_on"} {
		b.Run(mode, func(b *testing.B) {
			p := inprocess.StartYAML(b, yaml)
			url := "http://" + p.OTLPHTTP() + "/v1/traces"
			if mode != "off" {
				const processors = "[{batch: {exporter: {otlp: {protocol: http/protobuf, endpoint: 'http://%s'}}}}]"
				settings := []string{"service::telemetry::traces::sampler={" + mode + ": }",
					"service::telemetry::traces::processors=" + fmt.Sprintf(processors, p.OTLPHTTP())}
				if err := p.App.Reload(b.Context(), inprocess.Options{YAML: yaml, Settings: settings}.Load); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				post(b, url, body)
			}
		})
	}
}

func post(b *testing.B, url string, body []byte) {
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
}
