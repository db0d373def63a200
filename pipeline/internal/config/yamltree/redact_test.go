package yamltree_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// redacted returns a message about the key at path of a configuration that includes value.
func redacted(t *testing.T, yaml, value, path, msg string) string {
	t.Helper()
	tree, problems := yamltree.Load(files(yaml), &yamltree.Expander{
		LookupEnv: func(string) (string, bool) { return value, true },
		ReadFile:  func(string) ([]byte, error) { return []byte(value), nil },
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	problems = yamltree.Problems{{Path: path, Msg: msg}}
	tree.Redact(problems)
	return problems[0].Msg
}

// Messages of other modules cut values, quote them and are about the block above.
func TestMessagesDoNotQuotePartsOfIncludedValues(t *testing.T) {
	const value = "hunter2-S3cr3tPassw0rd"
	for _, msg := range []string{
		"invalid syntax at 1:29 near `-S3cr3tPas`", "invalid syntax near `3tPassw0rd)`", `invalid syntax near "k, -S3cr3tPas"`,
		"bad a-hunter2x; near `-S3cr3tPas`", "ends at `preS3cr3tPassw0rd`",
	} {
		for path, isHidden := range map[string]bool{
			"processors.transform.statements.0": true, "processors.transform.statements": true, "processors.transform": true, "processors": true,
			"": true, "processors.other": false, "processors.trans": false,
		} {
			got := redacted(t, `processors: {transform: {statements: ['set(k, ${VALUE})']}}`, value, path, msg)
			shown := !strings.HasPrefix(got, "has a problem that is not shown") || strings.ContainsAny(got, "3-")
			if isHidden == shown || !isHidden && got != msg {
				t.Errorf("%s: %s: %s", path, msg, got)
			}
		}
	}
}

// Addresses and numbers are shown. The content of a file is a secret unless it is a number, a
// boolean or a duration, and so is what has the form of a user and a password.
func TestMessagesQuoteAddresses(t *testing.T) {
	for value, shown := range map[string][2]bool{ // of a variable, of a file
		"admin:12345": {}, "correct.horse": {}, "127.0.0.1:hunter2": {}, "a.b:hunter2": {}, "hunter2": {}, "host.example:123456": {},
		"collector.internal:4317": {true, false}, "localhost:4317": {true, false}, "localhost": {true, false}, "127.0.0.1": {true, false},
		"[2001:db8::1]:4317": {true, false}, "2001:db8::1": {true, false}, ":12345": {true, false},
		"1234567": {true, true}, "-100h30m": {true, true}, "false": {true, true}, "1.5e300": {true, true},
	} {
		for i, ref := range []string{"${VALUE}", "${file:/value}"} {
			got := redacted(t, `service: {name: '`+ref+`'}`, value, "service.name", "cannot use "+value+" here")
			if strings.Contains(got, value) != shown[i] {
				t.Errorf("%s as %s: %s", value, ref, got)
			}
		}
	}
	for ref, secret := range map[string]string{"${file:/value}:4317": "correct.horse", "x${file:/value}.internal:4317": "correct.horse"} {
		whole := strings.ReplaceAll(ref, "${file:/value}", secret)
		if got := redacted(t, `service: {name: '`+ref+`'}`, secret, "service", "cannot use "+whole+" here"); strings.Contains(got, "correct") {
			t.Errorf("%s with %s: %s", ref, secret, got)
		}
	}
}
