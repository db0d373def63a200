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
		for range r.IntN(3) {
			text += "|" + randomStage(r)
		}
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
	return randomSet(r, depth-1) + oneFrom(r, "&& || >> > << < ~ !>> !> !~ &>> &< &~") + randomSet(r, depth-1)
}

func randomStage(r *rand.Rand) string {
	switch r.IntN(5) {
	case 0:
		return "by(" + randomValue(r, 2) + ")"
	case 1:
		return "coalesce()"
	case 2:
		return randomSet(r, 1)
	case 3:
		return "({.a}|max(" + randomValue(r, 2) + "))" + oneFrom(r, "= != < >=") + "(" + randomSet(r, 1) + "|count())*-2"
	}
	return oneFrom(r, "avg min max sum") + "(" + randomValue(r, 2) + ")" + oneFrom(r, "= != < <= > >=") +
		oneFrom(r, "1s 2 -1.5+count() 2^3^0.5")
}

// randomValue returns a number that depends on the span.
func randomValue(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return oneFrom(r, "duration .a parent.span.b childCount nestedSetLeft event:timeSinceStart")
	}
	other := oneFrom(r, "-2 3 1.5s minInt .c") + " "
	if r.IntN(2) == 0 {
		other = oneFrom(r, "- (")
		if value := randomValue(r, depth-1); other == "(" {
			other += value + ")"
		} else {
			other += value + " "
		}
	}
	return "(" + randomValue(r, depth-1) + " " + oneFrom(r, "+ - * / % ^") + " " + other + ")"
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
	switch r.IntN(13) {
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
	case 10:
		return randomValue(r, 2) + " " + order() + " " + randomValue(r, 2)
	case 11:
		return oneFrom(r, `(.a=1)=true error=root !.c=.d (error=true)=.b name=.e "x"="y" status=span.s kind!=.k .a=nil nil!=parent.a "a"=~"b" nil=nil`)
	}
	return oneFrom(r, "name statusMessage rootName event:name span:parentID .x") + order() +
		oneFrom(r, "\"\" `a\"\\b` \"\\n\\\"\\xff\\u00fc\" \"true\"")
}
