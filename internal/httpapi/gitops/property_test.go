package gitops

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// randomStore has objects in any state.
type randomStore struct {
	all  map[api.Key]api.Object
	hurt map[api.Key]*fleet.Damage
}

func (o *randomStore) Get(key api.Key) *fleet.Entry {
	if object := o.all[key]; object != nil {
		return &fleet.Entry{Object: object}
	}
	return nil
}

func (o *randomStore) All(kind api.Kind, namespace string) iter.Seq[*fleet.Entry] {
	return func(yield func(*fleet.Entry) bool) {
		for _, key := range slices.SortedFunc(maps.Keys(o.all), api.Key.Compare) {
			if key.Kind == kind && key.Namespace == namespace && !yield(&fleet.Entry{Object: o.all[key]}) {
				return
			}
		}
	}
}

func (o *randomStore) Damaged(key api.Key) *fleet.Damage { return o.hurt[key] }

func (o *randomStore) AllDamaged() []*fleet.Damage { return slices.Collect(maps.Values(o.hurt)) }

var (
	clusterNames   = []string{"berlin", "oslo", "paris", "rome"}
	decisionNames  = []string{"api", "db", "web"}
	policyNames    = []string{"all", "eu"}
	namespaceNames = []string{"ads", "shop"}
)

// generation is usually 1.
func generation(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 2}).Draw(t, "generation")
}

func meta(t *rapid.T, namespace, name string) api.Metadata {
	m := api.Metadata{Namespace: namespace, Name: name, UID: rapid.SampledFrom([]string{"u1", "u1", "u1", "u1", "u1", "u1", "u2"}).Draw(t, "uid"), Generation: generation(t)}
	if rapid.Bool().Draw(t, "labeled") {
		m.Labels = map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")}
	}
	return m
}

func conditions(t *rapid.T) []api.Condition {
	var all []api.Condition
	for _, kind := range append([]string{api.ConditionScheduled}, unsettled...) {
		if rapid.IntRange(0, 7).Draw(t, kind) == 0 {
			all = append(all, api.Condition{Type: kind, Status: rapid.SampledFrom([]api.ConditionStatus{api.ConditionTrue, api.ConditionFalse}).Draw(t, "status"), Message: "because"})
		}
	}
	return all
}

func some(t *rapid.T, names []string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "some")
}

// drawStore draws a store in any state, also in states in which a server should never be.
func drawStore(t *rapid.T) *randomStore {
	o := &randomStore{all: map[api.Key]api.Object{}, hurt: map[api.Key]*fleet.Damage{}}
	add := func(object api.Object) {
		key := api.KeyOf(object)
		fate := rapid.IntRange(0, 60).Draw(t, "fate of "+key.String())
		if fate <= 1 {
			o.hurt[key] = &fleet.Damage{Key: key, Lost: fate == 0}
		}
		if fate != 0 && fate != 2 {
			o.all[key] = object
		}
	}
	for _, name := range clusterNames {
		add(&api.Cluster{Metadata: api.Metadata{Name: name}})
	}
	for _, namespace := range namespaceNames {
		for _, name := range policyNames {
			add(&api.PropagationPolicy{Metadata: meta(t, namespace, name)})
		}
		for _, name := range decisionNames {
			p := &api.Placement{Metadata: meta(t, namespace, name)}
			if rapid.Bool().Draw(t, "wants") {
				n := rapid.Int64Range(0, 2).Draw(t, "wanted")
				p.Spec.NumberOfClusters = &n
			}
			if rapid.Bool().Draw(t, "grouped") {
				p.Spec.DecisionStrategy = &api.DecisionStrategy{DecisionGroups: []api.DecisionGroup{{Name: "canary"}}}
			}
			p.Status = api.PlacementStatus{ObservedGeneration: generation(t), Clusters: some(t, clusterNames), Conditions: conditions(t)}
			for _, cluster := range p.Status.Clusters {
				p.Status.Decisions = append(p.Status.Decisions, api.Decision{Cluster: cluster, Group: rapid.SampledFrom([]string{"", "canary"}).Draw(t, "group")})
			}
			add(p)
			w := &api.Workload{Metadata: meta(t, namespace, name)}
			if rapid.Bool().Draw(t, "replicated") {
				n := rapid.Int64Range(0, 2).Draw(t, "replicas")
				w.Spec.Replicas = &n
			}
			w.Status = api.WorkloadStatus{ObservedGeneration: generation(t), Conditions: conditions(t)}
			if rapid.Bool().Draw(t, "claimed") {
				w.Status.Policy = namespace + "/" + rapid.SampledFrom(policyNames).Draw(t, "policy")
				w.Status.PolicyUID, w.Status.PolicyGeneration = rapid.SampledFrom([]string{"u1", "u1", "u1", "u1", "u1", "u1", "u2"}).Draw(t, "uid"), generation(t)
			}
			for _, cluster := range some(t, clusterNames) {
				if rapid.Bool().Draw(t, "leaves") {
					mode := rapid.SampledFrom([]api.PurgeMode{api.PurgeDirectly, api.PurgeGracefully, api.PurgeNever}).Draw(t, "mode")
					w.Status.Evictions = append(w.Status.Evictions, api.Eviction{Cluster: cluster, PurgeMode: mode})
				} else {
					w.Status.Clusters = append(w.Status.Clusters, api.WorkloadCluster{Name: cluster})
				}
			}
			add(w)
		}
	}
	return o
}

