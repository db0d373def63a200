package demo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// users is the number of users of the shop.
const users = 400

// Shop simulates the services. It is not safe for concurrent use.
type Shop struct {
	ctx      context.Context // without a span
	rate     float64         // requests of users per second
	seed     uint64
	deployed time.Time // of the first bad version
	ids      *ids
	tracer   func(resource []attribute.KeyValue) trace.Tracer

	instances map[string][]*instance // by service, and the bad versions of payment by version
	mails     []message              // orders for which no mail was sent
	requests  int
}

// newShop returns a shop whose instances get their tracers from a function.
func newShop(o *Options, deployed time.Time, ids *ids, tracer func([]attribute.KeyValue) trace.Tracer) *Shop {
	s := &Shop{ctx: context.Background(), rate: o.Rate, seed: o.Seed, deployed: deployed, ids: ids, tracer: tracer,
		instances: make(map[string][]*instance)}
	for _, svc := range services() {
		s.instances[svc.name] = s.deploy(svc, svc.version)
	}
	return s
}

// deploy creates the instances of a service in a version.
func (s *Shop) deploy(svc service, version string) []*instance {
	all := make([]*instance, svc.instances)
	for i := range all {
		all[i] = &instance{svc.name, version, s.tracer(describe(svc, version, i))}
	}
	return all
}

// pick returns the instance of a service that handles a request at a time.
func (s *Shop) pick(name string, r *request, at time.Time) *instance {
	all := s.instances[name]
	i := r.random.IntN(len(all))
	if version := release(s.deployed, at); name == payment && version != "" && i < badInstances {
		if all = s.instances[version]; all == nil {
			all = s.deploy(service{payment, version, badInstances}, version)
			s.instances[version] = all
		}
	}
	return all[i]
}

// second simulates the requests that begin in the second after a time, which is a whole second. Its
// spans depend on the seed, the second, and the messages of earlier seconds.
func (s *Shop) second(at time.Time) {
	random := rand.New(rand.NewPCG(s.seed, uint64(at.Unix())))
	s.ids.random = random
	offsets := make([]float64, poisson(random, s.rate))
	for i := range offsets {
		offsets[i] = random.Float64()
	}
	slices.Sort(offsets)
	for _, offset := range offsets {
		r := &request{shop: s, random: random, user: fmt.Sprintf("u-%d", 1000+random.IntN(users))}
		r.tier = pick(r, tiers)
		r.visit(at.Add(time.Duration(offset * float64(time.Second))))
		s.requests++
	}
	if at.Unix()%mailEvery == 0 {
		s.mail(at, random)
	}
}

// poisson returns a random number of events with the mean rate.
func poisson(random *rand.Rand, rate float64) (n int) {
	const most = 100 // exp(-most) is not 0
	for ; rate > most; rate -= most {
		n += poisson(random, most)
	}
	for p := random.Float64(); p > math.Exp(-rate); p *= random.Float64() {
		n++
	}
	return n
}
