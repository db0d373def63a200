package sampling

import (
	"fmt"
	"image/color"
	"os"
	"testing"
	"testing/synctest"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// TestAdaptivePlot draws what TestAdaptiveSimulation checks, to the file that SAMPLING_PLOT names: of each operation the traces that were
// sampled per second, and the target. Those that never have as many as are wanted are left out.
func TestAdaptivePlot(t *testing.T) {
	file := os.Getenv("SAMPLING_PLOT")
	if file == "" {
		t.Skip("SAMPLING_PLOT names no file; make sampling-plot does")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(simSeeds(t)[0], func(c *AdaptiveConfig) { c.Target = simTarget })
		leadersDie(t, s)
		if err := s.plot(file); err != nil {
			t.Fatal(err)
		}
	})
}

func (s *simulation) plot(file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Adaptive sampling of %d services: two of three collectors die (vertical lines)", simServices)
	p.X.Label.Text, p.Y.Label.Text = "minutes", "sampled traces per second"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0.01, 1000
	line := func(c color.Color, width vg.Length, points plotter.XYs) error {
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.Color, l.Width = c, width
		p.Add(l)
		return nil
	}
	for _, o := range s.operations {
		if len(s.judged(o)) == 0 {
			continue
		}
		c := color.NRGBA{R: 60, G: 90, B: 160, A: 60}
		if o.burst > 0 {
			c = color.NRGBA{R: 200, G: 90, B: 30, A: 130}
		}
		points := make(plotter.XYs, simRounds)
		for i := range points {
			points[i] = plotter.XY{X: float64(i), Y: min(max(o.realized[i], p.Y.Min), p.Y.Max)}
		}
		if err := line(c, vg.Points(0.6), points); err != nil {
			return err
		}
	}
	target := s.config.Target
	if err := line(color.Black, vg.Points(1.5), plotter.XYs{{X: 0, Y: target}, {X: simRounds - 1, Y: target}}); err != nil {
		return err
	}
	for _, minute := range []float64{45, 59.5} {
		if err := line(color.Gray{Y: 120}, vg.Points(1), plotter.XYs{{X: minute, Y: p.Y.Min}, {X: minute, Y: p.Y.Max}}); err != nil {
			return err
		}
	}
	return p.Save(24*vg.Centimeter, 14*vg.Centimeter, file)
}
