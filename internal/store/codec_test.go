package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func testCodec(t testing.TB, fill byte) *Codec {
	t.Helper()
	codec, err := NewCodec(bytes.Repeat([]byte{fill}, keyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func secretObjects() []api.Object {
	cluster := &api.Cluster{Metadata: api.Metadata{Name: "c1", UID: "u", Generation: 3, Labels: map[string]string{"sealed": "not a secret"}}}
	cluster.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret("kubeconfig-in-clear")}
	provider := &api.MetricsProvider{Metadata: api.Metadata{Name: "prom", Namespace: "shop"}}
	provider.Spec.Type = api.ProviderPrometheus
	provider.Spec.Prometheus = &api.PrometheusSpec{URL: "http://prometheus:9090"}
	provider.Spec.BearerToken = api.NewSecret("token-in-clear")
	provider.Spec.Headers = map[string]api.Secret{"X-Scope": api.NewSecret("header-in-clear"), "X-Other.Dot": api.NewSecret("other-in-clear")}
	objects := []api.Object{cluster, provider}
	for _, object := range objects {
		object.SetDefaults()
	}
	return objects
}

func TestSpecSurvivesTheStore(t *testing.T) {
	codec := testCodec(t, 1)
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	weight, stickiness, count := 0.0, 0.5, int64(0)
	cluster := &api.Cluster{Metadata: api.Metadata{Name: "c", UID: "u", Generation: 2, CreatedAt: &created, Labels: map[string]string{"a/b": "ü\"<>"}, RescheduleRequests: 4}}
	cluster.Spec.Metrics = []api.MetricRef{{Name: "m", Weight: &weight}}
	cluster.Spec.Capacity = api.Quantities{"cpu": "1500m"}
	cluster.Spec.Health = &api.HealthSpec{URL: "http://h"}
	placement := &api.Placement{Metadata: api.Metadata{Name: "p", Namespace: "n"}}
	placement.Spec.NumberOfClusters = &count
	placement.Spec.LabelConstraints = []string{"a is b"}
	placement.Spec.Metrics = &api.MetricsStrategy{Stickiness: &stickiness}
	placement.Spec.MinImprovement = 0.25
	metric := &api.Metric{Metadata: api.Metadata{Name: "m"}}
	metric.Spec.Min, metric.Spec.Max = &weight, &stickiness
	metric.Spec.MetricsProvider = api.MetricProviderRef{Name: "p", Metric: "up{a=\"b\"}"}
	for _, object := range append(secretObjects(), cluster, placement, metric) {
		object.SetDefaults()
		t.Run(api.KeyOf(object).String(), func(t *testing.T) {
			object.Meta().ResourceVersion = "17"
			value, err := codec.EncodeSpec(object)
			if err != nil {
				t.Fatal(err)
			}
			got, err := codec.DecodeSpec(object.ObjectKind(), value)
			if err != nil {
				t.Fatal(err)
			}
			if got.Meta().ResourceVersion != "" {
				t.Errorf("the resource version was stored: %q", got.Meta().ResourceVersion)
			}
			got.Meta().ResourceVersion = "17"
			if !api.SameIntent(object, got) {
				t.Errorf("got %s, stored %s", show(got.SpecPart()), show(object.SpecPart()))
			}
			if show(got.Meta()) != show(object.Meta()) {
				t.Errorf("got %s, stored %s", show(got.Meta()), show(object.Meta()))
			}
		})
	}
}

func show(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestStatusSurvivesTheStore(t *testing.T) {
	codec := testCodec(t, 1)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	p := &api.Placement{}
	p.Status.Clusters = []string{"a", "b"}
	p.Status.Decisions = []api.Decision{{Cluster: "a", Score: 0.1 + 0.2, Rank: 1, Since: &at}}
	api.SetCondition(&p.Status.Conditions, api.Condition{Type: "Scheduled", Status: api.ConditionTrue}, at)
	value, err := codec.EncodeStatus(p)
	if err != nil {
		t.Fatal(err)
	}
	got := &api.Placement{}
	got.Status.Clusters = []string{"x", "y", "z"}
	shared := got.Copy().(*api.Placement)
	got.Status.ObservedRescheduleRequests = 9
	if err := codec.DecodeStatus(got, value); err != nil {
		t.Fatal(err)
	}
	if show(got.Status) != show(p.Status) {
		t.Fatalf("got %s, stored %s", show(got.Status), show(p.Status))
	}
	if shared.Status.Clusters[0] != "x" {
		t.Fatal("decoding modified a value that the object shares with its copy")
	}
}

func TestSecretsAreSealedEverywhere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir = dir })
	codec := testCodec(t, 1)
	ctx := timeout(t)
	for _, object := range secretObjects() {
		value, err := codec.EncodeSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(ctx, Write{Key: api.KeyOf(object), Value: value, Expect: 0}); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(value, []byte("in-clear")) {
			t.Errorf("the stored value of %s contains a secret in clear text: %s", api.KeyOf(object), value)
		}
	}
	// Compression could hide a secret from a search of the files.
	all, err := s.client.Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if value, err := openEnvelope(kv); bytes.Contains(value, []byte("in-clear")) || err != nil && string(kv.Key) != formatKey {
			t.Errorf("%s contains a secret in clear text, or is damaged: %s, %v", kv.Key, value, err)
		}
	}
	var archive bytes.Buffer
	if err := s.Backup(ctx, &archive, nil); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(archive.Bytes(), []byte("in-clear")) {
		t.Error("the backup contains a secret in clear text")
	}
	if !bytes.Contains(archive.Bytes(), []byte(etcdKey(api.KeyOf(secretObjects()[0]), Spec))) {
		t.Error("the backup does not contain the object")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("in-clear")) {
			t.Errorf("%s contains a secret in clear text", path)
		}
		return err
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestWrongKeyIsReported(t *testing.T) {
	object := secretObjects()[0]
	value, err := testCodec(t, 1).EncodeSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	_, err = testCodec(t, 2).DecodeSpec(object.ObjectKind(), value)
	if !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), `spec.kubernetes.kubeconfig of cluster "c1"`) {
		t.Fatalf("error %v, want ErrWrongKey with the field", err)
	}
}

