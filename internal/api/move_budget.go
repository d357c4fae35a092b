package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MoveBudget limits how many clusters decisions leave in a time. One in a namespace counts the
// moves of all placements and workloads of that namespace, a global one those of the whole server.
type MoveBudget struct {
	Kind     Kind             `json:"kind" enum:"move_budget"`
	Metadata Metadata         `json:"metadata"`
	Spec     MoveBudgetSpec   `json:"spec"`
	Status   MoveBudgetStatus `json:"status,omitzero"`
}

// MoveBudgetSpec is a limit on the moves of decisions.
type MoveBudgetSpec struct {
	MaxMoves MoveAmount `json:"max_moves" doc:"Most moves in the time 'per': a number ('\"3\"'), or a percentage of the clusters that are chosen ('\"10%\"'), rounded up. A move is one cluster that is left for another although nothing forces it. '\"0\"' holds every move."`
	Per      Duration   `json:"per" shortest:"1m" doc:"Time in which moves count."`
}

// MoveAmount is a number of moves: "3" or "10%".
type MoveAmount string

// MoveBudgetStatus is the status of a budget, which has none: what was used of it is in the
// statuses of the placements and workloads that moved.
type MoveBudgetStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// Moves are moves that count in budgets: those of one decision at one time.
type Moves struct {
	At    time.Time `json:"at" doc:"When the decision moved."`
	Moves int64     `json:"moves" doc:"Number of clusters that it left."`
}

// maxMoves is the largest number of moves of a budget.
const maxMoves = 1_000_000

// Parse parses the amount: a count of at least 0, or a percentage from 0 to 100.
func (a MoveAmount) Parse() (n int64, percent bool, err error) {
	text := string(a)
	digits, percent := strings.CutSuffix(text, "%")
	n, err = strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || strconv.FormatInt(n, 10) != digits || n < 0 || n > maxMoves:
		return 0, false, fmt.Errorf("%q is neither a number of moves from 0 to %d, such as \"3\", nor a percentage such as \"10%%\"", text, maxMoves)
	case percent && n > 100:
		return 0, false, fmt.Errorf("%q is more than 100%%", text)
	}
	return n, percent, nil
}

// Of returns the number of moves for a number of chosen clusters: percentages are rounded up. An
// invalid amount, which no validated object has, allows none.
func (a MoveAmount) Of(chosen int64) int64 {
	n, percent, err := a.Parse()
	if err != nil {
		return 0
	}
	if percent {
		return (n*chosen + 99) / 100
	}
	return n
}

func (b *MoveBudgetSpec) validate(errs *FieldErrors, field string) {
	if b == nil {
		return
	}
	if _, _, err := b.MaxMoves.Parse(); err != nil {
		errs.Add(under(field, "max_moves"), "%s", err)
	}
	if b.Per == "" {
		errs.Add(under(field, "per"), "is required, such as \"1h\"")
	} else if d, err := b.Per.Parse(); err == nil && d > longestWindow {
		errs.Add(under(field, "per"), "%q must be at most %s", string(b.Per), Duration("8784h"))
	}
}

// ObjectKind implements Object.
func (b *MoveBudget) ObjectKind() Kind { return KindMoveBudget }

// Meta implements Object.
func (b *MoveBudget) Meta() *Metadata { return &b.Metadata }

// SpecPart implements Object.
func (b *MoveBudget) SpecPart() any { return &b.Spec }

// StatusPart implements Object.
func (b *MoveBudget) StatusPart() any { return &b.Status }

// Copy implements Object.
func (b *MoveBudget) Copy() Object { d := *b; return &d }

// Secrets implements Object.
func (b *MoveBudget) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (b *MoveBudget) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (b *MoveBudget) SetDefaults() {
	b.Kind = KindMoveBudget
	b.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&b.Spec)
}

// Validate implements Object.
func (b *MoveBudget) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(b, GlobalOrNamespaced)
	b.Spec.validate(&errs, "spec")
	return errs.inOrder(b)
}
