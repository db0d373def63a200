package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// validate checks that the files and folders exist that a configuration names, and says which key
// names a missing one.
func TestValidateChecksFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	harness.SelfSigned(t, dir)
	pem, err := filepath.Glob(at("*.pem"))
	if err != nil || len(pem) == 0 {
		t.Fatal(pem, err)
	}
	write("users", "a:b\n")
	write("strategies.json", "{}")
	if err := os.Mkdir(at("web"), 0o700); err != nil {
		t.Fatal(err)
	}
	yaml := strings.ReplaceAll(`receivers:
  otlp:
    protocols:
      http:
        endpoint: localhost:0
        tls:
          cert_file: CERT
          key_file: CERT
        auth:
          htpasswd_file: DIR/users
exporters:
  disk:
    directory: DIR/new/store
  disk/unused:
    directory: DIR/users/store
extensions:
  query:
    storage: disk
    http: {endpoint: "localhost:0"}
    ui:
      path: DIR/web
  sampling:
    file:
      path: DIR/strategies.json
service:
  data_dir: DIR/data
  extensions: [query, sampling]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
`, "CERT", pem[0])
	user := regexp.MustCompile("user .*:")
	check := func(yaml string, wantCode int, want ...string) {
		t.Helper()
		write("c.yaml", strings.ReplaceAll(yaml, "DIR", dir))
		code, _, stderr := inprocess.RunCommand(t, "validate", "--config", at("c.yaml"))
		var lines []string
		for _, l := range strings.Split(strings.TrimSpace(stderr), "\n") {
			if !strings.HasPrefix(l, "warning: ") && l != "" {
				lines = append(lines, user.ReplaceAllString(strings.ReplaceAll(l, dir+"/", ""), "user USER:"))
			}
		}
		if code != wantCode || !reflect.DeepEqual(lines, want) {
			t.Errorf("exit code %d:\n%s\nwant %d:\n%s", code, strings.Join(lines, "\n"), wantCode, strings.Join(want, "\n"))
		}
	}
	check(yaml, 0)
	if _, err := os.Stat(at("data")); !os.IsNotExist(err) {
		t.Errorf("validate created data_dir: %v", err)
	}
	advice := "configure another folder (--data-dir, TRACING_DATA_DIR or service.data_dir)"
	wrong := func(folder string) string {
		return "; folder " + folder + ", user USER: remove the file that is in the way, or " + advice
	}
	check(strings.NewReplacer("key_file: "+pem[0], "key_file: DIR/no.pem", "users\n", "web\n", "DIR/new/store", "DIR/users/store",
		"DIR/web\n", "DIR/users\n", "strategies.json", "none.json", "DIR/data", "DIR/strategies.json").Replace(yaml), 2,
		"c.yaml:8:21: receivers.otlp.protocols.http.tls.key_file: cannot read no.pem: no such file or directory",
		"c.yaml:10:26: receivers.otlp.protocols.http.auth.htpasswd_file: web is a folder, not a file",
		"c.yaml:13:16: exporters.disk.directory: cannot use users/store: not a directory"+wrong("users/store"),
		"c.yaml:21:13: extensions.query.ui.path: users is not a folder",
		"c.yaml:24:13: extensions.sampling.file.path: cannot read none.json: no such file or directory",
		"c.yaml:26:13: service.data_dir: cannot use strategies.json: not a folder: strategies.json"+wrong("strategies.json"))
	check(strings.ReplaceAll(yaml, "DIR/strategies.json", "http://localhost:1/strategies.json"), 0)
}

// Every key that names a file or folder is checked by validate.
func TestPathsHaveTags(t *testing.T) {
	named := regexp.MustCompile(`(_file|_dir|directory)$`)
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if f.Type.Kind() == reflect.String && named.MatchString(f.Tag.Get("yaml")) && f.Tag.Get("path") == "" {
					t.Errorf("%s.%s: key %s has no tag path", typ, f.Name, f.Tag.Get("yaml"))
				}
				walk(f.Type)
			}
		}
	}
	for _, f := range tracing.Components() {
		walk(reflect.TypeOf(f.Defaults()))
	}
	if len(seen) < 30 {
		t.Errorf("found %d types", len(seen))
	}
}
