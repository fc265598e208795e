{{- define "fencepost.name" -}}
{{- printf "%s" (ternary .Release.Name (printf "%s-fencepost" .Release.Name) (contains "fencepost" .Release.Name)) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fencepost.selector" -}}
app.kubernetes.io/name: fencepost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fencepost.labels" -}}
{{ include "fencepost.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "fencepost.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "fencepost.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Where other nodes come in, and where metrics are: the port for operators, where there is one. */}}
{{- define "fencepost.peerPort" -}}
{{- .Values.adminPort | default 3000 | int -}}
{{- end -}}
