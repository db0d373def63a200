package bench

import (
	"hash/fnv"
	"math/rand/v2"
)

// profile is what the spans of one operation have in addition to the attributes of their
// instrumentation. In real programs an operation is one piece of code. Therefore the operation
// determines the keys of a span here, too, except for a few variants.
type profile struct {
	always    []int // attributes of every span, as arguments of builder.extra
	sometimes []int // attributes of some spans, with the probabilities in optionalShares
	events    int   // number of events of a span that has events
}

// optionalShares are the probabilities of the attributes in profile.sometimes: n means one span in
// n.
var optionalShares = [...]int{2, 4}

// profile returns the profile of the operation of s, which depends on the service, the name, the
// kind and the scope.
func (d *Dataset) profile(service int, s *Span) profile {
	h := fnv.New64a()
	h.Write([]byte(d.services[service].name))
	h.Write([]byte{byte(s.Kind), byte(s.Scope)})
	h.Write([]byte(s.Name))
	r := rand.New(rand.NewPCG(d.seed, h.Sum64()))
	const maxAlways = 4
	always := max(r.IntN(maxAlways+1), r.IntN(maxAlways+1), r.IntN(maxAlways+1)) // high numbers are more likely
	sometimes := max(0, r.IntN(2*len(optionalShares))-1)                         // none for half of the operations
	extras := r.Perm(extraCount)
	return profile{extras[:always], extras[always : always+sometimes], 1 + r.IntN(2)}
}
