package query

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// askWorld explains the failed, or the slowest, traces of a world.
func askWorld(t *testing.T, w *explainedWorld) explained {
	shop := &explainedShop{traces: w.traces}
	if w.slow {
		return askExplain(t, explainShop(t, shop), "sel_min", w.slowest(0.05).String())
	}
	return askExplain(t, explainShop(t, shop), "sel_q", "{ error }")
}

// places returns the places of the planted inputs in the list, from 0 on, in ascending order; those
// that are not listed are last.
func (w *explainedWorld) places(got *explained) (places []int) {
	for i := range w.causes {
		p := &w.causes[i]
		at := slices.IndexFunc(got.Attributes.Lines, func(l explainedLine) bool {
			is := func(field, value string) bool { return field == p.field && (value == p.value || p.value == "") }
			return is(l.Field, l.Value) || slices.ContainsFunc(l.Same, func(s explainedName) bool { return is(s.Field, s.Value) })
		})
		if at < 0 {
			at = 99
		}
		places = append(places, at)
	}
	slices.Sort(places)
	return places
}

// inputs returns the lines that name an input.
func (e *explained) inputs() (out []string) {
	for _, l := range e.Attributes.Lines {
		if l.Kind != "outcome" {
			out = append(out, l.Field+"="+l.Value)
		}
	}
	return out
}

// TestExplainFindsPlantedInputs checks that the planted input is in the first line of the
// attributes, for causes of several kinds, that make requests slow or fail.
func TestExplainFindsPlantedInputs(t *testing.T) {
	soak.SkipIfRaced(t)
	seeds := uint64(soak.Rounds(t, 2, 1))
	runs, first, missing := 0, 0, 0
	for n, kind := range plantedKinds() {
		for _, slow := range []bool{false, true} {
			for seed := range seeds {
				if testing.Short() && slow == (n%2 == 0) {
					continue
				}
				w := newExplainedWorld(100*uint64(n)+seed, kind, slow, 2500)
				got := askWorld(t, w)
				attributes, _, _ := got.names()
				places := w.places(&got)
				runs++
				if places[0] == 0 {
					first++
				}
				if places[len(places)-1] > 2 {
					missing++
				}
				t.Logf("%-12s slow %-5t seed %d: lines %v of %q", kind, slow, seed, places, attributes)
			}
		}
	}
	t.Logf("the planted input is in line 1 in %d of %d runs; an input is not in the first three lines in %d", first, runs, missing)
	if 10*first < 9*runs || 10*missing > runs {
		t.Error("too few")
	}
}

// TestExplainClaimsNothingWithoutCause checks that no input is listed if none matters.
func TestExplainClaimsNothingWithoutCause(t *testing.T) {
	soak.SkipIfRaced(t)
	seeds := uint64(soak.Rounds(t, 10, 3))
	runs, claims := 0, 0
	for seed := range seeds {
		for _, slow := range []bool{false, true} {
			w := newExplainedWorld(9000+seed, "", slow, 2500)
			got := askWorld(t, w)
			runs++
			if inputs := got.inputs(); len(inputs) > 0 {
				claims++
				t.Logf("slow %t, seed %d: %s", slow, seed, strings.Join(inputs, ", "))
			}
		}
	}
	t.Logf("inputs are claimed in %d of %d runs", claims, runs)
	if claims > runs/20 {
		t.Error("too many")
	}
}

// TestExplainCounts checks that the numbers of all traces are exact although only some of them are
// examined, and that the slowest 5 % are 5 %.
func TestExplainCounts(t *testing.T) {
	const traces = 2000
	w := newExplainedWorld(1, "version", false, traces)
	h := explainShop(t, &explainedShop{traces: w.traces})
	all := askExplain(t, h, "sel_q", "{ error }")
	for _, selection := range [][]string{{"sel_slowest", "0.05"}, {"sel_q", "{ error }"}} {
		want := all.Selected.Traces
		if selection[0] == "sel_slowest" {
			want = traces / 20
		}
		for _, examined := range []string{"40", "2000"} {
			got := askExplain(t, h, append(selection, "traces", examined)...)
			if got.Selected.Estimated != want || got.Rest.Estimated != traces-want || !got.Selected.Exact || !got.Rest.Exact {
				t.Errorf("%s of %s: %+v and %+v, want %d of %d", selection, examined, got.Selected, got.Rest, want, traces)
			}
		}
	}
}
