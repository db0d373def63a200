{{- /* Names and labels. The full name leaves space for the longest suffix, -collector-headless, and the suffixes of pods. */ -}}

{{- define "tracing.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tracing.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 32 | trimSuffix "-" -}}
{{- end -}}

{{- define "tracing.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tracing.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select all pods of the release. They never change. */ -}}
{{- define "tracing.releaseSelector" -}}
app.kubernetes.io/name: {{ include "tracing.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* Labels that select the pods of a component: {root, name}. They never change. */ -}}
{{- define "tracing.selector" -}}
{{ include "tracing.releaseSelector" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- /* Labels of an object: {root, name}; name is the component or empty. */ -}}
{{- define "tracing.labels" -}}
{{ include "tracing.releaseSelector" .root }}
{{- with .name }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tracing.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := ternary $image.debugRepository $image.repository .values.debug -}}
{{- if and $image.digest (not .values.debug) -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}
