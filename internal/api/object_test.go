package api

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// paths returns the fields of the errors, in order.
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
			t.Errorf("LookupKind(%s) = %+v", info.Kind, found)
		}
		copied := o.Copy()
		copied.Meta().Name = "other"
		copied.SetSecret("spec.nothing", NewSecret("x"))
		if o.Meta().Name != "" || copied.ObjectKind() != info.Kind {
			t.Errorf("the copy of a %s shares its metadata", info.Kind)
		}
		if o.SpecPart() == nil || o.StatusPart() == nil || o.SpecPart() == copied.SpecPart() {
			t.Errorf("the copy of a %s shares its parts", info.Kind)
		}
	}
	if _, ok := LookupKind("token"); ok {
		t.Error("LookupKind() found an unknown kind")
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
			t.Errorf("got %s, want %s", got, want)
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
		t.Errorf("unexpected defaults of cluster %+v", c)
	}
	c.Metadata.Namespace = "shop" // set twice
	c.SetDefaults()
	if c.Metadata.Namespace != "" || c.Spec.Namespace != "shop" {
		t.Errorf("metadata %+v, want the namespace in the spec", c.Metadata)
	}

	p := &Placement{Metadata: Metadata{Name: "p"}}
	p.SetDefaults()
	s := p.Spec
	if p.Metadata.Namespace != "default" || s.MetricConstraintBasis != BasisRaw || s.Strategy != StrategyMetrics ||
		*s.Metrics.Stickiness != 0.1 || !*s.Migration || s.RescheduleAfter != "60s" || s.NumberOfClusters != nil {
		t.Errorf("unexpected defaults of placement %+v", p)
	}
	given := &MetricsStrategy{}
	p = &Placement{Spec: PlacementSpec{Metrics: given, Migration: new(false), RescheduleAfter: "0s"}}
	p.SetDefaults()
	if given.Stickiness != nil || *p.Spec.Metrics.Stickiness != 0.1 || *p.Spec.Migration || p.Spec.RescheduleAfter != "0s" {
		t.Errorf("placement %+v: defaults must not modify what is shared or set", p.Spec)
	}

	m := &Metric{}
	m.SetDefaults()
	if m.Metadata.Namespace != "" || m.Spec.Direction != Ascending || m.Spec.OnFailure != FailureExclude || m.Spec.MaxAge != "" {
		t.Errorf("unexpected defaults of metric %+v", m)
	}
	mp := &MetricsProvider{}
	mp.SetDefaults()
	if mp.Spec.Interval != "15s" || mp.Spec.Timeout != "20s" {
		t.Errorf("unexpected defaults of provider %+v", mp)
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
			t.Errorf("%s: SameIntent() is not %t", name, tt.same)
		}
	}
	limits := func(p PropagationPlacement, affinity ClusterAffinity) *PropagationPolicy {
		p.ReplicaScheduling = &ReplicaScheduling{ClusterLimits: []ClusterLimit{{Affinity: affinity}}}
		return &PropagationPolicy{Spec: PropagationPolicySpec{Placement: p}}
	}
	empty := PropagationPlacement{ClusterTolerations: []Toleration{}, SpreadConstraints: []GroupConstraint{}}
	if !SameIntent(limits(PropagationPlacement{}, ClusterAffinity{}), limits(empty, ClusterAffinity{ExcludeClusters: []string{}})) ||
		!SameIntent(&PropagationPolicy{}, &PropagationPolicy{Spec: PropagationPolicySpec{Placement: empty}}) {
		t.Error("empty lists in a policy's placement are a change")
	}
	if SameIntent(&Placement{}, &Metric{}) {
		t.Error("SameIntent() of two kinds = true")
	}
}

func TestConditions(t *testing.T) {
	start := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	later := start.Add(time.Minute)
	ready := Condition{Type: ConditionReady, Status: ConditionTrue}
	set := func(list []Condition, c Condition, at time.Time, changes bool) []Condition {
		t.Helper()
		if changed := SetCondition(&list, c, at); changed != changes {
			t.Errorf("SetCondition(%+v) on %+v = %t", c, list, changed)
		}
		return list
	}
	list := set(nil, ready, start, true)
	list = set(list, Condition{Type: "Other", Status: ConditionUnknown}, start, true)
	before := slices.Clone(list)
	same := set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Reason: "Again"}, later, true)
	if got := same[0]; got.Reason != "Again" || !got.LastTransitionAt.Equal(start) || got.LastTransitionAt.Location() != time.UTC {
		t.Errorf("%+v, want the transition of the unchanged status", got)
	}
	set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Message: "Again"}, later, true)
	set(list, Condition{Type: ConditionReady, Status: ConditionTrue, Detail: "Again"}, later, true)
	if again := set(list, ready, later, false); &again[0] != &list[0] {
		t.Error("an unchanged list was copied")
	}
	turned := set(list, Condition{Type: ConditionReady, Status: ConditionFalse}, later, true)
	if got := FindCondition(turned, ConditionReady); !got.LastTransitionAt.Equal(later) || len(turned) != 2 || turned[1].Type != "Other" {
		t.Errorf("%+v, want the transition at the change of the status", turned)
	}
	without := list
	if !RemoveCondition(&without, "Other") || RemoveCondition(&without, "Other") || len(without) != 1 || without[0].Type != ConditionReady {
		t.Errorf("%+v, want Other removed", without)
	}
	if !RemoveCondition(&without, ConditionReady) || without != nil {
		t.Errorf("got %+v, want none", without)
	}
	if !slices.Equal(list, before) {
		t.Error("the given list was modified")
	}
	if FindCondition(list, "Nothing") != nil {
		t.Error("FindCondition() found a missing condition")
	}
	undated := set([]Condition{ready}, ready, later, false)
	if got := undated[0].LastTransitionAt; got == nil || !got.Equal(later) {
		t.Errorf("transition %v, want the given time", got)
	}
}

func TestSecretFields(t *testing.T) {
	c := &Cluster{}
	if c.Secrets() != nil {
		t.Error("Secrets() of an empty cluster is not nil")
	}
	c.SetSecret("spec.kubernetes.kubeconfig", NewSecret("k"))
	if got := c.Secrets(); len(got) != 1 || got["spec.kubernetes.kubeconfig"].Reveal() != "k" {
		t.Errorf("%d secrets, want the kubeconfig", len(got))
	}
	p := &MetricsProvider{Spec: MetricsProviderSpec{Headers: map[string]Secret{`X-"Odd".Key`: NewSecret("h")}, BearerToken: NewSecret("t")}}
	copied := p.Copy().(*MetricsProvider)
	q := &MetricsProvider{}
	for field, secret := range p.Secrets() {
		q.SetSecret(field, secret)
		copied.SetSecret(field, NewSecret("other"))
	}
	if !maps.Equal(p.Secrets(), q.Secrets()) || len(q.Secrets()) != 2 {
		t.Errorf("%d secrets were copied, want 2", len(q.Secrets()))
	}
	if p.Spec.Headers[`X-"Odd".Key`].Reveal() != "h" {
		t.Error("setting a secret of the copy modified the original")
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
		t.Error("Err() of no errors is not nil")
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
			t.Errorf("ParseKey(%s) = %+v, %t", want, got, ok)
		}
	}
	for _, text := range []string{"", "cluster", "cluster eu-1", `cluster "eu-1`, `cluster "eu-1" `, "cluster `eu-1`"} {
		if got, ok := ParseKey(text); ok {
			t.Errorf("ParseKey(%q) = %+v, want an error", text, got)
		}
	}
}
