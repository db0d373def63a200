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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkGolden compares got with a file in testdata.
func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", file), got)
}

// Every mistake is told with its place and what to do.
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
		if _, err = readStrategies(filepath.Base(file), text); err == nil {
			t.Errorf("%s: no mistake is found", file)
		}
		fmt.Fprintf(&all, "%v\n\n", err)
	}
	checkGolden(t, "bad.golden", all.String())
}

// A value takes much more memory than text, so that a file of nothing but values is not read to its end. The shortest strategies are.
func TestManyValues(t *testing.T) {
	for _, many := range []string{strings.Repeat("0,", 1<<20), "[" + strings.Repeat("0,", 1<<20)} {
		_, err := readStrategies("s.json", []byte("["+many+"0"+strings.Repeat("]", 1+strings.Count(many, "["))))
		if err == nil || !strings.HasSuffix(err.Error(), "another kind of file") {
			t.Errorf("%v", err)
		}
	}
	var short []string
	for i := range 20_000 {
		short = append(short, fmt.Sprintf(`{"operation":"%d","type":"probabilistic","param":0}`, i))
	}
	table := tableOf(t, `{"default_strategy":{"type":"probabilistic","param":0,"operation_strategies":[`+strings.Join(short, ",")+`]}}`)
	if n := len(table.other.strategy.Operations.Each); n != len(short) {
		t.Errorf("%d operations of %d", n, len(short))
	}
}

// table reads strategies that have no mistakes.
func tableOf(t *testing.T, text string) *table {
	t.Helper()
	f, err := readStrategies("s.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newTable(f, 0.001)
}

// Every rule by which a service gets its strategy.
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

// A file may say nothing, of all services or of the others.
func TestBuiltIn(t *testing.T) {
	for text, rule := range map[string]string{
		"null":                      "no entry of s.json fits, and it has no default_strategy: the built-in probability holds",
		"\xEF\xBB\xBF{}":            "no entry of s.json fits, and it has no default_strategy: the built-in probability holds",
		`{"default_strategy":null}`: "no entry of s.json fits, and it has no default_strategy: the built-in probability holds",
		`{"service_strategies":null, "default_strategy": {"type": "ratelimiting", "param": 5.0}}`: "default_strategy: the service has no entry of its own",
	} {
		if e := tableOf(t, text).of("a"); e.rule != rule {
			t.Errorf("%s: %s, %s", text, e.strategy, e.rule)
		}
	}
}

// What a service was told before and is told now has held since it was told first.
func TestDates(t *testing.T) {
	const cart = `{"service": "cart", "type": "probabilistic", "param": 0.5}`
	monday, tuesday := time.Unix(1, 0), time.Unix(2, 0)
	before, after := tableOf(t, `{"service_strategies": [`+cart+`]}`),
		tableOf(t, `{"default_strategy": {"type": "probabilistic", "param": 1}, "service_strategies": [{"service": "same", "type": "probabilistic", "param": 0.001}, `+cart+`]}`)
	before.date(nil, monday)
	after.date(before, tuesday)
	for service, want := range map[string]time.Time{"cart": monday, "same": monday, "other": tuesday} {
		if got := after.of(service).since; !got.Equal(want) {
			t.Errorf("%s: since %v, want %v", service, got, want)
		}
	}
}

// Any text is strategies that clients can be told, or mistakes with places.
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
		file, err := readStrategies("s.json", text)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "s.json:") {
					t.Errorf("a line of the error has no place: %q", line)
				}
			}
			return
		}
		if !json.Valid(text) && !strings.HasPrefix(string(text), "\xEF\xBB\xBF") {
			t.Errorf("no JSON, and no mistake")
		}
		table := newTable(file, 0.001)
		for service, e := range table.services {
			if _, err := json.Marshal(e.strategy); err != nil {
				t.Errorf("%q cannot be told %s: %v", service, e.strategy, err)
			}
		}
	})
}
