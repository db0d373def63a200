package query

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// explained is the part of a response of /api/ui/v1/explain that the tests read.
type explained struct {
	Selected, Rest struct {
		Traces, Estimated int
		Exact             bool
	}
	Attributes struct {
		Tested, Differ int
		Lines          []explainedLine
	}
	Time struct {
		Lines []struct {
			Service, Name, Filter             string
			Selected, Rest, Difference, Share float64
		}
	}
	Shape struct {
		Lines []struct {
			Service, Name, Filter string
			Selected, Rest        struct{ Traces, Calls float64 }
		}
	}
}

// explainedLine is a line of the attributes.
type explainedLine struct {
	Kind, Field, Service, Op, Value, Filter, Exclude string
	Selected, Rest                                   float64
	Traces                                           int
	Same                                             []explainedName
}

type explainedName struct{ Field, Value string }

// names returns the lines of the lists.
func (e *explained) names() (attributes, time, shape []string) {
	for _, l := range e.Attributes.Lines {
		name := l.Field + "=" + l.Value
		for _, s := range l.Same {
			name += " " + s.Field + "=" + s.Value
		}
		attributes = append(attributes, name)
	}
	for _, l := range e.Time.Lines {
		time = append(time, l.Service+" "+l.Name)
	}
	for _, l := range e.Shape.Lines {
		shape = append(shape, l.Service+" "+l.Name)
	}
	return attributes, time, shape
}

// askExplain asks for the explanation of a selection.
func askExplain(t *testing.T, h http.Handler, params ...string) (out explained) {
	t.Helper()
	v := url.Values{"start": {nanosText(-3600)}, "end": {nanosText(0)}}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	w := querytest.Ask(t, h, "GET", "/api/ui/v1/explain?"+v.Encode())
	var answer struct {
		Data   explained
		Errors []struct{ Msg string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || len(answer.Errors) > 0 {
		t.Fatalf("status %d, %v, %v\n%.500s", w.Code, err, answer.Errors, w.Body)
	}
	return answer.Data
}

func nanosText(seconds int) string { return fmt.Sprint(querytest.Noon.UnixNano() + int64(seconds)*1e9) }

// explainShop returns the routes over a shop.
func explainShop(t *testing.T, s *explainedShop) http.Handler {
	h, _ := api(t, querytest.FilledMemory(t, s.traces), func(o *core.Options) {
		o.Limits.Scanned, o.Limits.Aggregated = 1e6, 1e6
	})
	return h
}

// TestExplainPlantedCauses checks that each cause is among the first three lines of the right list.
func TestExplainPlantedCauses(t *testing.T) {
	for _, c := range []struct{ cause, list, line string }{
		{badShard, "attributes", "span.db.shard=7"},
		{slowVersion, "attributes", "resource.service.version=2.14.0"},
		{retryStorm, "shape", "payment POST /v1/charges"},
		{lock, "time", "cart acquire lock"},
		{dependency, "time", "payment POST /v1/charges"},
	} {
		for seed := range uint64(soak.Rounds(t, 3, 1)) {
			shop := newExplainedShop(seed, c.cause, 1500)
			got := askExplain(t, explainShop(t, shop), "sel_min", shop.slowest(0.05).String())
			attributes, time, shape := got.names()
			list := map[string][]string{"attributes": attributes, "time": time, "shape": shape}[c.list]
			at := slices.IndexFunc(list, func(line string) bool { return strings.Contains(line, c.line) })
			t.Logf("%s, seed %d: line %d of %s\nattributes %q\ntime %q\nshape %q", c.cause, seed, at+1, c.list, attributes, time, shape)
			if at < 0 || at > 2 {
				t.Errorf("%s is not in the first three lines", c.line)
			}
		}
	}
}

// TestExplainWithoutCause checks that the lists are short if the selected traces are not special,
// and if they are only the slowest by chance.
func TestExplainWithoutCause(t *testing.T) {
	soak.SkipIfRaced(t)
	const most = 5
	for seed := range uint64(soak.Rounds(t, 10, 4)) {
		shop := newExplainedShop(100+seed, "", 1500)
		h := explainShop(t, shop)
		slowest := shop.slowest(0.05).String()
		for _, selection := range [][]string{{"sel_min", slowest}, {"sel_q", `{ .geo.country = "PL" }`}} {
			got := askExplain(t, h, selection...)
			attributes, time, shape := got.names()
			t.Logf("%s, seed %d: attributes %q, time %q, shape %q", selection, seed, attributes, time, shape)
			if got.Attributes.Tested < 10 || max(len(attributes), len(time), len(shape)) > most {
				t.Errorf("%d keys tested", got.Attributes.Tested)
			}
		}
	}
}
