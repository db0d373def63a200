package uiapi

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestChooseStep(t *testing.T) {
	f := func(length time.Duration, columns int, want time.Duration) {
		t.Helper()
		if got := chooseStep(length, columns); got != want {
			t.Errorf("%s in %d columns: step %s, want %s", length, columns, got, want)
		}
		if n := int64(length/chooseStep(length, columns)) + 2; n > int64(columns)+1 && columns > 1 {
			t.Errorf("%s in %d columns: up to %d", length, columns, n)
		}
	}
	const day = 24 * time.Hour
	f(time.Hour, 120, time.Minute)
	f(time.Hour, 2000, time.Minute)
	f(14*time.Minute, 120, 10*time.Second)
	f(15*time.Minute, 2, 15*time.Minute)
	f(time.Second, 120, 10*time.Millisecond)
	f(0, 120, 1)
	f(1, 1, 1)
	f(6*time.Hour, 120, 5*time.Minute)
	f(30*day, 120, 12*time.Hour)
	f(365*day, 100, 4*day)
	f(290*365*day, 2000, 53*day)
}

// The longest possible time range has steps as well.
func TestLongestHeatmap(t *testing.T) {
	for _, columns := range []int{1, 2, 120, 2000} {
		if step := chooseStep(math.MaxInt64, columns); step <= 0 || math.MaxInt64/step > time.Duration(columns) {
			t.Errorf("%d columns: step %s", columns, step)
		}
	}
	h := api(t, querytest.FilledMemory(t, querytest.Shop()))
	if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/heatmap?start=0&end=9223372036854775807"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
