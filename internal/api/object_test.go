package api

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// paths returns the fields of the errors in order.
func paths(errs FieldErrors) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Field)
	}
	return out
}

func TestKinds(t *testing.T) {
	for _, info := range Kinds {
		o := info.New()
		o.SetDefaults()
		if o.ObjectKind() != info.Kind || KeyOf(o).Kind != info.Kind {
			t.Errorf("%s makes a %s", info.Kind, o.ObjectKind())
		}
		if found, ok := LookupKind(info.Kind); !ok || found.Collection != info.Collection {
			t.Errorf("%s is found as %+v", info.Kind, found)
		}
		copied := o.Copy()
		copied.Meta().Name = "other"
		copied.SetSecret("spec.nothing", NewSecret("x"))
		if o.Meta().Name != "" || copied.ObjectKind() != info.Kind {
			t.Errorf("the copy of a %s is not its own", info.Kind)
		}
		if o.SpecPart() == nil || o.StatusPart() == nil || o.SpecPart() == copied.SpecPart() {
			t.Errorf("%s shares its parts with its copy", info.Kind)
		}
	}
	if _, ok := LookupKind("token"); ok {
		t.Error("an unknown kind is found")
	}
}

func TestKey(t *testing.T) {
	global := Key{Kind: KindMetric, Name: "load"}
	in := Key{Kind: KindMetric, Namespace: "shop", Name: "load"}
	for got, want := range map[string]string{
		global.String(): `metric "load"`, in.String(): `metric "shop/load"`,
		global.Path(): "load", in.Path(): "shop/load",
		global.URLPath(): "/v1/metrics/load", in.URLPath(): "/v1/namespaces/shop/metrics/load",
		CollectionPath(KindMetricsProvider, ""): "/v1/metrics-providers",
		CollectionPath(KindPlacement, "shop"):   "/v1/namespaces/shop/placements",
		CollectionPath(KindWorkload, "shop"):    "/v1/namespaces/shop/workloads",
		PolicyKey("shop/web").URLPath():         "/v1/namespaces/shop/propagation-policies/web",
		PolicyKey("web").URLPath():              "/v1/propagation-policies/web",
		Key{Kind: "token", Name: "t"}.URLPath(): "/v1/token/t",
		(&Metric{Metadata: Metadata{Namespace: "shop"}, Spec: MetricSpec{MetricsProvider: MetricProviderRef{Name: "p"}}}).ProviderKey().String(): `metrics_provider "shop/p"`,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	keys := []Key{in, {Kind: KindPlacement, Name: "a"}, {Kind: KindMetric, Namespace: "shop", Name: "cost"}, global, {Kind: KindCluster, Name: "z"}}
	slices.SortFunc(keys, Key.Compare)
	want := []Key{{Kind: KindCluster, Name: "z"}, global, {Kind: KindMetric, Namespace: "shop", Name: "cost"}, in, {Kind: KindPlacement, Name: "a"}}
	if !slices.Equal(keys, want) || in.Compare(in) != 0 {
		t.Errorf("ordered %v, want %v", keys, want)
	}
}

func TestDefaults(t *testing.T) {
	c := &Cluster{Metadata: Metadata{Name: "c", Namespace: "shop", Labels: map[string]string{}}}
	c.Spec.Metrics = []MetricRef{{Name: "load"}, {Name: "cost", Weight: new(0.0)}}
	c.Spec.Health, c.Status.State = &HealthSpec{}, "OFFLINE"
	c.SetDefaults()
	switch {
	case c.Kind != KindCluster, c.Spec.Namespace != "shop", c.Metadata.Namespace != "", c.Metadata.Labels != nil,
		*c.Spec.Metrics[0].Weight != 1, *c.Spec.Metrics[1].Weight != 0,
		*c.Spec.Health != HealthSpec{Interval: "10s", FailureThreshold: 3, SuccessThreshold: 2}, c.Status.State != StateOffline:
		t.Errorf("cluster %+v", c)
	}
	c.Metadata.Namespace = "shop" // set twice
	c.SetDefaults()
	if c.Metadata.Namespace != "" || c.Spec.Namespace != "shop" {
		t.Errorf("cluster %+v", c.Metadata)
	}

	p := &Placement{Metadata: Metadata{Name: "p"}}
	p.SetDefaults()
	s := p.Spec
	if p.Metadata.Namespace != "default" || s.MetricConstraintBasis != BasisRaw || s.Strategy != StrategyMetrics ||
		*s.Metrics.Stickiness != 0.1 || !*s.Migration || s.RescheduleAfter != "60s" || s.NumberOfClusters != nil {
		t.Errorf("placement %+v", p)
	}
	given := &MetricsStrategy{}
	p = &Placement{Spec: PlacementSpec{Metrics: given, Migration: new(false), RescheduleAfter: "0s"}}
	p.SetDefaults()
	if given.Stickiness != nil || *p.Spec.Metrics.Stickiness != 0.1 || *p.Spec.Migration || p.Spec.RescheduleAfter != "0s" {
		t.Errorf("placement %+v: defaults must not write what is shared or set", p.Spec)
	}

	m := &Metric{}
	m.SetDefaults()
	if m.Metadata.Namespace != "" || m.Spec.Direction != Ascending || m.Spec.OnFailure != FailureExclude || m.Spec.MaxAge != "" {
		t.Errorf("metric %+v", m)
	}
	mp := &MetricsProvider{}
	mp.SetDefaults()
	if mp.Spec.Interval != "15s" || mp.Spec.Timeout != "20s" {
		t.Errorf("provider %+v", mp)
	}
}

func TestSameIntent(t *testing.T) {
	base := func() *Cluster {
		c := &Cluster{Metadata: Metadata{Name: "c", Labels: map[string]string{"a": "b"}}}
		c.Spec.Kubernetes = &KubernetesSpec{Kubeconfig: NewSecret("one")}
		c.Spec.Region = "eu"
		return c
	}
	for name, tt := range map[string]struct {
		change func(c *Cluster)
		same   bool
	}{
		"nothing":            {func(*Cluster) {}, true},
		"status":             {func(c *Cluster) { c.Status.State = "offline" }, true},
		"server's metadata":  {func(c *Cluster) { c.Metadata.UID, c.Metadata.Generation = "u", 7 }, true},
		"empty collection":   {func(c *Cluster) { c.Spec.Zones, c.Spec.Capacity = []string{}, Quantities{} }, true},
		"label":              {func(c *Cluster) { c.Metadata.Labels = map[string]string{"a": "c"} }, false},
		"spec":               {func(c *Cluster) { c.Spec.Region = "us" }, false},
		"secret":             {func(c *Cluster) { c.Spec.Kubernetes = &KubernetesSpec{Kubeconfig: NewSecret("two")} }, false},
		"secret gone":        {func(c *Cluster) { c.Spec.Kubernetes = &KubernetesSpec{} }, false},
		"weight, 0 and none": {func(c *Cluster) { c.Spec.Metrics = []MetricRef{{Name: "m", Weight: new(0.0)}} }, false},
	} {
		changed := base()
		tt.change(changed)
		if SameIntent(base(), changed) != tt.same || SameIntent(changed, base()) != tt.same {
			t.Errorf("%s: same is not %t", name, tt.same)
		}
	}
	if SameIntent(&Placement{}, &Metric{}) {
		t.Error("two kinds have one intent")
	}
}

func TestConditions(t *testing.T) {
	start := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	later := start.Add(time.Minute)
	ready := Condition{Type: ConditionReady, Status: ConditionTrue}
	set := func(list []Condition, c Condition, at time.Time, changes bool) []Condition {
		t.Helper()
		if changed := SetCondition(&list, c, at); changed != changes {
			t.Errorf("%+v in %+v: changed %t", c, list, changed)
		}
		return list
	}
	list := set(nil, ready, start, true)
	list = set(list, Condition{Type: "Other", Status: ConditionUnknown}, start, true)
	before := slices.Clone(list)
	same := set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Reason: "Again"}, later, true)
	if got := same[0]; got.Reason != "Again" || !got.LastTransitionAt.Equal(start) || got.LastTransitionAt.Location() != time.UTC {
		t.Errorf("%+v: the transition stays where the status stays", got)
	}
	set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Message: "Again"}, later, true)
	set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Detail: "Again"}, later, true)
	if again := set(list, ready, later, false); &again[0] != &list[0] {
		t.Error("a list that says the same is another")
	}
	turned := set(list, Condition{Type: ConditionReady, Status: ConditionFalse}, later, true)
	if got := FindCondition(turned, ConditionReady); !got.LastTransitionAt.Equal(later) || len(turned) != 2 || turned[1].Type != "Other" {
		t.Errorf("%+v: the transition is when the status changed", turned)
	}
	without := list
	if !RemoveCondition(&without, "Other") || RemoveCondition(&without, "Other") || len(without) != 1 || without[0].Type != ConditionReady {
		t.Errorf("%+v: Other is to be gone", without)
	}
	if !RemoveCondition(&without, ConditionReady) || without != nil {
		t.Errorf("%+v, want none", without)
	}
	if !slices.Equal(list, before) {
		t.Error("the given list was written")
	}
	if FindCondition(list, "Nothing") != nil {
		t.Error("a condition that is not there is found")
	}
	undated := set([]Condition{ready}, ready, later, false)
	if got := undated[0].LastTransitionAt; got == nil || !got.Equal(later) {
		t.Errorf("%v: a condition without a time gets one", got)
	}
}

