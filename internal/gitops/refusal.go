package gitops

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Refusal says why there is no answer.
type Refusal struct {
	Type   api.ProblemType
	Detail string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Detail }

func refuse(as api.ProblemType, format string, args ...any) *Refusal {
	return &Refusal{as, fmt.Sprintf(format, args...)}
}

// undecided refuses because an answer would make the controller delete what it should keep.
func undecided(format string, args ...any) *Refusal {
	return refuse(api.ProblemNoAnswer, format, args...)
}

// damaged refuses because of an object that is damaged in the store.
func damaged(key api.Key) *Refusal {
	return refuse(api.ProblemDamaged, "%s is damaged in the store: write it again with PUT or delete it, or restore a backup", key)
}
