package doctor

import (
	"context"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Differences to the clock of another host above which a finding is a warning or a problem.
const (
	skewWarning = 2 * time.Second
	skewProblem = time.Minute
)

// checkClock reads whether the kernel considers the clock synchronized, and compares the clock with
// those of hosts that answer over HTTP.
func checkClock(ctx context.Context, x *examination) []Finding {
	found := []Finding{synchronization()}
	urls := map[string]bool{}
	for i := range x.hops {
		if hop := &x.hops[i]; hop.http != nil && !urls[hop.url] {
			urls[hop.url] = true
			found = append(found, x.skew(ctx, hop.url))
		}
	}
	if x.query != "" && !urls[x.query] && x.query != queryURL(queryListener(x.listeners)) {
		found = append(found, x.skew(ctx, x.query))
	}
	return found
}

// skew compares the clock with the header Date of an answer, which has whole seconds.
func (x *examination) skew(ctx context.Context, url string) Finding {
	subject := pipeline.MaskURLs(url)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return newFinding(subject, Skipped, "not a URL: %s", pipeline.MaskURLs(err.Error()))
	}
	before := x.env.Now()
	resp, err := x.remote.RoundTrip(req)
	after := x.env.Now()
	if err != nil {
		return newFinding(subject, Skipped, "no answer: %v", err)
	}
	resp.Body.Close() //nolint:errcheck // only the headers matter
	there, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return newFinding(subject, Skipped, "answer has no header Date")
	}
	return judgeSkew(subject, there, before, after)
}

// judgeSkew compares a time in whole seconds, taken elsewhere between two local times, with them.
func judgeSkew(subject string, there, before, after time.Time) Finding {
	skew := time.Duration(0)
	if end := there.Add(time.Second); end.Before(before) {
		skew = before.Sub(end)
	} else if there.After(after) {
		skew = there.Sub(after)
	}
	switch {
	case skew > skewProblem:
		return newFinding(subject, Problem, "clocks differ by at least %s", roundTime(skew)).
			advise("synchronize both hosts with NTP; spans of different hosts are in the wrong order, and searches by time miss them")
	case skew > skewWarning:
		return newFinding(subject, Warning, "clocks differ by at least %s", roundTime(skew)).advise("synchronize both hosts with NTP")
	}
	return newFinding(subject, OK, "clocks agree within the second that the answer tells")
}
