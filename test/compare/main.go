// Command compare asks a Grafana Tempo program and this program the same questions over the same
// spans, and prints how their answers differ:
//
//	go run ./test/compare -tempo path/to/tempo -tracing bin/tracing
//
// Both are started with empty folders, get the spans of test/bench or captured ones, and answer the
// queries of a file in turns. A difference that the file explains is printed with its explanation;
// others are unexplained, and the command fails. The medians of the times of both are printed for
// each query.
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
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.tempo, "tempo", "", "path of Tempo's program")
	flag.StringVar(&o.tracing, "tracing", "bin/tracing", "path of this program")
	flag.StringVar(&o.queries, "queries", "test/compare/queries.txt", "file with the queries")
	flag.StringVar(&o.captured, "captured", "", "folder with captured traces (OTLP/JSON in *.json.gz) instead of generated spans")
	flag.StringVar(&o.only, "only", "", "only queries that contain this text")
	flag.IntVar(&o.spans, "spans", 50_000, "number of spans")
	flag.IntVar(&o.times, "times", 3, "number of times that each query is sent; the median time is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type options struct {
	tempo, tracing, queries, captured, only string
	spans, times                            int
}

func compare(ctx context.Context, o options) error {
	if o.tempo == "" {
		return errors.New("-tempo is not set")
	}
	if o.times < 1 {
		return errors.New("-times must be at least 1")
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
	data, err := newDataSet(o)
	if err != nil {
		return err
	}
	for _, s := range systems {
		if err := s.load(ctx, data); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Println("sent all spans; waiting until all are counted")
	for _, s := range systems {
		if err := s.awaitSpans(ctx, data); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return ask(ctx, o, systems, queries, data)
}

// ask sends all queries and prints the result.
func ask(ctx context.Context, o options, systems []*system, queries []query, data *dataSet) error {
	counts := make(map[string]int)
	var ratios []float64
	for _, q := range queries {
		var answers [2]answer
		var times [2][]time.Duration
		for range o.times {
			for i, s := range systems {
				sent := time.Now()
				var err error
				if answers[i], err = s.ask(ctx, q, data); ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil { // for example after a timeout
					answers[i] = answer{body: []byte(err.Error())}
				}
				times[i] = append(times[i], time.Since(sent))
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
		tempo, ours := median(times[0]), median(times[1])
		ratio := float64(ours) / float64(tempo)
		fmt.Printf("%-11s %d %d %8.1f ms %8.1f ms %6.2f  %s\n",
			result, answers[0].status, answers[1].status, millis(tempo), millis(ours), ratio, q)
		if diff != "" {
			fmt.Printf("%12s%s\n", "", diff)
		}
		if result == "explained" {
			fmt.Printf("%12s(%s)\n", "", q.explanation)
		}
		if answers[0].status == 200 && answers[1].status == 200 {
			ratios = append(ratios, ratio)
		}
	}
	slices.Sort(ratios)
	fmt.Printf("\n%d queries over %d spans: %v\n", len(queries), data.spans, counts)
	if n := len(ratios); n > 0 {
		half, _ := slices.BinarySearch(ratios, 0.5+1e-9)
		fmt.Printf("time of %s / time of %s: median %.2f, from %.2f to %.2f, at most half in %d of %d\n",
			systems[1].name, systems[0].name, ratios[n/2], ratios[0], ratios[n-1], half, n)
	}
	if n := len(queries) - counts["same"] - counts["explained"]; n > 0 {
		return fmt.Errorf("%d queries to look at", n)
	}
	return nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
