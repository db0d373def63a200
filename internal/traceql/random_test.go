package traceql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandom formats and parses random searches.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := randomSet(r, 4)
		q, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		checkFormat(t, q.Set)
	}
}

func oneFrom(r *rand.Rand, all string) string {
	words := strings.Split(all, " ")
	return words[r.IntN(len(words))]
}

func randomSet(r *rand.Rand, depth int) string {
	switch {
	case depth == 0 || r.IntN(3) == 0:
		if r.IntN(8) == 0 {
			return "{}"
		}
		return "{" + randomExpr(r, 3) + "}"
	case r.IntN(2) == 0:
		return "(" + randomSet(r, depth-1) + ")"
	}
	return randomSet(r, depth-1) + oneFrom(r, "&& || >> >") + randomSet(r, depth-1)
}

func randomExpr(r *rand.Rand, depth int) string {
	switch {
	case depth == 0 || r.IntN(4) == 0:
		return randomCondition(r)
	case r.IntN(3) == 0:
		return oneFrom(r, " ! !!") + "(" + randomExpr(r, depth-1) + ")"
	}
	return randomExpr(r, depth-1) + oneFrom(r, "&& ||") + oneFrom(r, "! ") + "(" + randomExpr(r, depth-1) + ")" +
		oneFrom(r, "&& ||") + randomCondition(r)
}

func randomCondition(r *rand.Rand) string {
	attribute := func() string {
		return oneFrom(r, `.a span.b resource.c event.d link.e instrumentation.f http.x ."q.\"" span."x\\y".z parent.a`)
	}
	equality := func() string { return oneFrom(r, "= !=") }
	order := func() string { return oneFrom(r, "= != < <= > >=") }
	switch r.IntN(11) {
	case 0:
		return oneFrom(r, "! !! ") + oneFrom(r, "error root .a true false exists(name) exists(span.a)")
	case 1:
		return oneFrom(r, "kind span:kind") + equality() + oneFrom(r, `server client unspecified "internal"`)
	case 2:
		return oneFrom(r, "unset ok error") + equality() + "status"
	case 3:
		return oneFrom(r, "duration trace.duration") + order() + fmt.Sprint(r.IntN(2000)) + oneFrom(r, "ns us µs ms s m h d h1.5m")
	case 4:
		return fmt.Sprint(r.NormFloat64()*1e3) + order() + "span.n"
	case 5:
		return "span.n" + order() + oneFrom(r, "0 -1 200 1e300 1E-5 9007199254740993 0.1")
	case 6:
		return attribute() + oneFrom(r, "=~ !~") + "\"" + oneFrom(r, `a.* (?i)x|y \\d{2,5} ^z$ `) + "\""
	case 7:
		return oneFrom(r, `error root`) + equality() + oneFrom(r, "true false")
	case 8:
		return attribute() + oneFrom(r, "!=nil =nil")
	case 9:
		return oneFrom(r, `"u-1247" !"a.*\\b" !!"É\n" text="x" text=~"(?i).*a+.*" text!~"(?i).*b.*"`)
	}
	return oneFrom(r, "name statusMessage rootName event:name span:parentID .x") + order() +
		oneFrom(r, "\"\" `a\"\\b` \"\\n\\\"\\xff\\u00fc\" \"true\"")
}
