package main

import "strings"

// board is the source of a dashboard: rows of panels.
type board struct {
	title string
	rows  []row
}

type row struct {
	title  string
	panels []chart
}

// chart is a panel with one or more queries.
type chart struct {
	title, unit string
	stat        bool // one number instead of lines
	queries     []series
}

// series is a query. @ in its expression stands for the labels that the variables of the dashboard
// select, and RATE for the interval of rates.
type series struct{ expr, legend string }

// Units of Grafana.
const (
	perSecond = "cps"
	seconds   = "s"
	size      = "bytes"
	short     = "short"
	ratio     = "percentunit"
)

const (
	selected   = `job=~"$job",instance=~"$instance"`
	columns    = 24 // width of a dashboard
	lineHeight = 8
	statHeight = 4
	perRow     = 3 // charts with lines
)

// lines returns a chart of one or more series: expression, legend, expression, legend.
func lines(title, unit string, queries ...string) chart {
	c := chart{title: title, unit: unit}
	for i := 0; i+1 < len(queries); i += 2 {
		c.queries = append(c.queries, series{queries[i], queries[i+1]})
	}
	return c
}

// number returns a panel with the current value of an expression.
func number(title, unit, expr string) chart {
	return chart{title: title, unit: unit, stat: true, queries: []series{{expr, ""}}}
}

var prometheus = &datasource{Type: "prometheus", UID: "$datasource"}

// dashboard returns the dashboard with its variables, and places its panels.
func (b board) dashboard(name string) dashboard {
	d := dashboard{UID: "tracing-" + name, Title: "Tracing / " + b.title, Tags: []string{"tracing"}, SchemaVersion: 39, Refresh: "30s",
		Time: timeRange{"now-1h", "now"}, Templating: templating{variables()},
		Links: []link{{Title: "Tracing", Type: "dashboards", Icon: "external link", Tags: []string{"tracing"}, AsDropdown: true,
			IncludeVars: true, KeepTime: true}}}
	y := 0
	for _, r := range b.rows {
		d.add(panel{Type: "row", Title: r.title, GridPos: gridPos{H: 1, W: columns, Y: y}})
		y = d.place(r.panels, y+1)
	}
	return d
}

func variables() []variable {
	return []variable{
		{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus"},
		{Name: "job", Label: "Job", Type: "query", Query: "label_values(tracing_build_info, job)", Datasource: prometheus, Refresh: 2,
			IncludeAll: true, Multi: true, AllValue: ".+"},
		{Name: "instance", Label: "Instance", Type: "query", Query: `label_values(tracing_build_info{job=~"$job"}, instance)`,
			Datasource: prometheus, Refresh: 2, IncludeAll: true, Multi: true, AllValue: ".+"},
	}
}

func (d *dashboard) add(p panel) {
	p.ID = len(d.Panels) + 1
	d.Panels = append(d.Panels, p)
}

// place adds charts from y on, and returns y after them. All charts of a row of the source have the
// same kind.
func (d *dashboard) place(charts []chart, y int) int {
	height, each := lineHeight, perRow
	if charts[0].stat {
		height, each = statHeight, len(charts)
	}
	for i, c := range charts {
		p := c.panel()
		p.GridPos = gridPos{H: height, W: columns / each, X: i % each * (columns / each), Y: y + i/each*height}
		d.add(p)
	}
	return y + (len(charts)+each-1)/each*height
}

func (c chart) panel() panel {
	zero := 0
	p := panel{Type: "timeseries", Title: c.title, Datasource: prometheus,
		FieldConfig: &fields{Defaults: fieldDefaults{Unit: c.unit, Min: &zero}, Overrides: []any{}}}
	if c.stat {
		p.Type = "stat"
	}
	for i, q := range c.queries {
		expr := strings.NewReplacer("@", selected, "RATE", "$__rate_interval").Replace(q.expr)
		p.Targets = append(p.Targets, target{RefID: string(rune('A' + i)), Datasource: prometheus, Expr: expr, LegendFormat: q.legend,
			Instant: c.stat, Range: !c.stat})
	}
	return p
}

// quantile returns the expression for a quantile of a histogram over the given labels.
func quantile(q, metric, by string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + ", le) (rate(" + metric + "_bucket{@}[RATE])))"
}

// rate returns the expression for the rate of a counter, summed over all but the given labels.
func rate(metric, by, labels string) string {
	if labels != "" {
		labels = "," + labels
	}
	return "sum by (" + by + ") (rate(" + metric + "{@" + labels + "}[RATE]))"
}
