package api

import (
	stdjson "encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// complete holds documents with all secrets of each kind.
var complete = map[Kind][]string{
	KindCluster: {`{"kubernetes":{"kubeconfig":"one"}}`},
	KindCloud: {
		`{"openstack":{"auth_url":"https://keystone:5000/v3","username":"u","password":"one"}}`,
		`{"openstack":{"auth_url":"https://keystone:5000/v3","application_credential_id":"u","application_credential_secret":"one"}}`,
	},
	KindOpenStackProject: {
		`{"openstack":{"auth_url":"https://keystone:5000/v3","user_id":"u","password":"one"}}`,
		`{"openstack":{"auth_url":"https://keystone:5000/v3","application_credential_id":"u","application_credential_secret":"one"}}`,
	},
	KindMetricsProvider: {
		`{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b","token":"one"},"bearer_token":"one","headers":{"X-A":"one","X-B":"one"}}`,
	},
}

func specOf(t *testing.T, kind Kind, spec string) (Object, map[string]any) {
	t.Helper()
	text := `{"kind":"` + string(kind) + `","metadata":{"name":"a"},"spec":` + spec + `}`
	object, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := stdjson.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return object, document
}

// Every secret must be returned by Secrets, set by SetSecret and kept by KeepSecrets.
func TestEverySecretIsKept(t *testing.T) {
	for _, info := range Kinds {
		want, have := map[string]bool{}, map[string]bool{}
		for _, field := range SecretFields(info.Kind) {
			want[field.Field] = true
		}
		for _, spec := range complete[info.Kind] {
			current, _ := specOf(t, info.Kind, spec)
			for field := range current.Secrets() {
				name, _, _ := strings.Cut(field, "[")
				have[name] = true
			}
			for how, text := range map[string]string{
				"as it is shown": shownSpec(t, current),
				"absent":         strings.NewReplacer(`,"token":"one"`, "", `,"password":"one"`, "", `,"application_credential_secret":"one"`, "", `"kubeconfig":"one"`, "", `,"bearer_token":"one","headers":{"X-A":"one","X-B":"one"}`, "").Replace(spec),
			} {
				if strings.Contains(text, `"one"`) {
					t.Fatalf("%s still contains a secret: %s", how, text)
				}
				next, document := specOf(t, info.Kind, text)
				if errs := KeepSecrets(next, current, document); len(errs) > 0 || !maps.Equal(next.Secrets(), current.Secrets()) {
					t.Errorf("%s, %s: kept %v (%v), want %v", info.Kind, how, keysOf(next), errs, keysOf(current))
				}
			}
			next, document := specOf(t, info.Kind, strings.ReplaceAll(spec, `"one"`, `""`))
			if errs := KeepSecrets(next, current, document); len(errs) > 0 || len(next.Secrets()) > 0 {
				t.Errorf("%s with empty texts: kept %v (%v), want none", info.Kind, keysOf(next), errs)
			}
			next, document = specOf(t, info.Kind, strings.ReplaceAll(spec, `"one"`, `"two"`))
			if errs := KeepSecrets(next, current, document); len(errs) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(next.Secrets())), func(s Secret) bool { return s.Reveal() != "two" }) {
				t.Errorf("%s with other texts: got %v (%v)", info.Kind, keysOf(next), errs)
			}
		}
		if !maps.Equal(want, have) {
			t.Errorf("%s has the secrets %v, but the documents of this test have %v", info.Kind, want, have)
		}
	}
}

