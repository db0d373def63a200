{{- /* The components of a release, their ports and their configuration. */ -}}

{{- /* Components that run, as a JSON list of {name, key}; key is the section of the values. */ -}}
{{- define "tracing.components" -}}
{{- $list := list -}}
{{- if eq .Values.mode "all-in-one" -}}
{{- $list = append $list (dict "name" "all-in-one" "key" "allInOne") -}}
{{- else -}}
{{- $list = concat $list (list (dict "name" "collector" "key" "collector") (dict "name" "query" "key" "query")) -}}
{{- end -}}
{{- if .Values.agent.enabled -}}
{{- $list = append $list (dict "name" "agent" "key" "agent") -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{- /* The component that receives spans over TCP. */ -}}
{{- define "tracing.intake" -}}
{{- ternary "all-in-one" "collector" (eq .Values.mode "all-in-one") -}}
{{- end -}}

{{- define "tracing.usesClickHouse" -}}
{{- if and (eq .Values.mode "split") (eq .Values.storage "clickhouse") }}true{{ end -}}
{{- end -}}

{{- /* The preset that a component runs: {root, name}. */ -}}
{{- define "tracing.preset" -}}
{{- if and (include "tracing.usesClickHouse" .root) (ne .name "agent") -}}
{{ .name }}-clickhouse
{{- else -}}
{{ .name }}
{{- end -}}
{{- end -}}

{{- /* All ports. The group is the end of the name of the service that offers the port; admin is for headless services. */ -}}
{{- define "tracing.allPorts" -}}
- {group: collector, name: otlp-grpc, port: 4317, protocol: TCP, app: grpc}
- {group: collector, name: otlp-http, port: 4318, protocol: TCP, app: http}
- {group: collector, name: native-grpc, port: 14250, protocol: TCP, app: grpc}
- {group: collector, name: native-http, port: 14268, protocol: TCP, app: http}
{{- if .root.Values.zipkin.enabled }}
- {group: collector, name: zipkin, port: 9411, protocol: TCP, app: http}
{{- end }}
- {group: agent, name: compact, port: 6831, protocol: UDP, app: ""}
- {group: agent, name: binary, port: 6832, protocol: UDP, app: ""}
- {group: agent, name: zipkin-compact, port: 5775, protocol: UDP, app: ""}
- {group: agent, name: sampling, port: 5778, protocol: TCP, app: http}
- {group: query, name: query-grpc, port: 16685, protocol: TCP, app: grpc}
- {group: query, name: query-http, port: 16686, protocol: TCP, app: http}
- {group: storage, name: storage, port: 17271, protocol: TCP, app: grpc}
- {group: admin, name: admin, port: {{ get (dict "agent" 14271 "query" 16687) .name | default 14269 }}, protocol: TCP, app: http}
{{- end -}}

{{- /* Ports of a component as a JSON list: {root, name}. */ -}}
{{- define "tracing.ports" -}}
{{- $collector := ternary (list "collector") (list "collector" "storage") (eq "true" (include "tracing.usesClickHouse" .root)) -}}
{{- $groups := get (dict "all-in-one" (list "collector" "agent" "query") "collector" $collector "query" (list "query") "agent" (list "agent")) .name -}}
{{- $list := list -}}
{{- range include "tracing.allPorts" . | fromYamlArray -}}
{{- if has .group (append $groups "admin") -}}
{{- $list = append $list . -}}
{{- end -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{- /* Configuration of a component, merged over its preset: {root, name, values}. The user's keys win. */ -}}
{{- define "tracing.config" -}}
{{- $root := .root -}}
{{- $full := include "tracing.fullname" $root -}}
{{- $clickhouse := include "tracing.usesClickHouse" $root -}}
{{- $receives := eq .name (include "tracing.intake" $root) -}}
{{- $config := dict "service" (dict "watch" $root.Values.reload) -}}
{{- if and $receives (not $clickhouse) -}}
{{- $_ := set $config "exporters" (dict "disk" (dict "retention" $root.Values.retention)) -}}
{{- end -}}
{{- if and $clickhouse (ne .name "agent") -}}
{{- $_ := set $config "exporters" (dict "clickhouse" (include "tracing.clickhouse" $root | fromJson)) -}}
{{- end -}}
{{- $extensions := dict -}}
{{- if and $receives $root.Values.sampling.strategies -}}
{{- $_ := set $extensions "sampling" (dict "file" (dict "path" "/etc/tracing/strategies.json")) -}}
{{- end -}}
{{- if eq .name "query" -}}
{{- $_ := set $extensions "query" (dict "peers" (dict "endpoints" (include "tracing.peers" $root | fromJsonArray))) -}}
{{- end -}}
{{- if eq .name "agent" -}}
{{- $collectors := printf "dns:///%s-%s-headless:14250" $full (include "tracing.intake" $root) -}}
{{- $_ := set $config "exporters" (dict "native" (dict "endpoint" $collectors)) -}}
{{- $_ := set $extensions "sampling" (dict "remote" (dict "endpoint" $collectors)) -}}
{{- end -}}
{{- if $extensions -}}
{{- $_ := set $config "extensions" $extensions -}}
{{- end -}}
{{- mustMergeOverwrite $config (deepCopy .values.config) | toYaml -}}
{{- end -}}

{{- /* Settings of the exporter clickhouse, as JSON. */ -}}
{{- define "tracing.clickhouse" -}}
{{- $c := .Values.clickhouse -}}
{{- $settings := dict "endpoints" $c.endpoints "database" $c.database "username" $c.username "retention" (dict "spans" $c.retention) -}}
{{- if $c.existingSecret -}}
{{- $_ := set $settings "password_file" "/etc/tracing-clickhouse/password" -}}
{{- end -}}
{{- mustMergeOverwrite $settings (deepCopy $c.settings) | toJson -}}
{{- end -}}

{{- /* Addresses of the admin ports of all collectors, which query services show on their status page, as JSON. */ -}}
{{- define "tracing.peers" -}}
{{- $set := printf "%s-collector" (include "tracing.fullname" .) -}}
{{- $list := list -}}
{{- range $i := until (int .Values.collector.replicas) -}}
{{- $list = append $list (printf "http://%s-%d.%s-headless:14269" $set $i $set) -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{- /* Combinations of values that cannot work. */ -}}
{{- define "tracing.check" -}}
{{- if and (eq .Values.mode "split") (eq .Values.storage "disk") (gt (int .Values.collector.replicas) 1) -}}
{{- fail "collector.replicas: a store on disk belongs to one collector; set replicas to 1, or storage to clickhouse" -}}
{{- end -}}
{{- if and (include "tracing.usesClickHouse" .) (not .Values.clickhouse.endpoints) -}}
{{- fail "clickhouse.endpoints: no servers; list at least one HOST:PORT" -}}
{{- end -}}
{{- if and (eq .Values.mode "all-in-one") (eq .Values.storage "clickhouse") -}}
{{- fail "storage: the mode all-in-one stores on disk; set mode to split for clickhouse" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts: no hosts; list at least one {host: HOST}" -}}
{{- end -}}
{{- $volume := ternary .Values.allInOne.persistence .Values.collector.persistence (eq .Values.mode "all-in-one") -}}
{{- $gib := "^[0-9]+GiB$" -}}
{{- if and (not (include "tracing.usesClickHouse" .)) $volume.enabled (regexMatch $gib .Values.retention.size) (regexMatch "^[0-9]+Gi$" $volume.size) -}}
{{- if ge (trimSuffix "GiB" .Values.retention.size | int) (trimSuffix "Gi" $volume.size | int) -}}
{{- fail (printf "retention.size: %s does not fit into a volume of %s; reduce it, or increase persistence.size" .Values.retention.size $volume.size) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Ports of a service, from a list of ports of a component. */ -}}
{{- define "tracing.servicePorts" -}}
{{- range . }}
- name: {{ .name }}
  port: {{ .port }}
  targetPort: {{ .name }}
  protocol: {{ .protocol }}
  {{- with .app }}
  appProtocol: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
