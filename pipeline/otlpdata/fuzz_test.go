package otlpdata

import "testing"

func TestQuirks(t *testing.T) {
	accepted, all := 0, quirks()
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			if checkAgainstPdata(t, b) {
				accepted++
			}
		})
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
