{{- /* The components of a release, their ports and their configuration. */ -}}

{{- /* Components that run, as a JSON list of {name, key}; key is the section of the values. */ -}}
{{- define "tracing.components" -}}
{{- $list := list -}}
{{- if eq .Values.mode "all-in-one" -}}
{{- $list = append $list (dict "name" "all-in-one" "key" "allInOne") -}}
{{- else -}}
{{- range ternary (list "collector" "ingester" "query") (list "collector" "query") .Values.kafka.enabled -}}
{{- $list = append $list (dict "name" . "key" .) -}}
{{- end -}}
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

{{- /* Whether a component connects to ClickHouse: {root, name}. */ -}}
{{- define "tracing.clickhouseClient" -}}
{{- $writer := ternary "ingester" "collector" .root.Values.kafka.enabled -}}
{{- if and (include "tracing.usesClickHouse" .root) (has .name (list $writer "query")) }}true{{ end -}}
{{- end -}}

{{- /* Whether a component connects to Kafka: {root, name}. */ -}}
{{- define "tracing.kafkaClient" -}}
{{- if and .root.Values.kafka.enabled (has .name (list "collector" "ingester")) }}true{{ end -}}
{{- end -}}

{{- /* The preset that a component runs: {root, name}. */ -}}
{{- define "tracing.preset" -}}
{{- if eq .name "ingester" -}}
ingester
{{- else if include "tracing.kafkaClient" . -}}
{{ .name }}-kafka
{{- else if include "tracing.clickhouseClient" . -}}
{{ .name }}-clickhouse
{{- else -}}
{{ .name }}
{{- end -}}
{{- end -}}

{{- /* The admin port of a component, by its name. */ -}}
{{- define "tracing.adminPort" -}}
{{- get (dict "agent" 14271 "ingester" 14270 "query" 16687) . | default 14269 -}}
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
- {group: admin, name: admin, port: {{ include "tracing.adminPort" .name }}, protocol: TCP, app: http}
{{- end -}}

{{- /* Ports of a component as a JSON list: {root, name}. */ -}}
{{- define "tracing.ports" -}}
{{- $collector := ternary (list "collector") (list "collector" "storage") (eq "true" (include "tracing.usesClickHouse" .root)) -}}
{{- $groups := get (dict "all-in-one" (list "collector" "agent" "query") "collector" $collector "ingester" list "query" (list "query") "agent" (list "agent")) .name -}}
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
{{- $receives := eq .name (include "tracing.intake" $root) -}}
{{- $config := dict "service" (dict "watch" $root.Values.reload) -}}
{{- $extensions := dict -}}
{{- if and $receives (not (include "tracing.usesClickHouse" $root)) -}}
{{- $_ := set $config "exporters" (dict "disk" (dict "retention" $root.Values.retention)) -}}
{{- end -}}
{{- if include "tracing.clickhouseClient" . -}}
{{- $_ := set $config "exporters" (dict "clickhouse" (include "tracing.clickhouse" $root | fromJson)) -}}
{{- end -}}
{{- if and $receives (include "tracing.kafkaClient" .) -}}
{{- $_ := set $config "exporters" (dict "kafka" (include "tracing.kafka" $root | fromJson)) -}}
{{- end -}}
{{- if eq .name "ingester" -}}
{{- /* ClickHouse instead of the store of the preset, and large inserts. */ -}}
{{- $batch := dict "batch" (dict "max_size" "16MiB" "max_spans" 50000) -}}
{{- $_ := set $config "receivers" (dict "kafka" (mustMergeOverwrite $batch (include "tracing.kafka" $root | fromJson))) -}}
{{- $retry := dict "retry_on_failure" (dict "max_elapsed_time" "0s") -}}
{{- $_ := set $config.exporters "clickhouse" (mustMergeOverwrite $retry $config.exporters.clickhouse) -}}
{{- $_ := set $config.exporters "disk" nil -}}
{{- $_ := set $extensions "remote_storage" nil -}}
{{- $_ := set $config.service "extensions" (list "admin") -}}
{{- $_ := set $config.service "pipelines" (dict "traces" (dict "exporters" (list "clickhouse"))) -}}
{{- end -}}
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

