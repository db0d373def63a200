package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// comment matches the comment above a pipeline that says where its spans are.
var comment = regexp.MustCompile(`(?m)^\s*#.*\n`)

// ingesterDefaults are the defaults of jaeger-ingester that the preset ingester does not have, as
// docs/migrating/jaeger-1.md says. migrate writes them down.
var ingesterDefaults = []string{
	"KAFKA_CONSUMER_TOPIC=jaeger-spans",
	"KAFKA_CONSUMER_ENCODING=protobuf",
	"KAFKA_CONSUMER_GROUP_ID=jaeger-ingester",
}

// The configuration that migrate prints for flags and variables is the one that the program runs
// with the same flags and variables.
func TestMigratedFlagsAgree(t *testing.T) {
	compared := 0
	for _, in := range corpus(t) {
		var env, args []string
		switch filepath.Ext(in.file) {
		case ".flags":
			env, args = commandLine(in.text)
		case ".env":
			env = variable.FindAllString(in.text, -1)
		default:
			continue
		}
		if slices.Contains(args, "ingester") {
			env = slices.Concat(ingesterDefaults, env)
		}
		direct := in.run(t, env, append([]string{"print-config"}, args...)...)
		if direct.code != 0 {
			continue // not supported, as the golden file of validate says
		}
		migrated := in.run(t, nil, "migrate", filepath.Join(in.dir, in.file))
		file := filepath.Join(t.TempDir(), "migrated.yaml")
		if err := os.WriteFile(file, []byte(migrated.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		printed := in.run(t, nil, "print-config", "--config", file)
		if want, got := tree(t, direct.stdout), tree(t, printed.stdout); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: migrated\n%s\nwith flags\n%s\n%s", in.name(), comment.ReplaceAllString(printed.stdout, ""),
				comment.ReplaceAllString(direct.stdout, ""), printed.stderr)
		}
		compared++
	}
	if compared < 15 {
		t.Errorf("only %d configurations were compared", compared)
	}
}

// tree returns YAML text without the order of its keys.
func tree(t *testing.T, text string) (v any) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(text)).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
