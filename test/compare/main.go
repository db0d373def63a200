// Command compare asks a Grafana Tempo program and this program the same questions over the same
// spans, and prints how their answers differ:
//
//	go run ./test/compare -tempo path/to/tempo -tracing bin/tracing
//
// Both are started with empty folders, get the spans of test/bench, and answer the queries of
// queries.txt. A difference that queries.txt explains is printed with its explanation; others are
// unexplained, and the command fails. The times of both are printed for each query.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
)

func main() {
	var o options
	flag.StringVar(&o.tempo, "tempo", "", "path of Tempo's program")
	flag.StringVar(&o.tracing, "tracing", "bin/tracing", "path of this program")
	flag.StringVar(&o.queries, "queries", "test/compare/queries.txt", "file with the queries")
	flag.StringVar(&o.only, "only", "", "only queries that contain this text")
	flag.IntVar(&o.spans, "spans", 50_000, "number of spans")
	flag.IntVar(&o.turns, "turns", 3, "number of times that each query is sent; the fastest is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type options struct {
	tempo, tracing, queries, only string
	spans, turns                  int
}

// seed is the seed of the data set.
const seed = 7

func compare(ctx context.Context, o options) error {
	if o.tempo == "" {
		return errors.New("-tempo is not set")
	}
	queries, err := readQueries(o.queries, o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	systems, stop, err := start(ctx, o, dir)
	if err != nil {
		return err
	}
	defer stop()
	// All spans are in the past, and old enough that no system waits for later ones.
	begin := time.Now().Add(-10 * time.Minute).Truncate(time.Minute)
	data := bench.New(seed, begin)
	end := begin.Add(time.Duration(data.Traces(o.spans)) * time.Second / bench.TracesPerSecond).Truncate(time.Second).Add(10 * time.Second)
	for _, s := range systems {
		if err := s.load(ctx, data, o.spans); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Println("sent all spans; waiting until searches find them")
	for _, s := range systems {
		if err := s.awaitSpans(ctx, data, o.spans, begin, end); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return ask(ctx, o, systems, queries, begin, end)
}

// ask sends all queries and prints the result.
func ask(ctx context.Context, o options, systems []*system, queries []query, begin, end time.Time) error {
	counts := make(map[string]int)
	var ratios []float64
	for _, q := range queries {
		var answers [2]answer
		var times [2]time.Duration
		for range o.turns {
			for i, s := range systems {
				sent := time.Now()
				a, err := s.ask(ctx, q, begin, end)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", s.name, q.text, err)
				}
				if took := time.Since(sent); times[i] == 0 || took < times[i] {
					answers[i], times[i] = a, took
				}
			}
		}
		diff := difference(q, answers[0], answers[1])
		result := "same"
		switch {
		case diff != "" && q.explanation != "":
			result = "explained"
		case diff != "":
			result = "UNEXPLAINED"
		case q.explanation != "" && !strings.HasPrefix(q.explanation, "sometimes: "):
			result = "SAME, although a difference is explained"
		}
		counts[result]++
		fmt.Printf("%-11s %6.1f ms %6.1f ms  %s\n", result, millis(times[0]), millis(times[1]), q.text)
		if diff != "" {
			fmt.Printf("%12s%s\n", "", diff)
		}
		if result == "explained" {
			fmt.Printf("%12s(%s)\n", "", q.explanation)
		}
		if answers[0].status == 200 && answers[1].status == 200 {
			ratios = append(ratios, float64(times[1])/float64(times[0]))
		}
	}
	slices.Sort(ratios)
	fmt.Printf("\n%d queries over %d spans: %v\n", len(queries), o.spans, counts)
	if n := len(ratios); n > 0 {
		fmt.Printf("time of %s / time of %s: median %.2f, from %.2f to %.2f\n",
			systems[1].name, systems[0].name, ratios[n/2], ratios[0], ratios[n-1])
	}
	if n := len(queries) - counts["same"] - counts["explained"]; n > 0 {
		return fmt.Errorf("%d queries to look at", n)
	}
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
