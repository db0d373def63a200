package uiapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// planted is a service with calls until noon. trouble returns the share of calls that fail, and by
// which factor they are slower, some time before noon; there are no calls if the factor is 0.
type planted struct {
	name    string
	perHour int
	hours   int
	trouble func(before time.Duration) (failing, slower float64)
	// The incident that the responses name, by the length of the range: nothing if it is missing.
	want map[time.Duration]string
}

func failing(share float64, from, to time.Duration) func(time.Duration) (float64, float64) {
	return func(before time.Duration) (float64, float64) {
		if before <= from && before > to {
			return share, 1
		}
		return 0.002, 1
	}
}

func plantedServices() []planted {
	const short, hour, day, week = 15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour
	const m = time.Minute
	always := func(share float64) func(time.Duration) (float64, float64) {
		return func(time.Duration) (float64, float64) { return share, 1 }
	}
	all := func(incident string) map[time.Duration]string {
		return map[time.Duration]string{short: incident, hour: incident, day: incident, week: incident}
	}
	return []planted{
		// Every two hours 40 minutes, also in the hour before the range.
		{"recurring", 600, 26, func(before time.Duration) (float64, float64) {
			if (before-15*m+2*hour)%(2*hour) >= 80*m {
				return 0.33, 1
			}
			return 0.002, 1
		}, all("errors since 15m0s")},
		{"ended", 600, 26, failing(0.33, 50*m, 10*m), all("errors from 50m0s to 10m0s")},
		{"ended earlier", 600, 26, failing(0.33, 5*hour, 4*hour), map[time.Duration]string{
			day: "errors from 5h0m0s to 4h0m0s", week: "errors from 5h0m0s to 4h0m0s"}},
		{"ended days ago", 60, 6 * 24, failing(0.5, 50*hour, 48*hour), map[time.Duration]string{week: "errors from 50h0m0s to 48h0m0s"}},
		{"ended, then three errors", 600, 26, func(before time.Duration) (float64, float64) {
			switch {
			case before <= 50*m && before > 10*m:
				return 0.4, 1
			case before <= 5*m && before > 5*m-18*time.Second:
				return 1, 1
			}
			return 0, 1
		}, all("errors from 50m0s to 10m0s")},
		{"failed, then stopped", 600, 26, func(before time.Duration) (float64, float64) {
			switch {
			case before <= 2*hour:
				return 0, 0
			case before <= 3*hour:
				return 0.3, 1
			}
			return 0, 1
		}, map[time.Duration]string{day: "errors from 3h0m0s to 2h0m0s", week: "errors from 3h0m0s to 2h0m0s"}},
		{"just begun", 600, 26, failing(0.33, 4*m, -1), all("errors since 4m0s")},
		{"long", 600, 26, failing(0.2, 8*hour, -1), all("errors since 8h0m0s")},
		{"total", 600, 26, failing(1, 5*m, -1), all("errors since 5m0s")},
		{"small share", 1200, 26, failing(0.04, 40*m, -1), all("errors since 40m0s")},
		{"slow", 600, 26, func(before time.Duration) (float64, float64) {
			if before <= 20*m {
				return 0, 4
			}
			return 0, 1
		}, all("slow since 20m0s")},
		{"a tail", 600, 26, func(before time.Duration) (float64, float64) {
			if before <= 30*m && before/(6*time.Second)%5 == 0 {
				return 0, 20
			}
			return 0, 1
		}, all("slow since 30m0s")},
		{"young", 600, 1, failing(0.33, 10*m, -1), all("errors since 10m0s")},
		{"nightly", 120, 6 * 24, func(before time.Duration) (float64, float64) {
			if before%day < 30*m {
				return 0.2, 1
			}
			return 0, 1
		}, nil},
		{"nightly outage", 120, 6 * 24, func(before time.Duration) (float64, float64) {
			if before%day < 30*m {
				return 0.6, 1
			}
			return 0, 1
		}, all("errors since 30m0s")},
		{"always some", 600, 26, always(0.1), nil},
		{"quiet", 600, 26, always(0.002), nil},
		{"never", 600, 26, always(0), nil},
		{"always half", 600, 26, always(0.5), all("errors")},
	}
}

