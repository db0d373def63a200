package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/status"
)

func pipe(name string, components ...string) status.Pipeline {
	p := status.Pipeline{Pipeline: name}
	for _, c := range components {
		kind := map[byte]string{'r': "receiver", 'p': "processor", 'e': "exporter", '>': "connector", '<': "connector"}[c[0]]
		role := map[byte]string{'>': "exporter", '<': "receiver"}[c[0]]
		p.Components = append(p.Components, status.Component{Component: strings.TrimLeft(c, "<>"), Kind: kind, Role: role})
	}
	return p
}

func received(id string, in, refused int64) status.Account {
	return status.Account{Component: id, Kind: "receiver", In: in, Accepted: in - refused, Refused: refused}
}

// connected is the account of a connector that feeds the pipelines a and b.
func connected(in, dropped, a, b, refusedByB int64) status.Account {
	return status.Account{Component: "c", Kind: "connector", In: in, Sent: in - dropped - refusedByB, Refused: refusedByB, Dropped: dropped,
		Branches: []status.Branch{{Pipeline: "a", Accepted: a}, {Pipeline: "b", Accepted: b, Refused: refusedByB}}}
}

func sent(id string, sent int64) status.Account {
	return status.Account{Component: id, Kind: "exporter", In: sent, Sent: sent}
}

