package config_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// needsEnv matches environment variables without a default, and what is before them if they are an
// address.
var needsEnv = regexp.MustCompile(`(endpoint: )?\$\{(?:env:)?(\w+)\}(:)?`)

// start loads a configuration, builds it, starts it and stops it. Its listeners get free ports, its
// files are in a temporary folder, and variables that it needs have a value.
func start(t *testing.T, yaml string) error {
	env := map[string]string{}
	for _, m := range needsEnv.FindAllStringSubmatch(yaml, -1) {
		env[m[2]] = "1"
		if m[1] != "" && m[3] == "" {
			env[m[2]] = "localhost:1"
		}
	}
	cfg, err := app.Load(app.LoadOptions{
		Factories: tracing.Components(), Files: []string{"migrated.yaml"},
		ReadFile:  func(string) ([]byte, error) { return []byte(yaml), nil },
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		return err
	}
	dir := t.TempDir()
	harness.SelfSigned(t, dir)
	relocate(t, dir, "", reflect.ValueOf(&cfg.Service).Elem(), "")
	for _, c := range cfg.Sorted() {
		relocate(t, dir, c.Key.ID.Type, reflect.ValueOf(c.Value).Elem(), "")
	}
	var log bytes.Buffer
	a, err := app.New(cfg, app.Options{Log: &log})
	if err != nil {
		return err
	}
	if err := a.Start(t.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return a.Stop(ctx)
}

// relocate replaces addresses to listen on by free ports, and names of files by files in dir.
func relocate(t *testing.T, dir, typ string, v reflect.Value, tag reflect.StructTag) {
	if o, ok := v.Addr().Interface().(interface{ Block() (any, bool) }); ok {
		if block, on := o.Block(); on {
			relocate(t, dir, typ, reflect.ValueOf(block).Elem(), tag)
		}
		return
	}
	if _, ok := v.Interface().(pipeline.Endpoint); ok {
		v.SetString("localhost:0")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				relocate(t, dir, typ, v.Field(i), f.Tag)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			relocate(t, dir, typ, v.Index(i), "")
		}
	case reflect.String:
		if tag.Get("path") != "" && v.String() != "" {
			v.SetString(fileFor(t, dir, typ, tag, v.String()))
		}
	}
}

// fileFor returns a file or folder that can take the place of another one.
func fileFor(t *testing.T, dir, typ string, tag reflect.StructTag, name string) string {
	key := tag.Get("yaml")
	content := map[string]string{
		"htpasswd_file": "user:$2y$10$ow2E9rAoZIUBqN9CBkJAkOYdhTHf1bMXRTKcnVYbZ3bXeL3MUFq6a\n", "bearer_tokens_file": "token\n",
		"bearer_token_file": "token\n", "config_file": "{}", "path": `{"default_strategy":{"type":"probabilistic","param":1}}`,
	}[key]
	switch {
	case strings.HasPrefix(name, "http"):
		return name
	case key == "cert_file" || key == "ca_file" || key == "client_ca_file":
		return filepath.Join(dir, "cert.pem")
	case key == "key_file":
		return filepath.Join(dir, "key.pem")
	case tag.Get("path") == "data":
		return filepath.Join(dir, typ, strings.ReplaceAll(name, string(filepath.Separator), "_"))
	case tag.Get("path") == "folder": // of the Jaeger UI
		content = "<!doctype html><head><base href=\"/\"></head>"
		name = filepath.Join(dir, key)
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(name, "index.html"), content)
		return name
	}
	file := filepath.Join(dir, key+filepath.Ext(name))
	writeFile(t, file, content)
	return file
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
