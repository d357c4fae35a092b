{{- define "scheduler.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Short enough for the names that are derived from it, which are labels in DNS. */ -}}
{{- define "scheduler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "scheduler.name" .) .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "scheduler.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "scheduler.peers" -}}
{{ include "scheduler.fullname" . }}-peers
{{- end }}

{{- define "scheduler.selector" -}}
app.kubernetes.io/name: {{ include "scheduler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "scheduler.labels" -}}
{{ include "scheduler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "scheduler.image" -}}
{{- $repository := required "image.repository: is required: push the image of the release to a registry of yours" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "scheduler.tlsSecret" -}}
{{ default (printf "%s-tls" (include "scheduler.fullname" .)) .Values.tls.secretName }}
{{- end }}

{{- define "scheduler.clusterSecret" -}}
{{ default (printf "%s-cluster-tls" (include "scheduler.fullname" .)) .Values.cluster.tlsSecretName }}
{{- end }}

{{- define "scheduler.keySecret" -}}
{{ default (printf "%s-seal-key" (include "scheduler.fullname" .)) .Values.cluster.keySecretName }}
{{- end }}

{{- /* The configuration file, as YAML. */ -}}
{{- define "scheduler.configuration" -}}
{{- $full := include "scheduler.fullname" . -}}
{{- $config := dict
  "data_dir" "/var/lib/scheduler/data"
  "listen" "0.0.0.0:8665"
  "tls_cert_file" "/etc/scheduler/tls/tls.crt"
  "tls_key_file" "/etc/scheduler/tls/tls.key"
  "log_format" "json"
-}}
{{- if gt (int .Values.replicas) 1 -}}
{{- $peers := list -}}
{{- range $i := until (int .Values.replicas) -}}
{{- $peers = append $peers (printf "%s-%d=https://%s-%d.%s.%s.svc:8666" $full $i $full $i (include "scheduler.peers" $) $.Release.Namespace) -}}
{{- end -}}
{{- $config = merge $config (dict
  "cluster_peers" $peers
  "cluster_listen" "0.0.0.0:8666"
  "cluster_ca_file" "/etc/scheduler/cluster/ca.crt"
  "cluster_cert_file" "/etc/scheduler/cluster/tls.crt"
  "cluster_key_file" "/etc/scheduler/cluster/tls.key"
  "peer_ca_file" "/etc/scheduler/tls/ca.crt"
  "key_file" "/etc/scheduler/key/seal.key"
) -}}
{{- end -}}
{{- if .Values.webhook.enabled -}}
{{- $config = merge $config (dict
  "webhook_listen" "0.0.0.0:8667"
  "webhook_url" (default (printf "https://%s.%s.svc:%d" $full .Release.Namespace (int .Values.webhook.port)) .Values.webhook.url)
) -}}
{{- end -}}
{{- $issuers := list -}}
{{- with .Values.auth.kubernetes -}}
{{- if .enabled -}}
{{- $admin := dict "claims" (dict "sub" (printf "system:serviceaccount:%s:%s-admin" $.Release.Namespace $full)) "role" "admin" -}}
{{- $issuers = append $issuers (dict
  "name" "kubernetes"
  "issuer" .issuer
  "jwks_url" "https://kubernetes.default.svc/openid/v1/jwks"
  "ca_file" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
  "token_file" "/var/run/secrets/kubernetes.io/serviceaccount/token"
  "audiences" (list .audience)
  "bindings" (prepend .bindings $admin)
) -}}
{{- end -}}
{{- end -}}
{{- $given := deepCopy .Values.config -}}
{{- with (dig "auth" "jwt" (list) $given) -}}
{{- $issuers = concat $issuers . -}}
{{- end -}}
{{- if $issuers -}}
{{- $given = set $given "auth" (set (get $given "auth" | default dict) "jwt" $issuers) -}}
{{- end -}}
{{ merge $given $config | toYaml }}
{{- end }}
