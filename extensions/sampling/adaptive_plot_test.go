package sampling

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// TestAdaptivePlot writes a plot of the simulation that TestAdaptiveSimulation checks to the file
// SAMPLING_PLOT, and its data to a .csv file with the same name: the sampled traces per second of
// each operation. Operations that never have enough traces for the target are left out.
func TestAdaptivePlot(t *testing.T) {
	file := os.Getenv("SAMPLING_PLOT")
	if file == "" {
		t.Skip("SAMPLING_PLOT is not set; use make sampling-plot")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(simSeeds(t)[0], func(c *AdaptiveConfig) { c.Target = simTarget })
		runWithCrashes(t, s)
		if err := os.WriteFile(file, s.svg(), 0o644); err != nil {
			t.Fatal(err)
		}
		numbers := strings.TrimSuffix(file, filepath.Ext(file)) + ".csv"
		if err := os.WriteFile(numbers, s.csv(t), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// csv returns a row per minute and a column per operation.
func (s *simulation) csv(t *testing.T) []byte {
	rows := make([][]string, 1+simRounds)
	rows[0] = []string{"minute"}
	for i := range simRounds {
		rows[1+i] = []string{strconv.Itoa(i)}
	}
	for n, o := range s.operations {
		if len(s.reachableRounds(o)) == 0 {
			continue
		}
		rows[0] = append(rows[0], fmt.Sprint("operation ", n))
		for i := range simRounds {
			rows[1+i] = append(rows[1+i], strconv.FormatFloat(o.realized[i], 'g', 6, 64))
		}
	}
	var out bytes.Buffer
	if err := csv.NewWriter(&out).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The plot area in pixels, and the range of its logarithmic vertical axis in traces per second.
const (
	plotLeft, plotTop, plotWidth, plotHeight = 70, 40, 960, 520
	plotMin, plotMax                         = 0.01, 1000
)

func plotX(minute float64) float64 { return plotLeft + plotWidth*minute/(simRounds-1) }

func plotY(rate float64) float64 {
	share := math.Log(min(max(rate, plotMin), plotMax)/plotMin) / math.Log(plotMax/plotMin)
	return plotTop + plotHeight*(1-share)
}

func (s *simulation) svg() []byte {
	var out bytes.Buffer
	line := func(style string, points ...[2]float64) {
		fmt.Fprintf(&out, `<polyline fill="none" %s points="`, style)
		for _, p := range points {
			fmt.Fprintf(&out, "%.1f,%.1f ", plotX(p[0]), plotY(p[1]))
		}
		out.WriteString("\"/>\n")
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="14">`+"\n",
		plotLeft+plotWidth+30, plotTop+plotHeight+60)
	out.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	plotAxes(&out)
	for _, o := range s.operations {
		if len(s.reachableRounds(o)) == 0 {
			continue
		}
		style := `stroke="#3c5aa0" stroke-opacity="0.25"`
		if o.burst > 0 {
			style = `stroke="#c85a1e" stroke-opacity="0.5"`
		}
		points := make([][2]float64, simRounds)
		for i := range points {
			points[i] = [2]float64{float64(i), o.realized[i]}
		}
		line(style, points...)
	}
	target := s.config.Target
	line(`stroke="black" stroke-width="2"`, [2]float64{0, target}, [2]float64{simRounds - 1, target})
	for _, minute := range []float64{45, 59.5} {
		line(`stroke="gray"`, [2]float64{minute, plotMin}, [2]float64{minute, plotMax})
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// plotAxes draws the title, the axes and their ticks.
func plotAxes(out *bytes.Buffer) {
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(out, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
	}
	middle := plotX((simRounds - 1) / 2.0)
	text(middle, 24, "middle", fmt.Sprintf("Adaptive sampling of %d services: two of three collectors crash (vertical lines)", simServices))
	text(middle, plotTop+plotHeight+44, "middle", "minutes")
	text(plotLeft, 24, "end", "traces/s")
	for minute := 0; minute < simRounds; minute += 10 {
		text(plotX(float64(minute)), plotTop+plotHeight+20, "middle", strconv.Itoa(minute))
	}
	for rate := plotMin; rate <= plotMax; rate *= 10 {
		y := plotY(rate)
		text(plotLeft-8, y+5, "end", strconv.FormatFloat(rate, 'g', 4, 64))
		fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="%.1f" y2="%[3]f" stroke="#ddd"/>`+"\n", plotLeft, plotLeft+plotWidth, y)
	}
}
