package claim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// claimant returns a policy for Deployments; path contains the namespace, if any.
func claimant(path string, priority int64, selectors ...api.ResourceSelector) *api.PropagationPolicy {
	key := policyKey(path)
	p := &api.PropagationPolicy{
		Metadata: api.Metadata{Namespace: key.Namespace, Name: key.Name},
		Spec:     api.PropagationPolicySpec{Priority: priority, ResourceSelectors: selectors},
	}
	for i := range selectors {
		if s := &selectors[i]; s.Kind == "" {
			s.APIVersion, s.Kind = "apps/v1", "Deployment"
		}
	}
	p.SetDefaults()
	return p
}

func preempting(p *api.PropagationPolicy) *api.PropagationPolicy {
	p.Spec.Preemption = api.PreemptAlways
	return p
}

// deployment returns a workload in the namespace shop with labels of the form key=value.
func deployment(name string, labels ...string) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Namespace: "shop", Name: name}, Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment"}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		if w.Metadata.Labels == nil {
			w.Metadata.Labels = map[string]string{}
		}
		w.Metadata.Labels[key] = value
	}
	w.SetDefaults()
	return w
}

func named(name string) api.ResourceSelector { return api.ResourceSelector{Name: name} }

func labelled(key, value string) api.ResourceSelector {
	return api.ResourceSelector{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func expression(key string, operator api.SelectorOperator, values ...string) api.ResourceSelector {
	return api.ResourceSelector{LabelSelector: &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{{Key: key, Operator: operator, Values: values}}}}
}

var anyDeployment = api.ResourceSelector{}

func TestWhichPolicyAWorkloadFollows(t *testing.T) {
	type policies []*api.PropagationPolicy
	inNamespace := func(namespace string) api.ResourceSelector { return api.ResourceSelector{Namespace: namespace} }
	web := deployment("web", "app=web", "tier=gold")
	for _, test := range []struct {
		name     string
		policies policies
		held     string
		want     string // "" = none
		reason   string
	}{
		{"no policies", nil, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"other kind", policies{claimant("shop/a", 0, api.ResourceSelector{APIVersion: "apps/v1", Kind: "StatefulSet"})}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"other version of the kind", policies{claimant("shop/a", 0, api.ResourceSelector{APIVersion: "apps/v2", Kind: "Deployment"})}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"other name", policies{claimant("shop/a", 0, named("api"))}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"other namespace", policies{claimant("bank/a", 0, anyDeployment)}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"other labels", policies{claimant("shop/a", 0, labelled("app", "api"))}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"one policy", policies{claimant("shop/a", 0, anyDeployment)}, "", "shop/a", `policy "shop/a" is the only one that selects it`},
		{"a name matches whatever the labels", policies{claimant("shop/a", 0, api.ResourceSelector{Name: "web", LabelSelector: labelled("app", "api").LabelSelector})}, "", "shop/a", `policy "shop/a" is the only one that selects it`},
		{"labels as expressions", policies{
			claimant("shop/a", 0, expression("app", api.SelectorIn, "api", "batch")),
			claimant("shop/b", 0, expression("app", api.SelectorNotIn, "web")),
			claimant("shop/c", 0, expression("app", api.SelectorDoesNotExist)),
			claimant("shop/d", 0, expression("tier", api.SelectorIn, "silver", "gold")),
		}, "", "shop/d", `policy "shop/d" is the only one that selects it`},
		{"one selector of several is enough", policies{claimant("shop/a", 0, named("api"), labelled("app", "web"))}, "", "shop/a", `policy "shop/a" is the only one that selects it`},

		{"namespaced before global whatever the priority", policies{claimant("a", 100, named("web")), claimant("shop/z", -5, anyDeployment)}, "", "shop/z",
			`of 2 policies that select it, "shop/z" is of its namespace: such policies come before global ones`},
		{"global policy for all namespaces", policies{claimant("a", 0, anyDeployment)}, "", "a", `policy "a" is the only one that selects it`},
		{"global policy for the namespace", policies{claimant("a", 0, inNamespace("shop"))}, "", "a", `policy "a" is the only one that selects it`},
		{"global policy for another namespace", policies{claimant("a", 0, inNamespace("bank"))}, "", "", `no policy selects apps/v1 Deployment shop/web`},
		{"global policy that names a workload and its namespace", policies{claimant("a", 0, api.ResourceSelector{Namespace: "bank", Name: "web"}), claimant("b", 0, api.ResourceSelector{Namespace: "shop", Name: "web"})}, "", "b",
			`policy "b" is the only one that selects it`},
		{"higher priority", policies{claimant("shop/a", 1, named("web")), claimant("shop/b", 10, anyDeployment), claimant("shop/c", 5, named("web"))}, "", "shop/b",
			`of 3 policies that select it, "shop/b" has the highest priority, 10`},
		{"equal priority, name before labels", policies{claimant("shop/a", 3, labelled("app", "web")), claimant("shop/z", 3, named("web"))}, "", "shop/z",
			`of 2 policies that select it, "shop/z" selects it most precisely of those with the highest priority, 3: by name`},
		{"labels before kind", policies{claimant("shop/a", 0, anyDeployment), claimant("shop/z", 0, labelled("app", "web"))}, "", "shop/z",
			`of 2 policies that select it, "shop/z" selects it most precisely of those with the highest priority, 0: by labels`},
		{"the most precise selector of a policy counts", policies{claimant("shop/b", 0, labelled("app", "web")), claimant("shop/c", 0, anyDeployment, named("web"))}, "", "shop/c",
			`of 2 policies that select it, "shop/c" selects it most precisely of those with the highest priority, 0: by name`},
		{"equal policies, first by name", policies{claimant("shop/b", 0, labelled("tier", "gold")), claimant("shop/a", 0, labelled("app", "web"))}, "", "shop/a",
			`of 2 policies that select it, "shop/a" is the first by name of those that have the highest priority, 0, and select it by labels`},

		{"the claim stays against a higher priority", policies{claimant("shop/a", 1, anyDeployment), claimant("shop/b", 10, named("web"))}, "shop/a", "shop/a", `policy "shop/a" holds the claim`},
		{"a global claim stays against a namespaced policy", policies{claimant("a", 0, anyDeployment), claimant("shop/b", 10, named("web"))}, "a", "a", `policy "a" holds the claim`},
		{"claim of a deleted policy", policies{claimant("shop/a", 0, anyDeployment)}, "shop/old", "shop/a",
			`policy "shop/old", which held the claim, was deleted: policy "shop/a" is the only one that selects it`},
		{"claim of a policy that no longer selects the workload", policies{claimant("shop/a", 0, anyDeployment), claimant("shop/old", 9, named("api"))}, "shop/old", "shop/a",
			`policy "shop/old", which held the claim, no longer selects it: policy "shop/a" is the only one that selects it`},
		{"claim of a deleted policy, no other policy", nil, "old", "", `policy "old", which held the claim, was deleted: no policy selects apps/v1 Deployment shop/web`},
		{"claim of a policy in another namespace", policies{claimant("bank/a", 9, anyDeployment), claimant("b", 0, anyDeployment)}, "bank/a", "b",
			`policy "bank/a", which held the claim, no longer selects it: policy "b" is the only one that selects it`},
		{"preemption with a higher priority", policies{claimant("shop/low", 5, anyDeployment), preempting(claimant("shop/high", 10, named("web")))}, "shop/low", "shop/high",
			`policy "shop/high" (priority 10) preempts "shop/low" (priority 5)`},
		{"no preemption with the same priority", policies{claimant("shop/b", 5, anyDeployment), preempting(claimant("shop/a", 5, named("web")))}, "shop/b", "shop/b", `policy "shop/b" holds the claim`},
		{"a namespaced policy preempts a global one whatever the priority", policies{claimant("a", 10, anyDeployment), preempting(claimant("shop/b", -1, named("web")))}, "a", "shop/b",
			`policy "shop/b" preempts "a": it is of the workload's namespace, and the other global`},
		{"a global policy never preempts a namespaced one", policies{claimant("shop/a", 0, anyDeployment), preempting(claimant("b", 99, named("web")))}, "shop/a", "shop/a", `policy "shop/a" holds the claim`},
		{"a global policy preempts a global one", policies{claimant("a", 1, anyDeployment), preempting(claimant("b", 2, named("web")))}, "a", "b",
			`policy "b" (priority 2) preempts "a" (priority 1)`},
		{"several preempting policies, first in order", policies{
			claimant("a", 1, anyDeployment), preempting(claimant("b", 9, named("web"))),
			preempting(claimant("shop/x", 2, named("web"))), preempting(claimant("shop/y", 7, named("web"))),
		}, "a", "shop/y", `policy "shop/y" preempts "a": it is of the workload's namespace, and the other global`},
		{"a policy that does not select the workload does not preempt", policies{claimant("shop/a", 0, anyDeployment), preempting(claimant("shop/b", 9, named("api")))}, "shop/a", "shop/a", `policy "shop/a" holds the claim`},
		{"preemption without a claim", policies{claimant("shop/a", 9, anyDeployment), preempting(claimant("shop/b", 5, named("web")))}, "", "shop/a",
			`of 2 policies that select it, "shop/a" has the highest priority, 9`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := New()
			for _, p := range test.policies {
				c.PutPolicy(p)
			}
			policy, reason := c.Choose(web, test.held)
			if got := pathOf(policy); got != test.want || reason != test.reason {
				t.Errorf("chose %q because %s\nwant  %q because %s", got, reason, test.want, test.reason)
			}
		})
	}
}