func (p *planted) add(td ptrace.Traces, seed int) {
	random := rand.New(rand.NewPCG(7, uint64(seed)))
	ss := querytest.AddService(td, p.name)
	noon := querytest.Noon.Sub(querytest.Start)
	gap := time.Hour / time.Duration(p.perHour)
	for i := 1; i <= p.hours*p.perHour; i++ {
		before := time.Duration(i)*gap - gap/2
		share, slower := p.trouble(before)
		if slower == 0 {
			continue
		}
		s := querytest.AddSpan(ss, pcommon.TraceID{byte(seed + 1), 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}, 1, 0, "op", noon-before)
		s.SetKind(ptrace.SpanKindServer)
		took := time.Duration(slower * float64(time.Millisecond) * (10 + 90*random.Float64()))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(s.StartTimestamp().AsTime().Add(took)))
		if random.Float64() < share {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
	}
}

type incidentJSON struct {
	Kind       string
	Start, End *string
}

// describe names an incident by times before noon, in minutes. Times may be wrong by a few minutes,
// since calls fail by chance: they are those that are wanted if they are not further away.
func (i *incidentJSON) describe(t *testing.T, want string) string {
	t.Helper()
	if i == nil {
		return ""
	}
	times := []time.Duration{}
	for _, n := range []*string{i.Start, i.End} {
		if n != nil {
			ns, err := strconv.ParseInt(*n, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, querytest.Noon.Sub(time.Unix(0, ns)))
		}
	}
	near := func(d time.Duration) string {
		for _, off := range []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute} {
			for _, d := range []time.Duration{d + off, d - off} {
				if slices.Contains(strings.Fields(want), d.String()) {
					return d.String()
				}
			}
		}
		return d.String()
	}
	switch len(times) {
	case 0:
		return i.Kind
	case 1:
		return fmt.Sprintf("%s since %s", i.Kind, near(times[0]))
	}
	return fmt.Sprintf("%s from %s to %s", i.Kind, near(times[0]), near(times[1]))
}

// An incident is named whatever range is asked for, with its start and end, also if there was one
// before. What is always so, or at this time of every day, is not one.
func TestUsual(t *testing.T) {
	td := ptrace.NewTraces()
	services := plantedServices()
	for i := range services {
		services[i].add(td, i)
	}
	h := api(t, querytest.FilledMemory(t, td))
	for _, length := range []time.Duration{15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		got := make(map[string]*incidentJSON)
		w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/services?start=%d&end=%d",
			querytest.Noon.Add(-length).UnixNano(), querytest.Noon.UnixNano()))
		var answer struct {
			Data struct {
				Total struct {
					Usual *struct{ Quiet time.Duration }
				}
				Services []struct {
					Name     string
					Incident *incidentJSON
				}
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %.300s", err, w.Body)
		}
		if u := answer.Data.Total.Usual; u == nil || u.Quiet < 12*time.Hour || u.Quiet > 24*time.Hour {
			t.Errorf("range of %s: usual of all services: %+v", length, u)
		}
		for _, s := range answer.Data.Services {
			got[s.Name] = s.Incident
		}
		for _, p := range services {
			if is, want := got[p.name].describe(t, p.want[length]), p.want[length]; is != want {
				t.Errorf("range of %s: %s: incident %q, want %q", length, p.name, is, want)
			}
		}
	}
}

// The page of a service names the same incidents as the list of services.
func TestUsualOfService(t *testing.T) {
	td := ptrace.NewTraces()
	services := plantedServices()
	for i := range services {
		services[i].add(td, i)
	}
	h := api(t, querytest.FilledMemory(t, td))
	for _, p := range services {
		w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/service?service=%s&start=%d&end=%d",
			url.QueryEscape(p.name), querytest.Noon.Add(-time.Hour).UnixNano(), querytest.Noon.UnixNano()))
		var answer struct {
			Data struct {
				Roles []struct {
					Role  string
					Total struct{ Incident *incidentJSON }
				}
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Data.Roles) == 0 {
			t.Fatalf("%v: %.300s", err, w.Body)
		}
		want := p.want[time.Hour]
		if is := answer.Data.Roles[0].Total.Incident.describe(t, want); is != want {
			t.Errorf("%s: incident %q, want %q", p.name, is, want)
		}
	}
}
