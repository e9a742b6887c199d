{{- define "mnemon.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "mnemon.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mnemon.labels" -}}
{{ include "mnemon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "mnemon.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{/* Entry of a variable whose value is in a Secret. */}}
{{- define "mnemon.secretKey" -}}
valueFrom:
  secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end -}}

{{/* Login to NATS of a role, as YAML. That of operator and gateway is the worker's, unless they have one. */}}
{{- define "mnemon.login" -}}
{{- $own := index .root.Values.nats .role -}}
{{- $has := or $own.urlSecret.name $own.credentialsSecret.name $own.nkeySeedSecret.name -}}
{{- ternary $own .root.Values.nats.worker (not (empty $has)) | toYaml -}}
{{- end -}}

{{/* Variables that the values name, as a map: name to entry. Arguments: root, role, env. */}}
{{- define "mnemon.variables" -}}
{{- $values := .root.Values -}}
{{- $login := include "mnemon.login" . | fromYaml -}}
MNEMON_NATS_URL:
{{- if $login.urlSecret.name }}
  {{- include "mnemon.secretKey" $login.urlSecret | nindent 2 }}
{{- else }}
  value: {{ $values.nats.url | quote }}
{{- end }}
MNEMON_REPLICAS: {value: {{ $values.nats.replicas | quote }}}
{{- if $login.credentialsSecret.name }}
MNEMON_NATS_CREDENTIALS: {value: {{ printf "/etc/mnemon/login/%s" $login.credentialsSecret.key | quote }}}
{{- else if $login.nkeySeedSecret.name }}
MNEMON_NATS_NKEY_SEED: {value: {{ printf "/etc/mnemon/login/%s" $login.nkeySeedSecret.key | quote }}}
{{- end }}
{{- with $values.nats.tls }}
{{- if .secretName }}
{{- if .authority }}
MNEMON_NATS_CA: {value: {{ printf "/etc/mnemon/tls/%s" .authority | quote }}}
{{- end }}
{{- if .certificate }}
MNEMON_NATS_CERTIFICATE: {value: {{ printf "/etc/mnemon/tls/%s" .certificate | quote }}}
MNEMON_NATS_CERTIFICATE_KEY: {value: {{ printf "/etc/mnemon/tls/%s" .certificateKey | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.postgresql }}
{{- if .urlSecret.name }}
DATABASE_URL:
  {{- include "mnemon.secretKey" .urlSecret | nindent 2 }}
{{- else }}
PG_HOST: {value: {{ .host | quote }}}
PG_PORT: {value: {{ .port | quote }}}
PG_DB: {value: {{ .database | quote }}}
PG_USER: {value: {{ .user | quote }}}
{{- if .passwordSecret.name }}
PG_PASSWORD:
  {{- include "mnemon.secretKey" .passwordSecret | nindent 2 }}
{{- end }}
{{- end }}
MNEMON_DATABASE_SCHEMA: {value: {{ .schema | quote }}}
{{- end }}
MNEMON_QDRANT_URL: {value: {{ $values.qdrant.url | quote }}}
{{- if $values.qdrant.apiKeySecret.name }}
MNEMON_QDRANT_API_KEY:
  {{- include "mnemon.secretKey" $values.qdrant.apiKeySecret | nindent 2 }}
{{- end }}
{{- if $values.erasureRegister }}
MNEMON_ERASURE_REGISTER: {value: {{ $values.erasureRegister | quote }}}
{{- end }}
{{- range $name, $value := $values.env }}
{{ $name }}: {value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{/* env and envFrom of a container. Arguments: root, role, env, more (entries by name), secrets. */}}
{{- define "mnemon.environment" -}}
{{- $entries := include "mnemon.variables" . | fromYaml -}}
{{- range $name, $entry := .more -}}
{{- $_ := set $entries $name $entry -}}
{{- end -}}
{{- range $name, $value := .env -}}
{{- $_ := set $entries $name (dict "value" (toString $value)) -}}
{{- end -}}
env:
{{- range $name, $entry := $entries }}
  - name: {{ $name }}
    {{- toYaml $entry | nindent 4 }}
{{- end }}
{{- with concat .root.Values.envFromSecrets (default list .secrets) }}
envFrom:
{{- range . }}
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Fields of every container. Arguments: root, claim. */}}
{{- define "mnemon.container" -}}
image: {{ include "mnemon.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- $login := include "mnemon.login" . | fromYaml }}
  {{- if or $login.credentialsSecret.name $login.nkeySeedSecret.name }}
  - {name: {{ .role }}-login, mountPath: /etc/mnemon/login, readOnly: true}
  {{- end }}
  {{- if .root.Values.nats.tls.secretName }}
  - {name: nats-tls, mountPath: /etc/mnemon/tls, readOnly: true}
  {{- end }}
  {{- if .claim }}
  - {name: backup, mountPath: /backup}
  {{- end }}
  {{- with .root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Fields of every pod. Arguments: root, roles, claim. */}}
{{- define "mnemon.pod" -}}
{{- $root := .root -}}
# The variables of service links, such as MNEMON_METRICS_PORT, would be settings of mnemon.
enableServiceLinks: false
automountServiceAccountToken: false
{{- with $root.Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ $root.Values.temporaryFiles | quote }}}
  {{- range $role := .roles }}
  {{- $login := include "mnemon.login" (dict "root" $root "role" $role) | fromYaml }}
  {{- with ternary $login.credentialsSecret $login.nkeySeedSecret (not (empty $login.credentialsSecret.name)) }}
  {{- if .name }}
  - name: {{ $role }}-login
    secret:
      secretName: {{ .name | quote }}
      defaultMode: 0440
      items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]
  {{- end }}
  {{- end }}
  {{- end }}
  {{- with $root.Values.nats.tls.secretName }}
  - name: nats-tls
    secret: {secretName: {{ . | quote }}, defaultMode: 0440}
  {{- end }}
  {{- with .claim }}
  - name: backup
    persistentVolumeClaim: {claimName: {{ . | quote }}}
  {{- end }}
  {{- with $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Labels in a query of Prometheus that select this installation. */}}
{{- define "mnemon.matchers" -}}
{{- $default := printf "namespace=%q,service=%q" .Release.Namespace (printf "%s-metrics" (include "mnemon.fullname" .)) -}}
{{- default $default .Values.autoscaling.prometheus.matchers -}}
{{- end -}}

{{/* Whether KEDA sets the number of processes of a consumer. Arguments: root, consumer. */}}
{{- define "mnemon.isAutoscaled" -}}
{{- $own := default dict .consumer.autoscaling -}}
{{- if and .root.Values.autoscaling.enabled .consumer.enabled $own.enabled }}true{{ end -}}
{{- end -}}
