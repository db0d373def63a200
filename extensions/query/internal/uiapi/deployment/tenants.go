package deployment

import (
	"slices"

	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// hiddenFromTenants is why a response is incomplete if requests must name their tenant.
const hiddenFromTenants = "what depends on the data of all tenants together is not shown to tenants"

// hideStatus removes everything that depends on data: counters, errors, and the content of stores.
// It keeps which components run, where they listen, and their limits.
func hideStatus(d *status.Details) {
	hideComponent := func(c *status.Component) { c.Reason, c.Held = "", 0 }
	for i := range d.Report.Pipelines {
		for j := range d.Report.Pipelines[i].Components {
			hideComponent(&d.Report.Pipelines[i].Components[j])
		}
	}
	for i := range d.Report.Beside {
		hideComponent(&d.Report.Beside[i])
	}
	d.Report.Configuration.Problem, d.Configuration = "", ""
	d.Intake.Dropped = 0
	for i, r := range d.Intake.Receivers {
		d.Intake.Receivers[i] = status.Receiver{Component: r.Component, Transport: r.Transport, Addresses: r.Addresses}
	}
	d.Accounts, d.Balances = []status.Account{}, []status.Balance{}
	for i, q := range d.Queues {
		d.Queues[i] = status.Queue{Component: q.Component, Storage: q.Storage, Overflow: q.Overflow, MaxBytes: q.MaxBytes,
			MaxSize: q.MaxSize, Sizer: q.Sizer}
	}
	for i, s := range d.Stores {
		d.Stores[i] = status.Store{Component: s.Component, MaxBytes: s.MaxBytes, Retention: s.Retention,
			Parts: []status.Part{}, Gaps: []status.Gap{}, Expiring: []status.Expiry{}}
	}
	for i, l := range d.Limits {
		d.Limits[i] = status.Limit{Key: l.Key, Max: l.Max}
	}
}

// hideStrategies removes services that no client of the tenant has asked for, because the tenants
// share the strategies of a file.
func hideStrategies(s *processview.Strategies) {
	s.Problems = nil
	for i := range s.Providers {
		p := &s.Providers[i]
		p.Default.Origin.Problem = ""
		if p.Adaptive == nil { // adaptive strategies already belong to the tenant
			p.Services = slices.DeleteFunc(p.Services, func(s sampling.ServiceStrategy) bool { return s.Clients == 0 })
			p.Omitted = 0
		}
		for j := range p.Services {
			p.Services[j].Origin.Problem = ""
		}
	}
}

// hideExplanation removes conditions of processors, which may name services of other tenants.
func hideExplanation(x *processview.Explanation) {
	x.Problems = nil
	for i := range x.Strategies {
		x.Strategies[i].Origin.Problem = ""
	}
	for i := range x.Stages {
		if s := &x.Stages[i]; s.Kind == "processor" {
			s.Rules = nil
		}
	}
}