func pathOf(p *api.PropagationPolicy) string {
	if p == nil {
		return ""
	}
	return api.KeyOf(p).Path()
}

// If a policy is deleted and created again, it claims the same workloads as before, because policies are identified by
// their path.
func TestClaimOfAPolicyMadeAnew(t *testing.T) {
	c := New()
	old := claimant("shop/a", 0, anyDeployment)
	old.Metadata.UID = "first"
	c.PutPolicy(old)
	c.PutPolicy(claimant("shop/b", 5, anyDeployment))
	c.RemovePolicy(api.KeyOf(old))
	anew := claimant("shop/a", 0, anyDeployment)
	anew.Metadata.UID = "second"
	c.PutPolicy(anew)
	policy, reason := c.Choose(deployment("web"), "shop/a")
	if policy != anew || reason != `policy "shop/a" holds the claim` {
		t.Errorf("chose %q because %s, want the new shop/a", pathOf(policy), reason)
	}
}

// A new version of a policy replaces the previous one, whatever that one selected and however it was indexed.
func TestPolicyChanges(t *testing.T) {
	c := New()
	for _, name := range []string{"api", "batch", "web"} {
		c.PutWorkload(deployment(name, "app="+name))
	}
	step := func(name string, got []api.Key, want ...string) {
		t.Helper()
		var names []string
		for _, key := range got {
			names = append(names, key.Path())
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s affects %v, want %v", name, names, want)
		}
	}
	step("a policy for one", c.PutPolicy(preempting(claimant("shop/a", 0, named("web")))), "shop/web")
	step("the same for another", c.PutPolicy(preempting(claimant("shop/a", 0, named("batch")))), "shop/batch", "shop/web")
	step("for all", c.PutPolicy(claimant("shop/a", 0, anyDeployment, named("web"))), "shop/api", "shop/batch", "shop/web")
	step("by labels, said twice", c.PutPolicy(claimant("shop/a", 0, expression("app", api.SelectorIn, "web", "api", "web"), labelled("app", "web"), labelled("app", "web"))), "shop/api", "shop/batch", "shop/web")
	step("deleted", c.RemovePolicy(policyKey("shop/a")), "shop/api", "shop/web")
	step("deleted again", c.RemovePolicy(policyKey("shop/a")))
	if policy, _ := c.Choose(deployment("web", "app=web"), ""); policy != nil || len(c.shelves) != 0 {
		t.Errorf("the deleted policy %v still selects workloads, with %d shelves", pathOf(policy), len(c.shelves))
	}
	c.PutWorkload(deployment("web", "app=api"))
	step("after a change of labels", c.PutPolicy(claimant("shop/b", 0, labelled("app", "api"))), "shop/api", "shop/web")
	for _, name := range []string{"api", "batch", "web"} {
		c.RemoveWorkload(api.KeyOf(deployment(name)))
	}
	step("without workloads", c.PutPolicy(claimant("shop/b", 0, anyDeployment)))
	if n := len(c.byType) + len(c.byName) + len(c.byLabel) + len(c.subjects); n != 0 {
		t.Errorf("%d entries are left of workloads that are gone", n)
	}
}

