package api

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestSecretIsNeverShown prints, marshals and logs a secret in every way.
func TestSecretIsNeverShown(t *testing.T) {
	const text = "hunter2"
	provider := &MetricsProvider{Metadata: Metadata{Name: "p"}}
	provider.Spec = MetricsProviderSpec{
		Type: "unknown", BearerToken: NewSecret(text + "\n"), CACert: "x",
		Headers: map[string]Secret{"Authorization": NewSecret(text + "\n"), "bad name": NewSecret(text)},
	}
	cluster := &Cluster{Spec: ClusterSpec{Kubernetes: &KubernetesSpec{Kubeconfig: NewSecret(text)}}}
	values := map[string]any{
		"secret": NewSecret(text), "pointer": new(NewSecret(text)), "list": []Secret{NewSecret(text)},
		"map": map[string]Secret{"a": NewSecret(text)}, "provider": provider, "cluster": cluster, "spec": cluster.Spec,
		"kubernetes": *cluster.Spec.Kubernetes, "errors": provider.Validate(),
	}
	for name, v := range values {
		shown := map[string]string{}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d", "%t", "%10s", "%p"} {
			shown[verb] = fmt.Sprintf(verb, v)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).LogAttrs(t.Context(), slog.LevelInfo, "attribute", slog.Any("g", v))
		slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "v", v)
		shown["slog"] = log.String()
		a, _ := stdjson.Marshal(v)
		b, _ := json.Marshal(v)
		shown["json"], shown["json v2"] = string(a), string(b)
		shown["error"] = fmt.Errorf("failed: %w %v", errors.New("x"), v).Error()
		for how, out := range shown {
			if strings.Contains(out, text) || strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", text)) {
				t.Errorf("%s as %s contains the secret: %s", name, how, out)
			}
		}
	}
	if got := fmt.Sprintf("%s|%v|%#v", NewSecret(text), NewSecret(""), NewSecret(text)); got != "(secret)||(secret)" {
		t.Errorf("printed %q", got)
	}
	if got := NewSecret(text).GoString(); got != "api.Secret((secret))" {
		t.Errorf("GoString %q", got)
	}
}

func TestSecretUnmarshal(t *testing.T) {
	o, err := Decode([]byte(`{"kind":"cluster","metadata":{"name":"c"},"spec":{"kubernetes":{"kubeconfig":"text"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.(*Cluster).Spec.Kubernetes.Kubeconfig.Reveal(); got != "text" {
		t.Errorf("decoded as %q, want text", got)
	}
	out, err := stdjson.Marshal(o)
	if err != nil || strings.Contains(string(out), `kubeconfig`) && !strings.Contains(string(out), `"kubeconfig":null`) {
		t.Errorf("encoded as %s (%v), want no secret", out, err)
	}
	again, err := Decode(out)
	if err != nil || !again.(*Cluster).Spec.Kubernetes.Kubeconfig.Withheld() || again.(*Cluster).Spec.Kubernetes.Kubeconfig.Reveal() != "" {
		t.Errorf("decoded again as %v, want it withheld", err)
	}
	_, err = Decode([]byte(`{"kind":"cluster","metadata":{"name":"c"},"spec":{"kubernetes":{"kubeconfig":{"a":"hunter2"}}}}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "spec.kubernetes.kubeconfig") {
		t.Errorf("got %v, want an error that names the field, without the text", err)
	}
}
