package linktemplate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Link is a link to a system whose templates are known: one of the addresses is set.
type Link struct {
	Loki          string `yaml:"loki" doc:"Address of Grafana: logs in Loki."`
	Elasticsearch string `yaml:"elasticsearch" doc:"Address of Kibana: logs in Elasticsearch."`
	OpenSearch    string `yaml:"opensearch" doc:"Address of OpenSearch Dashboards: logs in OpenSearch."`
	Splunk        string `yaml:"splunk" doc:"Address of Splunk: logs."`
	Datadog       string `yaml:"datadog" doc:"Address of Datadog, such as https://app.datadoghq.com: logs."`
	CloudWatch    string `yaml:"cloudwatch" doc:"Address of the AWS console with a region, such as https://eu-west-1.console.aws.amazon.com: logs in CloudWatch."`
	VictoriaLogs  string `yaml:"victorialogs" doc:"Address of VictoriaLogs: logs."`
	Prometheus    string `yaml:"prometheus" doc:"Address of Grafana: calls of services and operations in Prometheus, with the names of the Collector's spanmetrics connector."`
	Pyroscope     string `yaml:"pyroscope" doc:"Address of Grafana: profiles in Pyroscope, of spans with the attribute pyroscope.profile.id and of services."`
	Grafana       string `yaml:"grafana" doc:"Address of Grafana: the same traces and searches in a Tempo data source."`

	Source string `yaml:"source" doc:"What the system searches: the UID or name of a data source of Grafana (by default loki, prometheus, pyroscope or tempo), the ID of a data view or index pattern, the index of Splunk or Datadog, or the log group of CloudWatch, which needs one."`
	Name   string `yaml:"name" doc:"Text of the links instead of the name of the system."`
}

var _ pipeline.Validator = (*Link)(nil)

// system is a system that links can lead to.
type system struct {
	key, address string // in the configuration
	name         string
	// templates returns templates without names for an address without a final slash.
	templates func(address, source string) []Template
}

func (l *Link) systems() []system {
	return []system{
		{"loki", l.Loki, "Loki", loki},
		{"elasticsearch", l.Elasticsearch, "Kibana", kibana},
		{"opensearch", l.OpenSearch, "OpenSearch", openSearch},
		{"splunk", l.Splunk, "Splunk", splunk},
		{"datadog", l.Datadog, "Datadog", datadog},
		{"cloudwatch", l.CloudWatch, "CloudWatch", cloudWatch},
		{"victorialogs", l.VictoriaLogs, "VictoriaLogs", victoriaLogs},
		{"prometheus", l.Prometheus, "Prometheus", prometheus},
		{"pyroscope", l.Pyroscope, "Pyroscope", pyroscope},
		{"grafana", l.Grafana, "Grafana", grafana},
	}
}

// system returns the system whose address is set.
func (l *Link) system() (*system, error) {
	var found *system
	var keys []string
	for _, s := range l.systems() {
		keys = append(keys, s.key)
		switch {
		case s.address == "":
		case found != nil:
			return nil, pipeline.BadKey(s.key, "must be an element of links of its own, because %s is set here", found.key)
		default:
			found = &s
		}
	}
	if found == nil {
		return nil, fmt.Errorf("names no system; set the address of one of %s", strings.Join(keys, ", "))
	}
	return found, nil
}