// chooseNaively evaluates all selectors of all policies.
func chooseNaively(policies map[api.Key]*api.PropagationPolicy, w *api.Workload, held string) *api.PropagationPolicy {
	type match struct {
		policy    *api.PropagationPolicy
		precision int
	}
	var matches []match
	var holder *match
	for _, p := range policies {
		best := -1
		for _, s := range p.Spec.ResourceSelectors {
			if s.APIVersion != w.Spec.APIVersion || s.Kind != w.Spec.Kind ||
				p.Metadata.Namespace != "" && p.Metadata.Namespace != w.Metadata.Namespace ||
				s.Namespace != "" && s.Namespace != w.Metadata.Namespace {
				continue
			}
			switch {
			case s.Name == w.Metadata.Name:
				best = 2
			case s.Name != "":
			case s.LabelSelector == nil:
				best = max(best, 0)
			case s.LabelSelector.Matches(w.Metadata.Labels):
				best = max(best, 1)
			}
		}
		if best >= 0 {
			matches = append(matches, match{p, best})
			if api.KeyOf(p).Path() == held {
				holder = &match{p, best}
			}
		}
	}
	global := func(m match) bool { return m.policy.Metadata.Namespace == "" }
	if holder != nil {
		matches = slices.DeleteFunc(matches, func(m match) bool {
			takes := m.policy.Spec.Preemption == api.PreemptAlways && (global(*holder) && !global(m) ||
				global(*holder) == global(m) && m.policy.Spec.Priority > holder.policy.Spec.Priority)
			return !takes
		})
		if len(matches) == 0 {
			return holder.policy
		}
	}
	if len(matches) == 0 {
		return nil
	}
	return slices.MinFunc(matches, func(a, b match) int {
		if global(a) != global(b) {
			if global(a) {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.policy.Spec.Priority, a.policy.Spec.Priority), cmp.Compare(b.precision, a.precision),
			cmp.Compare(a.policy.Metadata.Name, b.policy.Metadata.Name))
	}).policy
}

