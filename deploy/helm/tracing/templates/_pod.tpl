{{- /* The pod of a component: {root, name, values, volume}; volume is the source of the volume data, or empty for a claim template. */ -}}
{{- define "tracing.pod" -}}
{{- $root := .root -}}
{{- $v := .values -}}
{{- $secret := and (include "tracing.clickhouseClient" .) $root.Values.clickhouse.existingSecret -}}
{{- $kafka := and (include "tracing.kafkaClient" .) (include "tracing.kafkaSecrets" $root | fromJsonArray) -}}
metadata:
  labels:
    {{- include "tracing.labels" . | nindent 4 }}
    {{- with $v.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: tracing
    {{- if not $root.Values.reload }}
    checksum/config: {{ printf "%s%s" (include "tracing.config" .) (toJson $root.Values.sampling.strategies) | sha256sum }}
    {{- end }}
    {{- with $v.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "tracing.serviceAccountName" $root }}
  automountServiceAccountToken: false
  # Kubernetes would set variables such as QUERY_PORT for services, which are also flags of the program.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" }}
  {{- with get $v $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $v.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: tracing
      {{- include "tracing.container" . | nindent 6 }}
  volumes:
    - name: config
      configMap:
        name: {{ include "tracing.fullname" $root }}-{{ .name }}
    {{- with .volume }}
    - name: data
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if $secret }}
    - name: clickhouse
      secret:
        secretName: {{ $secret }}
        items: [{key: {{ $root.Values.clickhouse.secretKey | quote }}, path: password}]
    {{- end }}
    {{- with $kafka }}
    - name: kafka
      projected:
        sources:
          {{- toYaml . | nindent 10 }}
    {{- end }}
    {{- with $v.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "tracing.container" -}}
{{- $root := .root -}}
{{- $v := .values -}}
image: {{ include "tracing.image" . | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
{{- if $v.debug }}
# As in the image, but reachable only through kubectl port-forward.
command: [/usr/bin/dlv, exec, /usr/bin/tracing, --headless, --listen=127.0.0.1:12345, --api-version=2, --accept-multiclient, --only-same-user=false, --continue, --]
{{- end }}
args:
  - {{ include "tracing.preset" . }}
  - --config
  - /etc/tracing/config.yaml
  {{- with $v.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  - name: TRACING_LISTEN_HOST
    value: {{ $root.Values.listenHost | quote }}
  - name: TRACING_DATA_DIR
    value: /data
  {{- if and (eq .name "query") (not (include "tracing.usesClickHouse" $root)) }}
  - name: TRACING_STORAGE_HOST
    value: {{ include "tracing.fullname" $root }}-storage
  {{- end }}
  {{- if and $root.Values.zipkin.enabled (eq .name (include "tracing.intake" $root)) }}
  - name: COLLECTOR_ZIPKIN_HOST_PORT
    value: {{ ternary (printf "[%s]" $root.Values.listenHost) $root.Values.listenHost (contains ":" $root.Values.listenHost) }}:9411
  {{- end }}
  {{- with $v.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $v.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- $hostPorts := and (eq .name "agent") $v.hostPorts }}
  {{- range include "tracing.ports" . | fromJsonArray }}
  - name: {{ .name }}
    containerPort: {{ .port }}
    protocol: {{ .protocol }}
    {{- if and $hostPorts (eq .group "agent") }}
    hostPort: {{ .port }}
    {{- end }}
  {{- end }}
{{- if not $v.debug }}
readinessProbe:
  {{- toYaml $v.readinessProbe | nindent 2 }}
livenessProbe:
  {{- toYaml $v.livenessProbe | nindent 2 }}
{{- end }}
{{- if semverCompare ">=1.30-0" $root.Capabilities.KubeVersion.Version }}
lifecycle:
  preStop:
    sleep: {seconds: 5} # until services and load balancers send no more requests
{{- end }}
resources:
  {{- toYaml $v.resources | nindent 2 }}
volumeMounts:
  - name: config
    mountPath: /etc/tracing
    readOnly: true
  - name: data
    mountPath: /data
  {{- if and (include "tracing.clickhouseClient" .) $root.Values.clickhouse.existingSecret }}
  - name: clickhouse
    mountPath: /etc/tracing-clickhouse
    readOnly: true
  {{- end }}
  {{- if and (include "tracing.kafkaClient" .) (include "tracing.kafkaSecrets" $root | fromJsonArray) }}
  - name: kafka
    mountPath: /etc/tracing-kafka
    readOnly: true
  {{- end }}
  {{- with $v.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
