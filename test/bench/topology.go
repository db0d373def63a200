package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// service is one of the 40 services. It serves operations to the tiers above it, calls services of
// the tiers below it, and may have a database.
type service struct {
	name       string
	noun       string // the entity that it manages
	tier       int
	operations []string
	instances  []int // indexes in Dataset.resources
	callees    []int // indexes in Dataset.services
}

// tiers returns the services of each tier as `service:noun`, from the edge inwards.
func tiers() [][]string {
	return [][]string{
		{"web-gateway:page", "mobile-gateway:screen", "partner-gateway:feed"},
		{"storefront:shelf", "checkout:order", "account:profile", "helpdesk:ticket", "back-office:report", "search:query", "wishlist:wish"},
		{"basket:basket", "catalogue:product", "pricing:price", "promotions:coupon", "inventory:stock", "shipping:parcel", "returns:return",
			"payments:payment", "invoicing:invoice", "reviews:review", "recommendations:suggestion", "loyalty:point", "addresses:address"},
		{"identity:user", "sessions:session", "ledger:entry", "warehouse:bin", "carriers:route", "suppliers:supplier", "fraud-check:score",
			"tax:rate", "translations:phrase", "images:image", "audit:record"},
		{"mail-sender:mail", "sms-sender:message", "card-acquirer:charge", "exchange-rates:currency", "geo-coder:place",
			"document-store:document"},
	}
}

func topology(r *rand.Rand) ([]service, []Resource) {
	var services []service
	for tier, names := range tiers() {
		for _, n := range names {
			name, noun, _ := strings.Cut(n, ":")
			services = append(services, service{name: name, noun: noun, tier: tier,
				operations: operations(name, noun, tier)})
		}
	}
	var resources []Resource
	for i := range services {
		s := &services[i]
		for n := range 2 + min(i%4, 1) {
			s.instances = append(s.instances, len(resources))
			resources = append(resources, instance(s, i, n, r))
		}
		s.callees = callees(services, i)
	}
	return services, resources
}

// operations returns five operations: HTTP routes in the two outer tiers, RPC methods in the
// others.
func operations(name, noun string, tier int) []string {
	if tier < 2 {
		p := "/" + noun + "s"
		return []string{"GET " + p, "GET " + p + "/{id}", "POST " + p, "PUT " + p + "/{id}", "DELETE " + p + "/{id}"}
	}
	var ops []string
	title := strings.ToUpper(noun[:1]) + noun[1:]
	for _, verb := range []string{"Get", "List", "Create", "Update", "Check"} {
		ops = append(ops, name+"."+title+"s/"+verb+title)
	}
	return ops
}

// callees returns three services of the next two tiers. It distributes the services of these tiers
// over their callers in round-robin order, so that every service has a caller.
func callees(services []service, caller int) []int {
	var below []int
	position := 0 // of the caller in its tier
	for i := range services {
		switch t := services[i].tier - services[caller].tier; {
		case t == 0 && i < caller:
			position++
		case t == 1 || t == 2:
			below = append(below, i)
		}
	}
	var out []int
	for n := range min(3, len(below)) {
		out = append(out, below[(3*position+n)%len(below)])
	}
	return out
}

func instance(s *service, index, n int, r *rand.Rand) Resource {
	languages := []string{"go", "java", "python", "nodejs", "dotnet"}
	pod := fmt.Sprintf("%s-%08x-%05x", s.name, r.Uint32(), r.Uint32()>>12)
	text := func(k, v string) otlpdata.KeyValue { return otlpdata.KeyValue{Key: k, Value: otlpdata.StringValue(v)} }
	return Resource{Service: s.name, Attributes: []otlpdata.KeyValue{
		text("service.name", s.name),
		text("service.namespace", "shop"),
		text("service.version", fmt.Sprintf("%d.%d.%d", 1+s.tier, index, n)),
		text("service.instance.id", fmt.Sprintf("%016x", r.Uint64())),
		text("deployment.environment.name", "production"),
		text("telemetry.sdk.language", languages[index%len(languages)]),
		text("host.name", fmt.Sprintf("node-%02d", r.IntN(24))),
		text("k8s.pod.name", pod),
	}}
}