// After any sequence of changes, the choice equals that of the naive implementation, and every workload whose choice
// has changed was reported.
func TestChoiceEqualsNaive(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	namespaces := rapid.SampledFrom([]string{"shop", "bank"})
	values := rapid.SampledFrom([]string{"x", "y", ""})
	labels := rapid.MapOfN(rapid.SampledFrom([]string{"app", "tier", "env"}), values, 0, 3)
	kinds := rapid.SampledFrom([]string{"Deployment", "Deployment", "Job"})
	requirement := rapid.Custom(func(t *rapid.T) api.SelectorRequirement {
		r := api.SelectorRequirement{
			Key:      rapid.SampledFrom([]string{"app", "tier", "env"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]api.SelectorOperator{api.SelectorIn, api.SelectorIn, api.SelectorNotIn, api.SelectorExists, api.SelectorDoesNotExist}).Draw(t, "operator"),
		}
		if r.Operator == api.SelectorIn || r.Operator == api.SelectorNotIn {
			r.Values = rapid.SliceOfN(values, 1, 3).Draw(t, "values")
		}
		return r
	})
	selector := rapid.Custom(func(t *rapid.T) api.ResourceSelector {
		s := api.ResourceSelector{APIVersion: "apps/v1", Kind: kinds.Draw(t, "kind")}
		if rapid.IntRange(0, 2).Draw(t, "named") == 0 {
			s.Name = names.Draw(t, "name")
		}
		if rapid.Bool().Draw(t, "labelled") {
			s.LabelSelector = &api.LabelSelector{MatchLabels: labels.Draw(t, "labels"), MatchExpressions: rapid.SliceOfN(requirement, 0, 2).Draw(t, "expressions")}
		}
		return s
	})
	policy := rapid.Custom(func(t *rapid.T) *api.PropagationPolicy {
		p := &api.PropagationPolicy{Metadata: api.Metadata{Name: names.Draw(t, "name")}}
		p.Spec.ResourceSelectors = rapid.SliceOfN(selector, 1, 3).Draw(t, "selectors")
		p.Spec.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
		if rapid.Bool().Draw(t, "preempting") {
			p.Spec.Preemption = api.PreemptAlways
		}
		if rapid.Bool().Draw(t, "namespaced") {
			p.Metadata.Namespace = namespaces.Draw(t, "namespace")
		} else {
			for i := range p.Spec.ResourceSelectors {
				p.Spec.ResourceSelectors[i].Namespace = rapid.SampledFrom([]string{"", "shop", "bank"}).Draw(t, "selector namespace")
			}
		}
		p.SetDefaults()
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		c := New()
		policies := map[api.Key]*api.PropagationPolicy{}
		workloads := map[api.Key]*api.Workload{}
		held := map[api.Key]string{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := map[api.Key]*api.PropagationPolicy{}
			for key, w := range workloads {
				before[key] = chooseNaively(policies, w, held[key])
			}
			var affected []api.Key
			told := false
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				p := policy.Draw(t, "policy")
				policies[api.KeyOf(p)] = p
				affected, told = c.PutPolicy(p), true
			case 3:
				key := api.KeyOf(policy.Draw(t, "removed policy"))
				delete(policies, key)
				affected, told = c.RemovePolicy(key), true
			case 4:
				w := &api.Workload{Metadata: api.Metadata{Namespace: namespaces.Draw(t, "namespace"), Name: names.Draw(t, "name"), Labels: labels.Draw(t, "labels")},
					Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: kinds.Draw(t, "kind")}}
				w.SetDefaults()
				workloads[api.KeyOf(w)] = w
				c.PutWorkload(w)
			case 5:
				key := api.Key{Kind: api.KindWorkload, Namespace: namespaces.Draw(t, "namespace"), Name: names.Draw(t, "name")}
				delete(workloads, key)
				delete(held, key)
				c.RemoveWorkload(key)
			}
			if !slices.IsSortedFunc(affected, api.Key.Compare) || len(slices.Compact(slices.Clone(affected))) != len(affected) {
				t.Fatalf("affected workloads %v, want them sorted and unique", affected)
			}
			for _, key := range slices.SortedFunc(maps.Keys(workloads), api.Key.Compare) {
				w := workloads[key]
				want := chooseNaively(policies, w, held[key])
				got, reason := c.Choose(w, held[key])
				if got != want {
					t.Fatalf("%s, held by %q: chose %q because %s, want %q", key, held[key], pathOf(got), reason, pathOf(want))
				}
				if _, in := slices.BinarySearchFunc(affected, key, api.Key.Compare); told && want != before[key] && !in {
					t.Fatalf("%s follows %q instead of %q, but is not among the affected workloads", key, pathOf(want), pathOf(before[key]))
				}
				if rapid.Bool().Draw(t, "follows") {
					held[key] = pathOf(got)
				}
			}
		}
	})
}

