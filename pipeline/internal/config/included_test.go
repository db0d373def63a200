package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// An included file or variable that lands in a field where it is not valid is not quoted, whatever
// the mistake.
func TestMessagesDoNotQuoteIncludedValues(t *testing.T) {
	const secret = "hunter2-S3cr3tPassw0rd"
	file := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(file, []byte("root:x:0:0:"+secret+":/root\nother:"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"${env:SECRET}", "${SECRET}", "${file:" + file + "}", "prefix ${SECRET}", "https://u:${SECRET}@h\\nx/"} {
		for key, yaml := range map[string]string{
			"duration":     `service: {stop_timeout: "REF"}`,
			"bool":         `service: {watch: REF}`,
			"whole number": `service: {limits: {connections: REF}}`,
			"size":         `service: {limits: {inflight: "REF"}}`,
			"enum":         `service: {telemetry: {logs: {level: "REF"}}}`,
			"block":        `service: {telemetry: "REF"}`,
			"list":         `service: {extensions: "REF"}`,
			"id":           `service: {extensions: ["REF"]}`,
			"reference":    `service: {pipelines: {traces: {receivers: ["REF"], exporters: ["REF"]}}}`,
			"unknown key":  `service: {nothing: "REF"}`,
			"section":      `nothing: "REF"`,
			"whole":        `"REF"`,
			"component":    `receivers: "REF"`,
		} {
			_, err := config.Load(config.Options{Files: []string{"a.yaml"}, LookupEnv: func(name string) (string, bool) {
				return secret, name == "SECRET"
			}, ReadFile: func(name string) ([]byte, error) {
				if name == "a.yaml" {
					return []byte(strings.ReplaceAll(yaml, "REF", ref)), nil
				}
				return os.ReadFile(name)
			}})
			if err == nil {
				t.Errorf("%s, %s: no error", key, ref)
				continue
			}
			for _, part := range []string{"hunter2", "S3cr3t", "root:x", "Passw0rd"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%s, %s: %v", key, ref, err)
					break
				}
			}
		}
	}
}
