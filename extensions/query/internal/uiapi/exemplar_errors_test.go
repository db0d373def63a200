package uiapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// Failed exemplars say what failed, if that is requested.
func TestErrorTypesOfExemplars(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "web")
	querytest.AddSpan(ss, pcommon.TraceID{15: 1}, 1, 0, "fine", 0)
	for i, message := range []string{"order 17 failed", "", ""} {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: byte(2 + i)}, 1, 0, fmt.Sprint("op ", i), time.Duration(1+i)*time.Second)
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(message)
		if i == 1 {
			e := s.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.type", "Timeout")
		}
	}
	h := api(t, querytest.FilledMemory(t, td))
	target := fmt.Sprintf("/api/ui/v1/heatmap?start=%d&end=%d&errorTypes=1", querytest.Start.UnixNano(), querytest.Noon.UnixNano())
	w := querytest.Ask(t, h, http.MethodGet, target)
	var a struct {
		Data struct {
			Exemplars struct{ Name, ErrorType []string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	got := make(map[string]string)
	for i, name := range a.Data.Exemplars.Name {
		got[name] = a.Data.Exemplars.ErrorType[i]
	}
	for name, want := range map[string]string{"fine": "", "op 0": "order <n> failed", "op 1": "Timeout", "op 2": ""} {
		if have, ok := got[name]; !ok || have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
}