func shownSpec(t *testing.T, object Object) string {
	t.Helper()
	data, err := stdjson.Marshal(object.SpecPart())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func keysOf(object Object) []string { return slices.Sorted(maps.Keys(object.Secrets())) }

func TestSecretsThatAreNotKept(t *testing.T) {
	influx, cloud, project := complete[KindMetricsProvider][0], complete[KindCloud][0], complete[KindCloud][1]
	all := []string{"spec.bearer_token", `spec.headers["X-A"]`, `spec.headers["X-B"]`, "spec.influx.token"}
	for _, test := range []struct {
		name          string
		kind          Kind
		current, next string
		kept          []string
		refused       []string
	}{
		{"block removed", KindCluster, complete[KindCluster][0], `{}`, nil, nil},
		{"block is null", KindCluster, complete[KindCluster][0], `{"kubernetes":null}`, nil, nil},
		{"another region", KindCluster, complete[KindCluster][0], `{"region":"eu","kubernetes":{}}`, []string{"spec.kubernetes.kubeconfig"}, nil},
		{"credentials removed", KindCloud, cloud, `{}`, nil, nil},
		{"user removed", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone:5000/v3"}}`, nil, nil},
		{"an application credential in place of the user", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone:5000/v3","application_credential_id":"i","application_credential_secret":"s"}}`, []string{"spec.openstack.application_credential_secret"}, nil},
		{"a user in place of the application credential", KindCloud, project, `{"openstack":{"auth_url":"https://keystone:5000/v3","username":"i"}}`, nil, nil},
		{"another address", KindCloud, cloud, `{"openstack":{"auth_url":"https://evil:5000/v3","username":"u"}}`, nil, []string{"spec.openstack.password"}},
		{"another scheme", KindCloud, cloud, `{"openstack":{"auth_url":"http://keystone:5000/v3","username":"u"}}`, nil, []string{"spec.openstack.password"}},
		{"another port", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone/v3","username":"u","password":null}}`, nil, []string{"spec.openstack.password"}},
		{"another path and case", KindCloud, cloud, `{"openstack":{"auth_url":"HTTPS://Keystone:5000/identity/v3","username":"u"}}`, []string{"spec.openstack.password"}, nil},
		{"look-alike address", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone:5000@evil/v3","username":"u"}}`, nil, []string{"spec.openstack.password"}},
		{"another address, secret removed", KindCloud, cloud, `{"openstack":{"auth_url":"https://evil:5000/v3","username":"u","password":""}}`, nil, nil},
		{"certificates no longer checked", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone:5000/v3","username":"u","insecure_skip_verify":true}}`, nil, []string{"spec.openstack.password"}},
		{"other certificate authorities", KindCloud, cloud, `{"openstack":{"auth_url":"https://keystone:5000/v3","username":"u","ca_cert":"mine"}}`, nil, []string{"spec.openstack.password"}},
		{"certificates checked again", KindCloud, strings.Replace(cloud, `"auth_url"`, `"insecure_skip_verify":true,"auth_url"`, 1),
			`{"openstack":{"auth_url":"https://keystone:5000/v3","username":"u","ca_cert":"mine"}}`, []string{"spec.openstack.password"}, nil},
		{"another address of a provider", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://evil:8086","bucket":"b"}}`, nil, all},
		{"address removed, to set another one later", KindMetricsProvider, influx, `{"type":"static","static":{}}`, nil, all[:3]},
		{"address of a provider that had none", KindMetricsProvider, `{"type":"static","static":{},"bearer_token":"t"}`, `{"type":"prometheus","prometheus":{"url":"https://evil"}}`, nil, all[:1]},
		{"another cluster in the URL", KindMetricsProvider, `{"type":"http_json","http_json":{"url":"https://a/${region}","value":""},"bearer_token":"one"}`,
			`{"type":"http_json","http_json":{"url":"https://a/${labels.x}","value":""}}`, all[:1], nil},
		{"another type", KindMetricsProvider, influx, `{"type":"prometheus","prometheus":{"url":"https://influx:8086"}}`, all[:3], nil},
		{"one header less", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b"},"headers":{"X-A":null}}`, []string{all[0], all[1], all[3]}, nil},
		{"header without a value", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b"},"headers":{"X-A":null,"X-B":""}}`, []string{all[0], all[1], all[3]}, nil},
		{"no headers", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b"},"headers":{}}`, []string{all[0], all[3]}, nil},
		{"null in place of headers", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b"},"headers":null}`, all, nil},
		{"a header that never was", KindMetricsProvider, influx, `{"type":"influx","influx":{"url":"https://influx:8086","bucket":"b"},"headers":{"X-C":null}}`, []string{all[0], all[3]}, []string{`spec.headers["X-C"]`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			current, _ := specOf(t, test.kind, test.current)
			next, document := specOf(t, test.kind, test.next)
			var refused []string
			for _, e := range KeepSecrets(next, current, document) {
				refused = append(refused, e.Field)
			}
			if !slices.Equal(refused, test.refused) || !slices.Equal(keysOf(next), test.kept) {
				t.Errorf("refused %q, want %q; kept %q, want %q", refused, test.refused, keysOf(next), test.kept)
			}
		})
	}
	// Without a previous version there is nothing to keep.
	next, document := specOf(t, KindMetricsProvider, `{"type":"static","static":{},"bearer_token":null,"headers":{"X-A":null,"X-B":""}}`)
	if errs := KeepSecrets(next, nil, document); len(errs) != 1 || errs[0].Field != `spec.headers["X-A"]` || len(next.Secrets()) != 0 {
		t.Errorf("kept %v for a new object (%v)", keysOf(next), errs)
	}
}
