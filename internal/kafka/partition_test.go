package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMurmur2 compares with the vectors of Kafka's Java client (UtilsTest.testMurmur2).
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

// TestPartitionOf compares with the partitioner of the client library for keyed records.
func TestPartitionOf(t *testing.T) {
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("spans")
	for _, key := range []string{"", "a", "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736", "checkout"} {
		for _, n := range []int{1, 3, 12, 100} {
			if got, want := PartitionOf([]byte(key), n), theirs.Partition(&kgo.Record{Key: []byte(key)}, n); int(got) != want {
				t.Errorf("%q of %d: %d, want %d", key, n, got, want)
			}
		}
	}
}