func TestBalances(t *testing.T) {
	drops := status.Account{Component: "p1", Kind: "processor", In: 90, Sent: 60, Dropped: 25, Lost: 3, Held: 5}
	for name, c := range map[string]struct {
		in   status.BalanceInput
		want string
	}{
		"one way": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "p1", "e1")},
			Accounts: []status.Account{received("r1", 100, 10), drops, sent("e1", 60)}, Stores: map[string]bool{"e1": true}},
			"[a] x1: 100 = 60 + 0 + 10 + 25 (3) + 0 + 5, 0 balanced"},
		"queue of a next hop": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1")},
			Accounts: []status.Account{received("r1", 100, 0), {Component: "e1", Kind: "exporter", In: 100, Sent: 70, Queued: 30}}},
			"[a] x1: 100 = 0 + 70 + 0 + 0 (0) + 30 + 0, 0 balanced"},
		"in progress": {status.BalanceInput{Busy: true, Pipelines: []status.Pipeline{pipe("a", "r1", "e1")},
			Accounts: []status.Account{received("r1", 100, 0), sent("e1", 90)}},
			"[a] x1: 100 = 0 + 90 + 0 + 0 (0) + 0 + 0, 10 in_progress"},
		"gone": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1")},
			Accounts: []status.Account{received("r1", 100, 0), sent("e1", 90)}},
			"[a] x1: 100 = 0 + 90 + 0 + 0 (0) + 0 + 0, 10 unbalanced"},
		"left by an earlier process": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1")},
			Accounts: []status.Account{received("r1", 100, 0), sent("e1", 120)}},
			"[a] x1: 100 = 0 + 120 + 0 + 0 (0) + 0 + 0, -20 more"},
		"stored and refused": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1", "e2")},
			Accounts: []status.Account{received("r1", 100, 10), sent("e1", 100), sent("e2", 90)}},
			"[a] x2: 200 = 0 + 190 + 20 + 0 (0) + 0 + 0, -10 twice"},
		"receiver of two pipelines": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "p1", "e1"), pipe("b", "r1", "e2")},
			Accounts: []status.Account{received("r1", 90, 0), drops, sent("e1", 60), sent("e2", 90)}, Stores: map[string]bool{"e1": true}},
			"[a] x1: 90 = 60 + 0 + 0 + 25 (3) + 0 + 5, 0 balanced; [b] x1: 90 = 0 + 90 + 0 + 0 (0) + 0 + 0, 0 balanced"},
		"shared exporter": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1"), pipe("b", "r2", "e1")},
			Accounts: []status.Account{received("r1", 10, 0), received("r2", 5, 0), sent("e1", 15)}},
			"[a b] x1: 15 = 0 + 15 + 0 + 0 (0) + 0 + 0, 0 balanced"},
		"processor with different ways": {status.BalanceInput{
			Pipelines: []status.Pipeline{pipe("a", "r1", "p1", "e1"), pipe("b", "r2", "p1", "e1", "e2")},
			Accounts:  []status.Account{received("r1", 10, 0), received("r2", 5, 0), sent("e1", 15), sent("e2", 5)}},
			"[a b] x2: 20 = 0 + 20 + 0 + 0 (0) + 0 + 0, 0 unknown"},
		"connector": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("x", "r1", "e1", ">c"), pipe("a", "<c", "p1", "e2"),
			pipe("b", "<c", "e3")},
			Accounts: []status.Account{received("r1", 100, 0), connected(100, 4, 90, 6, 0), drops, sent("e1", 100), sent("e2", 60), sent("e3", 6)},
			Stores:   map[string]bool{"e1": true, "e2": true}},
			"[x] x2: 200 = 100 + 96 + 0 + 4 (0) + 0 + 0, 0 balanced; [a] x1: 90 = 60 + 0 + 0 + 25 (3) + 0 + 5, 0 balanced; " +
				"[b] x1: 6 = 0 + 6 + 0 + 0 (0) + 0 + 0, 0 balanced"},
		"connector whose branch refuses": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("x", "r1", ">c"), pipe("a", "<c", "e1"),
			pipe("b", "<c", "e2")},
			Accounts: []status.Account{received("r1", 100, 10), connected(100, 0, 100, 90, 10), sent("e1", 100), sent("e2", 90)}},
			"[x] x1: 100 = 0 + 90 + 10 + 0 (0) + 0 + 0, 0 balanced; [a] x1: 100 = 0 + 100 + 0 + 0 (0) + 0 + 0, 0 balanced; " +
				"[b] x1: 100 = 0 + 90 + 10 + 0 (0) + 0 + 0, 0 balanced"},
		"extension that writes": {status.BalanceInput{Pipelines: []status.Pipeline{pipe("a", "r1", "e1")},
			Accounts: []status.Account{received("r1", 10, 0), {Component: "x", Kind: "extension", In: 7, Refused: 2}, sent("e1", 15)},
			Writers:  []status.Way{{Extension: "x", Exporter: "e1"}}},
			"[a] x1: 17 = 0 + 15 + 2 + 0 (0) + 0 + 0, 0 balanced"},
	} {
		got := ""
		for _, b := range status.Balances(c.in) {
			if got != "" {
				got += "; "
			}
			got += fmt.Sprintf("%v x%d: %d = %d + %d + %d + %d (%d) + %d + %d, %d %s", b.Pipelines, b.Ways, b.Received, b.Stored, b.Sent,
				b.Refused, b.Dropped, b.Lost, b.Queued, b.Held, b.Difference, b.Verdict)
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// Requests in progress explain as many spans as their bytes can hold, once for each way.
func TestUnaccounted(t *testing.T) {
	for _, c := range []struct {
		balance    status.Balance
		inProgress int64
		want       int64
	}{
		{status.Balance{Verdict: status.Balanced}, 0, 0},
		{status.Balance{Difference: 10, Ways: 1, Verdict: status.Unbalanced}, 0, 10},
		{status.Balance{Difference: 10, Ways: 1, Verdict: status.InProgress}, 1600, 0},
		{status.Balance{Difference: 1000, Ways: 1, Verdict: status.InProgress}, 1600, 900},
		{status.Balance{Difference: 1000, Ways: 3, Verdict: status.InProgress}, 1600, 700},
		{status.Balance{Difference: -10, Ways: 1, Verdict: status.More}, 0, 0},
		{status.Balance{Difference: 10, Ways: 2, Verdict: status.Unknown}, 0, 0},
	} {
		if got := c.balance.Unaccounted(c.inProgress); got != c.want {
			t.Errorf("%+v, %d bytes in progress: got %d, want %d", c.balance, c.inProgress, got, c.want)
		}
	}
}
