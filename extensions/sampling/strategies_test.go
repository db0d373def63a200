package sampling

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkGolden compares got with a file in testdata.
func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", file), got)
}

// Each mistake is reported with its position and a hint.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.json")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readStrategies(filepath.Base(file), text, 0.001)
		if f != nil && f.warnings != nil {
			fmt.Fprintf(&all, "warning: %s\n", strings.ReplaceAll(f.warnings.Error(), "\n", "\nwarning: "))
		} else if err == nil {
			t.Errorf("%s: neither a mistake nor a warning", file)
		}
		if err != nil {
			fmt.Fprintln(&all, err)
		}
		fmt.Fprintln(&all)
	}
	checkGolden(t, "bad.golden", all.String())
}

// Values take much more memory than text, so a file with too many values is rejected early. A file
// of the shortest possible strategies is accepted.
func TestManyValues(t *testing.T) {
	soak.SkipIfRaced(t)
	for _, many := range []string{strings.Repeat("0,", 1<<20), "[" + strings.Repeat("0,", 1<<20)} {
		_, err := readStrategies("s.json", []byte("["+many+"0"+strings.Repeat("]", 1+strings.Count(many, "["))), 0)
		if err == nil || !strings.HasSuffix(err.Error(), "check that this is the right file") {
			t.Errorf("%v", err)
		}
	}
	var short []string
	for i := range 20_000 {
		short = append(short, fmt.Sprintf(`{"operation":"%d","type":"probabilistic","param":0}`, i))
	}
	table := tableOf(t, `{"default_strategy":{"type":"probabilistic","param":0,"operation_strategies":[`+strings.Join(short, ",")+`]}}`)
	if n := len(table.other.strategy.Operations.PerOperation); n != len(short) {
		t.Errorf("%d operations of %d", n, len(short))
	}
}

// tableOf parses strategies without mistakes.
func tableOf(t *testing.T, text string) *table {
	t.Helper()
	f, err := readStrategies("s.json", []byte(text), 0.001)
	if err != nil {
		t.Fatal(err)
	}
	return newTable(f, 0.001)
}

// Tests each rule by which a service gets its strategy.
func TestMerging(t *testing.T) {
	text, err := os.ReadFile("testdata/strategies.json")
	if err != nil {
		t.Fatal(err)
	}
	table := tableOf(t, string(text))
	var all strings.Builder
	for _, service := range []string{"cart", "plain", "limited", "silent", "unknown", ""} {
		e := table.of(service)
		b, err := json.Marshal(e.strategy)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%q: %s, %s\n%s\n", service, e.place, e.rule, b)
		for _, operation := range []string{"GET /", "health", "other"} {
			if o, ok := e.operations[operation]; ok {
				fmt.Fprintf(&all, "    %s: %v: %s, %s\n", operation, e.strategy.Sampler(operation).Param, o.place, o.rule)
			}
		}
		all.WriteString("\n")
	}
	for _, ignored := range table.ignored {
		fmt.Fprintf(&all, "ignored: %s\n", ignored)
	}
	checkGolden(t, "merged.golden", all.String())
}

// A file may have no strategies, or no default.
func TestBuiltIn(t *testing.T) {
	for text, rule := range map[string]string{
		"null":                      "no entry in s.json matches, and it has no default_strategy: the built-in probability applies",
		"\xEF\xBB\xBF{}":            "no entry in s.json matches, and it has no default_strategy: the built-in probability applies",
		`{"default_strategy":null}`: "no entry in s.json matches, and it has no default_strategy: the built-in probability applies",
		`{"service_strategies":null, "default_strategy": {"type": "ratelimiting", "param": 5.0}}`: "default_strategy: the service has no entry",
	} {
		if e := tableOf(t, text).of("a"); e.rule != rule {
			t.Errorf("%s: %s, %s", text, e.strategy, e.rule)
		}
	}
}

// Since does not change if a new table has the same strategy for a service.
func TestSince(t *testing.T) {
	const cart = `{"service": "cart", "type": "probabilistic", "param": 0.5}`
	monday, tuesday := time.Unix(1, 0), time.Unix(2, 0)
	before, after := tableOf(t, `{"service_strategies": [`+cart+`]}`),
		tableOf(t, `{"default_strategy": {"type": "probabilistic", "param": 1}, "service_strategies": [{"service": "same", "type": "probabilistic", "param": 0.001}, `+cart+`]}`)
	before.setSince(nil, monday)
	after.setSince(before, tuesday)
	for service, want := range map[string]time.Time{"cart": monday, "same": monday, "other": tuesday} {
		if got := after.of(service).since; !got.Equal(want) {
			t.Errorf("%s: since %v, want %v", service, got, want)
		}
	}
}

// Any text is either valid strategies that can be encoded, or has mistakes with positions.
func FuzzReadStrategies(f *testing.F) {
	files, _ := filepath.Glob("testdata/bad/*.json")
	for _, file := range append(files, "testdata/strategies.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := readStrategies("s.json", text, 0.001)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "s.json:") {
					t.Errorf("error line without position: %q", line)
				}
			}
			return
		}
		if !json.Valid(text) && !strings.HasPrefix(string(text), "\xEF\xBB\xBF") {
			t.Errorf("invalid JSON accepted")
		}
		table := newTable(file, 0.001)
		for service, e := range table.services {
			if _, err := json.Marshal(e.strategy); err != nil {
				t.Errorf("%q: cannot encode %s: %v", service, e.strategy, err)
			}
		}
	})
}
