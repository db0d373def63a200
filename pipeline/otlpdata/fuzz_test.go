package otlpdata

import (
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func TestQuirks(t *testing.T) {
	accepted, all := 0, quirks()
	var strict []string // requests that pdata accepts
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			if checkAgainstPdata(t, b) {
				accepted++
			} else if ptraceotlp.NewExportRequest().UnmarshalProto(b) == nil {
				strict = append(strict, name)
			}
		})
	}
	slices.Sort(strict)
	want := []string{"array with group", "field 2^29+5", "field 2^30+5", "field 2^31-1", "field 2^32+5", "group beside a resource",
		"group empty", "group ends another", "group in resource spans", "group nested", "group of groups", "group with text, no end",
		"old field at 2^32", "resource in 2^32+1", "varint beyond 64"}
	if !slices.Equal(strict, want) {
		t.Errorf("of the requests that pdata accepts, we reject\n%q, not\n%q", strict, want)
	}
	if accepted < len(all)/3 || accepted > len(all)*3/4 {
		t.Errorf("%d of %d requests were accepted; the list should have many valid and many invalid ones", accepted, len(all))
	}
}

// FuzzFromOTLP compares with pdata, see checkAgainstPdata.
func FuzzFromOTLP(f *testing.F) {
	for _, b := range quirks() {
		f.Add(b)
	}
	f.Add(sample(3))
	f.Fuzz(func(t *testing.T, b []byte) { checkAgainstPdata(t, b) })
}