func TestSecretFields(t *testing.T) {
	c := &Cluster{}
	if c.Secrets() != nil {
		t.Error("secrets from nothing")
	}
	c.SetSecret("spec.kubernetes.kubeconfig", NewSecret("k"))
	if got := c.Secrets(); len(got) != 1 || got["spec.kubernetes.kubeconfig"].Reveal() != "k" {
		t.Errorf("secrets %d", len(got))
	}
	p := &MetricsProvider{Spec: MetricsProviderSpec{Headers: map[string]Secret{`X-"Odd".Key`: NewSecret("h")}, BearerToken: NewSecret("t")}}
	copied := p.Copy().(*MetricsProvider)
	q := &MetricsProvider{}
	for field, secret := range p.Secrets() {
		q.SetSecret(field, secret)
		copied.SetSecret(field, NewSecret("other"))
	}
	if !maps.Equal(p.Secrets(), q.Secrets()) || len(q.Secrets()) != 2 {
		t.Errorf("%d secrets came over", len(q.Secrets()))
	}
	if p.Spec.Headers[`X-"Odd".Key`].Reveal() != "h" {
		t.Error("setting a secret of a copy changed the original")
	}
	for _, o := range []Object{&Metric{}, &Placement{}, &Workload{}, &PropagationPolicy{}} {
		o.SetSecret("spec.x", NewSecret("y"))
		if o.Secrets() != nil {
			t.Errorf("%s has secrets", o.ObjectKind())
		}
	}
}

func TestFieldErrors(t *testing.T) {
	var errs FieldErrors
	if errs.Err() != nil {
		t.Error("no errors are an error")
	}
	errs.Add("spec.a", "%d is too much", 5)
	errs.check("spec.b", "")
	errs.check("spec.c", "100% wrong")
	if got := errs.Err().Error(); got != "spec.a: 5 is too much; spec.c: 100% wrong" {
		t.Error(got)
	}
	problem := &Problem{Title: "Invalid", Detail: "two fields", Errors: errs}
	if got := problem.Error(); !strings.HasPrefix(got, "Invalid: two fields: spec.a: ") {
		t.Error(got)
	}
}

func TestParseKeyRoundTrip(t *testing.T) {
	for _, want := range []Key{{Kind: KindCluster, Name: "eu-1"}, {Kind: KindPlacement, Namespace: "shop", Name: "web"}} {
		if got, ok := ParseKey(want.String()); !ok || got != want {
			t.Errorf("%s is read as %+v, %t", want, got, ok)
		}
	}
	for _, text := range []string{"", "cluster", "cluster eu-1", `cluster "eu-1`, `cluster "eu-1" `, "cluster `eu-1`"} {
		if got, ok := ParseKey(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