// Validate checks the link.
func (l *Link) Validate() error {
	s, err := l.system()
	if err != nil {
		return err
	}
	u, err := url.Parse(s.address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" ||
		strings.ContainsAny(s.address, "{}") {
		return pipeline.BadKey(s.key, "%q is not the address of a server, such as https://%s.example.com", s.address, s.key)
	}
	var errs []error
	switch {
	case strings.ContainsAny(l.Source, "{}"):
		errs = append(errs, pipeline.BadKey("source", "%q contains a brace; placeholders are possible only in link_templates", l.Source))
	case s.key == "victorialogs" && l.Source != "":
		errs = append(errs, pipeline.BadKey("source", "must be empty for victorialogs, which searches all logs"))
	case s.key == "cloudwatch" && l.Source == "":
		errs = append(errs, pipeline.BadKey("source", "must be set to the log group"))
	}
	if s.key == "cloudwatch" && region(s.address) == "" {
		errs = append(errs, pipeline.BadKey(s.key, "%q has no region; write, for example, https://eu-west-1.console.aws.amazon.com", s.address))
	}
	return errors.Join(errs...)
}

// Templates returns the templates of valid links.
func Templates(links []Link) (all []Template) {
	for i := range links {
		s, err := links[i].system()
		if err != nil {
			continue
		}
		for _, t := range s.templates(strings.TrimSuffix(s.address, "/"), links[i].Source) {
			t.Name = cmp.Or(links[i].Name, s.name)
			all = append(all, t)
		}
	}
	return all
}

// around is the time before and after spans in which their logs are looked for: clocks differ, and
// logs may be written late.
const around = pipeline.Duration(5 * time.Minute)

// logs returns templates that find the lines of spans, traces and services with three queries.
func logs(address, ofSpan, ofTrace, ofService string) []Template {
	return []Template{
		{URL: address, Query: ofSpan, Margin: around},
		{On: OnTrace, URL: address, Query: ofTrace, Margin: around},
		{On: OnService, URL: address, Query: ofService},
	}
}

// explore returns the address of Grafana's page Explore with one query: the members of a JSON
// object besides refId and datasource, with placeholders.
// Source: https://grafana.com/docs/grafana/latest/explore/get-started-with-explore/#share-explore-urls.
func explore(address, kind, source, members string) string {
	name := quote(source)
	return address + "/explore?schemaVersion=1&panes=" + encode(`{"a":{"datasource":`+name+`,"queries":[{"refId":"A","datasource":{"type":"`+
		kind+`","uid":`+name+`},`+members+`}],"range":{"from":"{start}","to":"{end}"}}}`)
}

// quote returns a text as a JSON string.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // cannot fail
	return string(quoted)
}

