package api

import "github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"

// Predicate is a set of conditions on a cluster, all of which must hold. A cluster must match one
// of a placement's predicates.
type Predicate struct {
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the cluster's labels."`
	ClaimSelector *LabelSelector `json:"claim_selector,omitempty" doc:"Conditions on the cluster's claims."`
	CEL           []string       `json:"cel,omitempty" doc:"CEL expressions that must all be true, such as 'managedCluster.metadata.labels[\"tier\"] == \"gold\"'. An expression that fails, for example because a label is absent, counts as false."`
}

func validatePredicates(errs *FieldErrors, field string, predicates []Predicate) {
	for i, p := range predicates {
		at := index(field, i)
		p.LabelSelector.validate(errs, at+".label_selector")
		p.ClaimSelector.validateOfClaims(errs, at+".claim_selector")
		for j, text := range p.CEL {
			if _, err := expression.Compile(text); err != nil {
				errs.Add(index(at+".cel", j), "%s", err)
			}
		}
	}
}