{{- /* Settings of the clickhouse exporter, as JSON. */ -}}
{{- define "tracing.clickhouse" -}}
{{- $c := .Values.clickhouse -}}
{{- $settings := dict "endpoints" $c.endpoints "database" $c.database "username" $c.username "retention" (dict "spans" $c.retention) -}}
{{- if $c.existingSecret -}}
{{- $_ := set $settings "password_file" "/etc/tracing-clickhouse/password" -}}
{{- end -}}
{{- mustMergeOverwrite $settings (deepCopy $c.settings) | toJson -}}
{{- end -}}

{{- /* Keys that the kafka exporter and receiver share, as JSON. */ -}}
{{- define "tracing.kafka" -}}
{{- $k := .Values.kafka -}}
{{- $settings := dict "brokers" $k.brokers "topic" $k.topic -}}
{{- if $k.username -}}
{{- $sasl := dict "mechanism" $k.mechanism "username" $k.username "password_file" "/etc/tracing-kafka/password" -}}
{{- $_ := set $settings "auth" (dict "sasl" $sasl) -}}
{{- end -}}
{{- if $k.tls.enabled -}}
{{- $_ := set $settings "tls" (ternary (dict "ca_file" "/etc/tracing-kafka/ca.crt") dict (ne $k.tls.caSecret "")) -}}
{{- end -}}
{{- mustMergeOverwrite $settings (deepCopy $k.settings) | toJson -}}
{{- end -}}

{{- /* Secrets with the files in /etc/tracing-kafka, as a JSON list of projections. */ -}}
{{- define "tracing.kafkaSecrets" -}}
{{- $k := .Values.kafka -}}
{{- $list := list -}}
{{- if $k.existingSecret -}}
{{- $list = append $list (dict "secret" (dict "name" $k.existingSecret "items" (list (dict "key" $k.secretKey "path" "password")))) -}}
{{- end -}}
{{- if and $k.tls.enabled $k.tls.caSecret -}}
{{- $list = append $list (dict "secret" (dict "name" $k.tls.caSecret "items" (list (dict "key" $k.tls.caKey "path" "ca.crt")))) -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{- /* Addresses of the admin ports of all collectors and ingesters, which query services show on their status page, as JSON. */ -}}
{{- define "tracing.peers" -}}
{{- $root := . -}}
{{- $list := list -}}
{{- range $name := ternary (list "collector" "ingester") (list "collector") .Values.kafka.enabled -}}
{{- $set := printf "%s-%s" (include "tracing.fullname" $root) $name -}}
{{- range $i := until (int (get $root.Values $name).replicas) -}}
{{- $list = append $list (printf "http://%s-%d.%s-headless:%s" $set $i $set (include "tracing.adminPort" $name)) -}}
{{- end -}}
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
{{- $kafka := .Values.kafka -}}
{{- if and $kafka.enabled (not (include "tracing.usesClickHouse" .)) -}}
{{- fail "kafka.enabled: ingesters store in ClickHouse; set mode to split, and storage to clickhouse" -}}
{{- end -}}
{{- if and $kafka.enabled (not $kafka.brokers) -}}
{{- fail "kafka.brokers: no brokers; list at least one HOST:PORT" -}}
{{- end -}}
{{- if and $kafka.enabled (ne (empty $kafka.username) (empty $kafka.existingSecret)) -}}
{{- fail "kafka.username: a user needs a password; set both username and existingSecret, or neither" -}}
{{- end -}}
{{- if and $kafka.enabled $kafka.tls.caSecret (not $kafka.tls.enabled) -}}
{{- fail "kafka.tls.caSecret: not used without TLS; set kafka.tls.enabled to true" -}}
{{- end -}}
{{- if and $kafka.enabled (hasKey .Values.clickhouse.settings "sending_queue") -}}
{{- fail "clickhouse.settings.sending_queue: ingesters need no queue, because the topic is one; remove it" -}}
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