func TestMovedOrChangedSecretIsRefused(t *testing.T) {
	codec := testCodec(t, 1)
	provider := secretObjects()[1].(*api.MetricsProvider)
	seal := func(p *api.MetricsProvider) specDocument {
		value, err := codec.EncodeSpec(p)
		if err != nil {
			t.Fatal(err)
		}
		var document specDocument
		if err := json.Unmarshal(value, &document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	other := provider.Copy().(*api.MetricsProvider)
	other.Metadata.Name = "other"
	const bearer, header = "spec.bearer_token", `spec.headers["X-Scope"]`
	cases := map[string]func(*specDocument){
		"from another object": func(d *specDocument) { d.Sealed[bearer] = seal(other).Sealed[bearer] },
		"from another field":  func(d *specDocument) { d.Sealed[bearer], d.Sealed[header] = d.Sealed[header], d.Sealed[bearer] },
		"whole object moved":  func(d *specDocument) { d.Metadata.Namespace = "elsewhere" },
		"changed character": func(d *specDocument) {
			d.Sealed[bearer] = strings.ToUpper(d.Sealed[bearer][:30]) + d.Sealed[bearer][30:]
		},
		"cut short": func(d *specDocument) { d.Sealed[bearer] = d.Sealed[bearer][:20] },
		"no format": func(d *specDocument) { d.Sealed[bearer] = "token" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			document := seal(provider)
			change(&document)
			if _, err := codec.DecodeSpec(api.KindMetricsProvider, []byte(show(document))); !errors.Is(err, ErrTampered) {
				t.Fatalf("error %v, want ErrTampered", err)
			}
		})
	}
}

func TestDamagedValuesAreRefused(t *testing.T) {
	codec := testCodec(t, 1)
	for _, value := range []string{"", "{", "[]", `{"spec":3}`, `{"metadata":{"name":7}}`, `{"sealed":{"a":1}}`} {
		if _, err := codec.DecodeSpec(api.KindCluster, []byte(value)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, err := codec.DecodeSpec("nothing", []byte("{}")); !errors.Is(err, ErrDamaged) {
		t.Errorf("unknown kind: error %v, want ErrDamaged", err)
	}
	if err := codec.DecodeStatus(&api.Cluster{}, []byte(`{"state":1}`)); !errors.Is(err, ErrDamaged) {
		t.Errorf("invalid status: error %v, want ErrDamaged", err)
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "key")
	key, err := readKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	again, err := readKeyFile(path)
	if err != nil || !bytes.Equal(key, again) {
		t.Fatalf("the second read returned another key, %v", err)
	}
	other, err := readKeyFile(path + "2")
	if err != nil || bytes.Equal(key, other) {
		t.Fatalf("two files contain the same key, %v", err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCodec(path); err == nil || !strings.Contains(err.Error(), "must hold 64 hexadecimal digits") {
		t.Fatalf("unexpected error %v", err)
	}
}

func FuzzDecodeSpec(f *testing.F) {
	codec := testCodec(f, 1)
	for _, object := range secretObjects() {
		value, err := codec.EncodeSpec(object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(object.ObjectKind()), value)
	}
	f.Add("placement", []byte(`{"metadata":{"name":"p"},"spec":{"metrics":{"stickiness":0.5}},"sealed":{"spec.x":"v1.a.b"}}`))
	f.Add("metrics_provider", []byte(`{"sealed":{"spec.headers[\"A\"]":"v1.00000000.AAAA"}}`))
	f.Add("metrics_provider", []byte(`{"spec":{"bearer_token":null,"headers":{"A":null},"influx":{"token":null}}}`))
	f.Fuzz(func(t *testing.T, kind string, value []byte) {
		object, err := codec.DecodeSpec(api.Kind(kind), value)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongKey) && !errors.Is(err, ErrTampered) {
				t.Fatalf("error %v, want ErrDamaged, ErrWrongKey or ErrTampered", err)
			}
			return
		}
		// What can be decoded can be encoded and decoded again, and stays the same.
		again, err := codec.EncodeSpec(object)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		back, err := codec.DecodeSpec(api.Kind(kind), again)
		if err != nil {
			t.Fatalf("decode %s: %v", again, err)
		}
		if !api.SameIntent(object, back) {
			t.Fatalf("%s became %s after a round trip", show(object.SpecPart()), show(back.SpecPart()))
		}
	})
}

func FuzzDecodeStatus(f *testing.F) {
	codec := testCodec(f, 1)
	f.Add("cluster", []byte(`{"state":"online","metrics":[{"name":"m","value":1.5}],"last_heartbeat_at":"2026-01-02T03:04:05Z"}`))
	f.Add("placement", []byte(`{"clusters":["a"],"decisions":[{"cluster":"a","score":1e-7,"rank":1}]}`))
	f.Fuzz(func(t *testing.T, kind string, value []byte) {
		info, ok := api.LookupKind(api.Kind(kind))
		if !ok {
			return
		}
		object := info.New()
		if err := codec.DecodeStatus(object, value); err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("error %v, want ErrDamaged", err)
			}
			return
		}
		again, err := codec.EncodeStatus(object)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		back := info.New()
		if err := codec.DecodeStatus(back, again); err != nil || show(back.StatusPart()) != show(object.StatusPart()) {
			t.Fatalf("%s became %s after a round trip, %v", again, show(back.StatusPart()), err)
		}
	})
}

func TestSealedTextOpensOnlyInItsPlace(t *testing.T) {
	codec := testCodec(t, 1)
	key := api.Key{Kind: "own", Name: "one"}
	sealed := codec.Seal(key, "private_key", "hush-hush")
	if strings.Contains(sealed, "hush") {
		t.Fatalf("the sealed text is readable: %s", sealed)
	}
	if text, err := codec.Unseal(key, "private_key", sealed); err != nil || text != "hush-hush" {
		t.Errorf("Unseal() = %q, %v", text, err)
	}
	if _, err := codec.Unseal(key, "secret", sealed); !errors.Is(err, ErrTampered) {
		t.Errorf("Unseal() for another field: error %v, want ErrTampered", err)
	}
	if _, err := codec.Unseal(api.Key{Kind: "own", Name: "two"}, "private_key", sealed); !errors.Is(err, ErrTampered) {
		t.Errorf("in another record: %v", err)
	}
}