// encode encodes a text for the query or fragment of an address, except placeholders.
func encode(text string) string {
	var b strings.Builder
	for {
		at := inQuery.FindStringIndex(text)
		if at == nil {
			return b.String() + escape(text)
		}
		b.WriteString(escape(text[:at[0]]) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
}

func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// loki finds trace IDs in the metadata of lines, which OTLP sets, and in their text, like Grafana's
// own links from traces to logs.
func loki(address, source string) []Template {
	const ofTrace = " | label_format in_line=`{{ contains {traceId:json} __line__ }}` | trace_id={traceId:json} or in_line=\"true\""
	return logs(explore(address, "loki", cmp.Or(source, "loki"), `"expr":{query:json}`),
		`{service_name={service:json}}`+ofTrace, `{service_name=~".+"}`+ofTrace, `{service_name={service:json}}`)
}

// The queries of Kibana and OpenSearch Dashboards are in KQL, and their addresses contain Rison.
// Exporters name the fields differently: OTLP (trace_id), the Elastic Common Schema (trace.id) and
// Data Prepper (traceId).

func kibana(address, source string) []Template {
	const ofTrace = `(trace.id: {traceId:json} or trace_id: {traceId:json})`
	view := ""
	if source != "" {
		view = "index:'" + escape(rison.Replace(source)) + "',"
	}
	return logs(address+"/app/discover#/?_g=(time:(from:'{start:iso}',to:'{end:iso}'))"+
		"&_a=("+view+"query:(language:kuery,query:{query:rison}))", ofTrace+` and service.name: {service:json}`, ofTrace, `service.name: {service:json}`)
}

func openSearch(address, source string) []Template {
	const ofTrace = `(traceId: {traceId:json} or trace_id: {traceId:json})`
	const ofService = `(serviceName: {service:json} or service.name: {service:json})`
	view := ""
	if source != "" {
		view = "indexPattern:'" + escape(rison.Replace(source)) + "',"
	}
	return logs(address+"/app/data-explorer/discover#?_a=(metadata:("+view+"view:discover))&_g=(time:(from:'{start:iso}',to:'{end:iso}'))"+
		"&_q=(query:(language:kuery,query:{query:rison}))", ofTrace+" and "+ofService, ofTrace, ofService)
}

// rison escapes a text in single quotes. Source: https://github.com/Nanonid/rison.
var rison = strings.NewReplacer("!", "!!", "'", "!'")

func splunk(address, source string) []Template {
	search := "search "
	if source != "" {
		search += "index=" + quote(source) + " "
	}
	const ofTrace = `(trace_id={traceId:json} OR {traceId:json})`
	return logs(address+"/app/search/search?q={query}&earliest={start:s}&latest={end:s}",
		search+ofTrace+` service.name={service:json}`, search+ofTrace, search+`service.name={service:json}`)
}

func datadog(address, source string) []Template {
	index := ""
	if source != "" {
		index = "&index=" + escape(source)
	}
	const ofTrace = `(@otel.trace_id:{traceId} OR trace_id:{traceId})`
	return logs(address+"/logs?query={query}"+index+"&from_ts={start}&to_ts={end}&live=false",
		ofTrace+` service:{service:json}`, ofTrace, `service:{service:json}`)
}

// cloudWatch links to Logs Insights, whose address contains an object in the format of
// https://github.com/Sage/jsurl. Lines of CloudWatch name no service.
func cloudWatch(address, source string) []Template {
	to := address + "/cloudwatch/home?region=" + region(address) + "#logsV2:logs-insights$3FqueryDetail$3D" +
		"~(end~'{end:iso:jsurl}~start~'{start:iso:jsurl}~timeType~'ABSOLUTE~tz~'UTC~editorString~'{query:jsurl}~source~(~'" +
		strings.ReplaceAll(escape(source), "%", "*") + "))" // names of log groups are ASCII
	const query = `fields @timestamp, @message | filter @message like {traceId:json} | sort @timestamp | limit 1000`
	return []Template{{URL: to, Query: query, Margin: around}, {On: OnTrace, URL: to, Query: query, Margin: around}}
}

// region returns the first part of the host of the AWS console, or "" if there is none.
func region(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	if strings.Count(name, "-") < 2 {
		return ""
	}
	return name
}

func victoriaLogs(address, _ string) []Template {
	const ofTrace = `trace_id:={traceId:json}`
	return logs(address+"/select/vmui/#/?query={query}&g0.range_input={duration:s}s&g0.end_input={end:iso}&g0.relative_time=none",
		ofTrace+` "service.name":={service:json}`, ofTrace, `"service.name":={service:json}`)
}

// prometheus shows an hour before and after a span, because a rate needs several scrapes.
func prometheus(address, source string) []Template {
	to := explore(address, "prometheus", cmp.Or(source, "prometheus"), `"expr":{query:json}`)
	const rate = `sum by (status_code) (rate(traces_span_metrics_calls_total{service_name={service:json}%s}[$__rate_interval]))`
	return []Template{
		{URL: to, Query: fmt.Sprintf(rate, `,span_name={operation:json}`), Margin: pipeline.Duration(time.Hour)},
		{On: OnService, URL: to, Query: fmt.Sprintf(rate, "")},
	}
}

func pyroscope(address, source string) []Template {
	const members = `"queryType":"profile","profileTypeId":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":{query:json}`
	const kind, ofService = "grafana-pyroscope-datasource", `{service_name={service:json}}`
	source = cmp.Or(source, "pyroscope")
	return []Template{
		{URL: explore(address, kind, source, members+`,"spanSelector":[{attribute.pyroscope.profile.id:json}]`), Query: ofService,
			Margin: around},
		{On: OnService, URL: explore(address, kind, source, members), Query: ofService},
	}
}

func grafana(address, source string) []Template {
	to := explore(address, "tempo", cmp.Or(source, "tempo"), `"queryType":"traceql","query":{query:json}`)
	return []Template{{On: OnTrace, URL: to, Query: "{traceId}", Margin: around}, {On: OnSearch, URL: to}}
}
