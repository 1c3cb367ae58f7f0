{{/* The name of this elector's objects: that of the release where it has the word elector in it. Pods get 16 more letters. */}}
{{- define "elector.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "elector" .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-elector" (.Release.Name | trunc 38 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "elector.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "elector.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "elector.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is empty, and serviceAccount.create is false: name the account that is there" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What a selector never changes. */}}
{{- define "elector.selectorLabels" -}}
app.kubernetes.io/name: elector
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of all objects that the manifests do not have. */}}
{{- define "elector.chartLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels of an object of this elector. */}}
{{- define "elector.labels" -}}
{{ include "elector.selectorLabels" . }}
app.kubernetes.io/part-of: elector
{{ include "elector.chartLabels" . }}
{{- end -}}

{{/* The labels of an object that is the same for each elector of the release's kind. */}}
{{- define "elector.sharedLabels" -}}
app.kubernetes.io/name: elector
app.kubernetes.io/part-of: elector
{{ include "elector.chartLabels" . }}
{{- end -}}

{{- define "elector.image" -}}
{{- $tag := .Values.image.tag | default (ternary "" .Chart.AppVersion (ne .Values.image.digest "")) -}}
{{- .Values.image.repository -}}
{{- with $tag }}:{{ . }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "elector.validationActions" -}}
{{- ternary "[Audit, Warn]" "[Deny]" (eq .Values.policies.mode "audit") -}}
{{- end -}}

{{/* The address of the figures: on loopback, for kubectl port-forward, unless somebody is to scrape them. */}}
{{- define "elector.metricsBind" -}}
{{- .Values.metrics.bind | default (ternary ":8080" "127.0.0.1:8080" .Values.monitoring.enabled) -}}
{{- end -}}

{{/* The port of the figures, where others than the Pod itself can reach it. */}}
{{- define "elector.metricsPort" -}}
{{- $bind := include "elector.metricsBind" . -}}
{{- if and (contains ":" $bind) (not (hasPrefix "127." $bind)) (not (hasPrefix "[::1]" $bind)) -}}
{{- regexFind "[0-9]+$" $bind -}}
{{- end -}}
{{- end -}}

{{/* What the schema cannot say. */}}
{{- define "elector.validate" -}}
{{- if and (eq .Values.mode "namespaced") (not .Values.namespaces) -}}
{{- fail "mode is namespaced and namespaces is empty: name the namespaces that are served" -}}
{{- end -}}
{{- if and (ne .Values.mode "namespaced") .Values.namespaces -}}
{{- fail (printf "namespaces is set and mode is %s, which serves all of them: the mode namespaced serves some" .Values.mode) -}}
{{- end -}}
{{- $ours := list "--leader-elect" "--leader-elect-resource-name" "--logging-format" "--health-probe-bind-address" "--metrics-bind-address" "--namespace" "--replace-builtin" -}}
{{- range .Values.extraArgs -}}
{{- $flag := regexFind "^[^=]*" . -}}
{{- if has $flag $ours -}}
{{- fail (printf "extraArgs has %s, which the chart sets: a flag that is given twice is refused" $flag) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.monitoring.enabled (ne .Values.mode "cluster-wide") (not (include "elector.metricsPort" .)) -}}
{{- fail (printf "monitoring.enabled is true and metrics.bind is %s, which nobody can scrape: use an address such as :8080" .Values.metrics.bind) -}}
{{- end -}}
{{- end -}}
