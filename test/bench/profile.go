package bench

import (
	"hash/fnv"
	"math/rand/v2"
)

// profile says what the spans of one operation have besides the attributes of their instrumentation. As in programs, where every operation
// is one piece of code, the list of a span's keys follows from its operation, with a few variants.
type profile struct {
	always    []int // of extra: every span has them
	sometimes []int // of extra: one span in so many has them as optionalShares says
	events    int   // how many events a span has, if it has any
}

// optionalShares are the probabilities of the attributes in profile.sometimes, as one in so many.
var optionalShares = [...]int{2, 4}

// profile returns that of an operation: what the service does under this name, on this side of a call.
func (d *Dataset) profile(service int, s *Span) profile {
	h := fnv.New64a()
	h.Write([]byte(d.services[service].name))
	h.Write([]byte{byte(s.Kind), byte(s.Scope)})
	h.Write([]byte(s.Name))
	r := rand.New(rand.NewPCG(d.seed, h.Sum64()))
	const most = 4
	always := max(r.IntN(most+1), r.IntN(most+1), r.IntN(most+1)) // rather many
	sometimes := max(0, r.IntN(2*len(optionalShares))-1)          // none for half of the operations
	extras := r.Perm(extraCount)
	return profile{extras[:always], extras[always : always+sometimes], 1 + r.IntN(2)}
}
