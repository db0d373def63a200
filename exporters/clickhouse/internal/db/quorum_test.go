package db

import "testing"

// TestQuorum checks that the automatic quorum is the majority only if inserts go on without a
// replica.
func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		configured string
		replicas   int
		want       any // setting of an insert; nil: none
	}{
		{"", 0, nil}, {"", 3, nil}, {QuorumAuto, 0, 1}, {QuorumAuto, 1, 1}, {QuorumAuto, 2, 1}, {QuorumAuto, 3, "auto"},
		{QuorumAuto, 5, "auto"}, {"1", 3, 1}, {"2", 2, 2},
	} {
		d := &DB{cfg: Config{InsertQuorum: c.configured}}
		d.SetReplicas(c.replicas)
		if got := d.insertSettings("")["insert_quorum"]; got != c.want {
			t.Errorf("%q with %d replicas: %v, want %v", c.configured, c.replicas, got, c.want)
		}
	}
}