func randomQuery(t *rapid.T) api.DecisionQuery {
	q := api.DecisionQuery{
		Kind:       rapid.SampledFrom([]api.DecisionKind{api.DecisionOfPlacement, api.DecisionOfWorkload, api.DecisionOfPolicy}).Draw(t, "kind"),
		AllowEmpty: rapid.Bool().Draw(t, "allow_empty"),
	}
	evicting := rapid.Bool().Draw(t, "include_evicting")
	q.IncludeEvicting = &evicting
	if rapid.Bool().Draw(t, "by name") {
		q.Name = rapid.SampledFrom(append(append([]string{"unknown"}, decisionNames...), policyNames...)).Draw(t, "name")
	} else {
		q.Selector = map[string]string{"app": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app")}
	}
	if q.Kind == api.DecisionOfPlacement && rapid.IntRange(0, 2).Draw(t, "of a group") == 0 {
		q.DecisionGroup = "canary"
	}
	return q
}

// TestNothingIsDeletedByMistake asks random stores random questions. Every answer is compared with the rules, which are
// written here a second time, in the words of the guides: an answer contains every cluster of every decision that was
// asked for, and a decision without clusters in it is current, and either its spec asks for none or that is allowed.
func TestNothingIsDeletedByMistake(t *testing.T) {
	answers, empty := 0, 0
	ask := func(t *rapid.T, o *randomStore) {
		parameters := randomQuery(t)
		const namespace = "shop"
		query, err := newQuery(namespace, parameters)
		if err != nil {
			t.Fatal(err)
		}
		age := rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 10 * time.Second, 11 * time.Second}).Draw(t, "age")
		from := source{objects: o, age: age, shown: func(object api.Object) api.Object { return object }, mayRead: func(object api.Object) error {
			if api.KeyOf(object).Namespace == "ads" {
				t.Errorf("it looked at %s", api.KeyOf(object))
			}
			return nil
		}}
		rows, err := from.answer(query)
		if err != nil {
			if _, refused := errors.AsType[*problem.Problem](err); !refused || len(rows) > 0 {
				t.Fatalf("%v and %v", rows, err)
			}
			return
		}
		answers++
		if len(rows) == 0 {
			empty++
		}
		if rows == nil {
			t.Error("the answer is null instead of an empty list")
		}
		if age > 10*time.Second {
			t.Errorf("it answered %s after the store was last heard of", age)
		}
		has := map[string]bool{}
		for i, row := range rows {
			if has[row.ID] || i > 0 && rows[i-1].ID >= row.ID {
				t.Errorf("the answer is not sorted or not unique: %v", rows)
			}
			has[row.ID] = true
			if o.all[api.Key{Kind: api.KindCluster, Name: row.Cluster}] == nil {
				t.Errorf("cluster %s is not known", row.Cluster)
			}
		}
		asked := 0
		for key, object := range o.all {
			if key.Namespace != namespace || !isAsked(parameters, object, o) {
				continue
			}
			asked++
			clusters, none, current := shouldHave(parameters, object)
			for _, cluster := range clusters {
				if !has[key.Name+"."+cluster] {
					t.Errorf("%s is on %s, which is missing in %v", key, cluster, rows)
				}
			}
			if !current {
				t.Errorf("%s is not current", key)
			}
			if len(clusters) == 0 && !none && !parameters.AllowEmpty {
				t.Errorf("%s has no clusters in the answer, and that is not allowed", key)
			}
			if len(clusters) == 0 && slices.ContainsFunc(*api.ConditionsOf(object), func(c api.Condition) bool { return c.Type != api.ConditionScheduled && c.Status == api.ConditionTrue }) {
				t.Errorf("%s has no clusters in the answer, and its decision is not updated", key)
			}
			if o.hurt[key] != nil {
				t.Errorf("%s is damaged", key)
			}
		}
		for key := range o.hurt {
			if parameters.Kind == api.DecisionOfPolicy && key.Kind == api.KindWorkload && key.Namespace == namespace {
				t.Errorf("%s is damaged, and might follow the policy", key)
			}
		}
		if asked == 0 && (parameters.Kind != api.DecisionOfPolicy || !parameters.AllowEmpty) {
			t.Errorf("nothing was asked for, and the answer is %v", rows)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		o := drawStore(t)
		for range 30 { // most stores have no answer to most questions
			ask(t, o)
		}
	})
	t.Logf("%d answers, %d of them empty", answers, empty)
	if answers == 0 || empty == 0 {
		t.Errorf("%d answers, of which %d are empty: the test shows nothing", answers, empty)
	}
}

