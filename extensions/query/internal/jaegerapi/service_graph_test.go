package jaegerapi

import (
	"math"
	"reflect"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestDetailedLinks(t *testing.T) {
	edges := []tracestore.Edge{{Parent: "a", Child: "a", Calls: 9}, {Parent: "a", Child: "b", Calls: 1, Errors: 1, Duration: 1999},
		{Parent: "a", Child: "b", Messaging: true, Calls: 2, Duration: math.MaxUint64}}
	peers := []tracestore.Edge{{Parent: "a", Child: "a", Calls: 9}, {Parent: "a", Child: "b", Calls: 3},
		{Parent: "a", Child: "b", Messaging: true, Calls: 4, Errors: 1}, {Parent: "b", Child: "<c>", Calls: 5}}
	plain := `{"parent":"a","child":"b","callCount":1,"errorCount":1,"durationSum":1,"connectionType":""}`
	messages := `{"parent":"a","child":"b","callCount":2,` +
		`"errorCount":0,"durationSum":18446744073709551,"connectionType":"messaging_system"}`
	peer := `{"parent":"a","child":"b","callCount":7,"errorCount":1,"durationSum":0,"connectionType":"virtual_node"}`
	other := `{"parent":"b","child":"<c>","callCount":5,"errorCount":0,"durationSum":0,"connectionType":"virtual_node"}`
	for service, want := range map[string][]string{"": {plain, messages, peer, other}, "a": {plain, messages, peer},
		"<c>": {other}, "d": nil} {
		var got []string
		for _, l := range detailedLinks(edges, peers, service) {
			got = append(got, string(l.appendJSON(nil)))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("of %q:\n got %v\nwant %v", service, got, want)
		}
	}
}
