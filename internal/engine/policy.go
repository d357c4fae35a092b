package engine

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// policy is a prioritizer policy made ready: what a cluster's score is the sum
// of. Immutable.
type policy struct {
	// balance, steady and spread are the weights of the prioritizers that depend
	// on decisions, 0 where not used.
	balance, steady, spread float64
	// terms are the others: they rate a cluster whoever asks.
	terms []term
}

// newPolicy compiles a prioritizer policy. Of a built-in prioritizer that is
// listed twice the last weight counts; scores and metrics add up.
func newPolicy(spec *api.PrioritizerPolicy) *policy {
	p := &policy{}
	weights := map[string]float64{}
	var order []string
	builtin := func(name string, weight float64) {
		if _, ok := weights[name]; !ok {
			order = append(order, name)
		}
		weights[name] = weight
	}
	if spec == nil || spec.Mode != api.ModeExact {
		builtin(api.PrioritizerBalance, 1)
		builtin(api.PrioritizerSteady, 1)
	}
	if spec == nil {
		spec = &api.PrioritizerPolicy{}
	}
	for i := range spec.Configurations {
		c := &spec.Configurations[i]
		weight := 1.0
		if c.Weight != nil {
			weight = float64(*c.Weight)
		}
		switch c.Type {
		case api.PrioritizerAddon:
			p.add(addonScore{c.ResourceName, c.ScoreName}, weight)
		case api.PrioritizerMetric:
			p.add(metricScore{c.Name}, weight)
		default:
			builtin(c.Name, weight)
		}
	}
	for _, name := range order {
		switch weight := weights[name]; name {
		case api.PrioritizerBalance:
			p.balance = weight
		case api.PrioritizerSteady:
			p.steady = weight
		case api.PrioritizerSpread:
			p.spread = weight
		default:
			p.add(builtinPrioritizers[name], weight)
		}
	}
	return p
}

func (p *policy) add(prioritizer prioritizer, weight float64) {
	if weight != 0 && prioritizer != nil {
		p.terms = append(p.terms, term{prioritizer, weight})
	}
}

// key writes what makes two policies rate clusters the same.
func (p *policy) key(k *Key) {
	if p == nil {
		k.Text("policy", "")
		return
	}
	k.Text("policy", fmt.Sprintf("%g,%g,%g;%s", p.balance, p.steady, p.spread, p.rankKey()))
}

// rankKey is equal for two policies whose terms rate clusters the same.
func (p *policy) rankKey() string {
	var b strings.Builder
	for _, t := range p.terms {
		fmt.Fprintf(&b, "%T:%s:%g;", t.prioritizer, t.Name(), t.weight)
	}
	return b.String()
}

// relative says that a term compares the candidates with each other.
func (p *policy) relative() bool {
	for i := range p.terms {
		if p.terms[i].relative() {
			return true
		}
	}
	return false
}

// available says that a term looks at what is left of a resource.
func (p *policy) available() bool {
	for i := range p.terms {
		if p.terms[i].free() != "" {
			return true
		}
	}
	return false
}

// scores are the placement scores that the policy rates clusters by.
func (p *policy) scores() []addonScore {
	if p == nil {
		return nil
	}
	var out []addonScore
	for i := range p.terms {
		if addon, ok := p.terms[i].prioritizer.(addonScore); ok {
			out = append(out, addon)
		}
	}
	return out
}

// metrics are the metrics that the policy rates clusters by, by name.
func (p *policy) metrics() []string {
	if p == nil {
		return nil
	}
	var out []string
	for i := range p.terms {
		if score, ok := p.terms[i].prioritizer.(metricScore); ok {
			out = append(out, score.metric)
		}
	}
	return out
}