// isAsked reports whether the decision of an object is part of the answer.
func isAsked(q api.DecisionQuery, object api.Object, o *randomStore) bool {
	selects := func(m *api.Metadata) bool {
		return m.Name == q.Name || q.Selector != nil && m.Labels["app"] == q.Selector["app"]
	}
	switch x := object.(type) {
	case *api.Placement:
		return q.Kind == api.DecisionOfPlacement && selects(&x.Metadata)
	case *api.Workload:
		if q.Kind == api.DecisionOfPolicy && x.Status.Policy != "" {
			policy := o.all[api.PolicyKey(x.Status.Policy)]
			return policy != nil && selects(policy.Meta())
		}
		return q.Kind == api.DecisionOfWorkload && selects(&x.Metadata)
	}
	return false
}

// shouldHave returns the clusters of a decision that must be in the answer, whether its spec asks for none, and whether
// it is current.
func shouldHave(q api.DecisionQuery, object api.Object) (clusters []string, none, current bool) {
	switch x := object.(type) {
	case *api.Placement:
		for i, cluster := range x.Status.Clusters {
			if q.DecisionGroup == "" || x.Status.Decisions[i].Group == q.DecisionGroup {
				clusters = append(clusters, cluster)
			}
		}
		return clusters, x.Spec.NumberOfClusters != nil && *x.Spec.NumberOfClusters == 0, x.Status.ObservedGeneration == x.Metadata.Generation
	case *api.Workload:
		for _, c := range x.Status.Clusters {
			clusters = append(clusters, c.Name)
		}
		for _, e := range x.Status.Evictions {
			if *q.IncludeEvicting && e.PurgeMode != api.PurgeDirectly {
				clusters = append(clusters, e.Cluster)
			}
		}
		return clusters, x.Spec.Replicas != nil && *x.Spec.Replicas == 0, x.Status.ObservedGeneration == x.Metadata.Generation
	}
	return nil, false, false
}
