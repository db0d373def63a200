package column

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// changingVectors returns vectors of strings and codes whose kind changes from time to time, so
// that findings about earlier ones do not hold for later ones.
func changingVectors(r *rand.Rand, n int) (texts [][]string, codes [][]uint32) {
	for i := range 5 * (hintUses + 3) {
		s, c := make([]string, n), make([]uint32, n)
		for j := range n {
			switch i / (hintUses + 3) {
			case 0:
				s[j], c[j] = fmt.Sprintf("id-%016x", r.Uint64()), r.Uint32()
			case 1:
				s[j], c[j] = fmt.Sprint("user ", r.IntN(50)), uint32(r.IntN(50))
			case 2:
				s[j], c[j] = "no digits "+string(rune('g'+j%16)), uint32(j)
			case 3:
				s[j], c[j] = fmt.Sprintf("%06d/%x", j, r.Uint32()), uint32(1<<20+r.IntN(3)<<8)
			default:
				s[j], c[j] = "\x00"+fmt.Sprint(j), 1<<16*uint32(r.IntN(2))
			}
		}
		texts, codes = append(texts, s), append(codes, c)
	}
	return texts, codes
}

// TestHints checks that columns decode correctly with any hint, and that a hint adapts to changed
// values after a few vectors.
func TestHints(t *testing.T) {
	texts, codes := changingVectors(rand.New(rand.NewPCG(7, 8)), 2*minHintValues)
	t.Run("strings", func(t *testing.T) { checkHints(t, texts, (*Encoder).HintedStrings, (*Decoder).Strings) })
	t.Run("codes", func(t *testing.T) { checkHints(t, codes, (*Encoder).HintedCodes, (*Decoder).Codes) })
}

func checkHints[T comparable](t *testing.T, vectors [][]T, encode func(*Encoder, []byte, []T, *Hint) []byte,
	decode func(*Decoder, []byte, []T) error,
) {
	e, d := NewEncoder(Flush), NewDecoder()
	var h Hint
	for i, v := range vectors {
		b := encode(e, nil, v, &h)
		got := make([]T, len(v))
		if err := decode(d, b, got); err != nil || !slices.Equal(got, v) {
			t.Fatalf("vector %d decodes incorrectly: %v", i, err)
		}
		plain := len(encode(e, nil, v, &Hint{}))
		if since := i % (hintUses + 3); since == hintUses+2 && len(b) > plain+plain/20 {
			t.Errorf("vector %d takes %d bytes with a hint, %d without", i, len(b), plain)
		}
	}
}

// TestHintsOfFewValues checks that short vectors do not change a hint.
func TestHintsOfFewValues(t *testing.T) {
	var h Hint
	e := NewEncoder(Flush)
	texts, codes := changingVectors(rand.New(rand.NewPCG(7, 8)), minHintValues-1)
	e.HintedStrings(nil, texts[0], &h)
	if e.HintedCodes(nil, codes[0], &h); h != (Hint{}) {
		t.Errorf("%+v", h)
	}
}
