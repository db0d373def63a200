package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// What is not a regular file, or is too large, is refused without waiting.
func TestFilesThatNeverEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	including := filepath.Join(dir, "including.yaml")
	for name, want := range map[string]string{
		pipe: "is not a regular file", "/dev/zero": "is not a regular file", large: "is larger than 16MiB", dir: "is a folder, not a file",
	} {
		if err := os.WriteFile(including, []byte("service: {data_dir: \"${file:"+name+"}\"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{name, including} {
			if _, err := config.Load(config.Options{Files: []string{file}}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s in %s: %v, want %q", name, file, err, want)
			}
		}
	}
}

// Reading a pipe that is never closed ends with the context, so that a signal ends the process.
func TestReadingEndsWithContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := config.ReadFile(ctx)(fmt.Sprint("/dev/fd/", r.Fd())); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