// BenchmarkClaims adds 20,000 workloads in one namespace, each with its own policy, and makes every choice. Half a
// second would be far too much.
func BenchmarkClaims(b *testing.B) {
	const n = 20_000
	for _, bench := range []struct {
		name     string
		selector func(i int) api.ResourceSelector
		policies int
	}{
		{"by-name", func(i int) api.ResourceSelector { return named(fmt.Sprintf("w%d", i)) }, n},
		{"by-label", func(i int) api.ResourceSelector { return labelled("app", fmt.Sprintf("w%d", i)) }, n},
		{"by-second-label", func(i int) api.ResourceSelector {
			return api.ResourceSelector{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"app": "shop", "component": fmt.Sprintf("w%d", i)}}}
		}, n},
		{"ten-for-all", func(int) api.ResourceSelector { return anyDeployment }, 10},
	} {
		var policies []*api.PropagationPolicy
		for i := range bench.policies {
			policies = append(policies, claimant(fmt.Sprintf("shop/p%d", i), int64(i%10), bench.selector(i)))
		}
		var workloads []*api.Workload
		for i := range n {
			name := fmt.Sprintf("w%d", i)
			app := "shop"
			if bench.name == "by-label" {
				app = name
			}
			workloads = append(workloads, deployment(name, "app="+app, "component="+name, "env=prod"))
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := New()
				for _, w := range workloads {
					c.PutWorkload(w)
				}
				for _, p := range policies {
					c.PutPolicy(p)
				}
				for _, w := range workloads {
					p, _ := c.Choose(w, "")
					if p == nil {
						b.Fatalf("%s follows no policy", w.Metadata.Name)
					}
					if again, _ := c.Choose(w, api.KeyOf(p).Path()); again != p {
						b.Fatalf("%s does not keep its policy", w.Metadata.Name)
					}
				}
			}
		})
	}
}

// A frozen index keeps its choices, whatever policies are added or removed later.
func TestFrozenRulesDoNotChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frozen struct {
			rules *Rules
			said  []string
		}
		c, workload := New(), deployment("web", "app=web")
		choices := func(r *Rules) (said []string) {
			for _, held := range []string{"", "p0", "p1", "p2"} {
				policy, reason := r.Choose(workload, held)
				said = append(said, pathOf(policy)+": "+reason)
			}
			return said
		}
		var all []frozen
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := fmt.Sprintf("p%d", rapid.IntRange(0, 4).Draw(t, "policy"))
			p := &api.PropagationPolicy{Metadata: api.Metadata{Name: name}}
			for range rapid.IntRange(1, 3).Draw(t, "selectors") {
				selector := api.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
				if rapid.Bool().Draw(t, "by name") {
					selector.Name = "web"
				}
				p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, selector)
			}
			p.Spec.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				c.PutPolicy(p)
			case 1:
				c.RemovePolicy(api.KeyOf(p))
			case 2:
				all = append(all, frozen{c.Freeze(), choices(c.Rules)})
			}
			for _, f := range all {
				if now := choices(f.rules); !slices.Equal(now, f.said) {
					t.Fatalf("the frozen rules choose %q, want %q as before", now, f.said)
				}
			}
		}
	})
}
