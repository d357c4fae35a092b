package terraform

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// plannedWrites are the writes and deletions that a run has planned so far. Terraform reads and
// plans an object after everything that it depends on, so the read of a decision knows which of
// them come before it, and asks the server in a simulation whether they move the decision. The
// answer is kept in private state, because Terraform plans once more during the apply, when the
// same question would have another answer. The zero value is empty.
type plannedWrites struct {
	mu     sync.Mutex
	writes []plannedWrite

	// asking is held while the server is asked, so that reads that wait for it share the answer.
	asking sync.Mutex
	answer simulatedWrites
}

// plannedWrite is one planned write or deletion.
type plannedWrite struct {
	key api.Key
	// object is the object as it is written; nil = it is deleted.
	object json.RawMessage
	// unknown says that the object depends on values that are known only after apply.
	unknown bool
}

// simulatedWrites says what the first writes of a run move.
type simulatedWrites struct {
	writes int
	moved  map[api.Key]bool
}

func (p *plannedWrites) add(w plannedWrite) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, w)
}

// soFar returns the writes that have been planned.
func (p *plannedWrites) soFar() []plannedWrite {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.writes)
}

// planWrite records what a plan writes. was is the state, nil for a new object.
func (r *Resource) planWrite(plan, was map[string]tftypes.Value) {
	if r.session == nil || r.session.pending != nil {
		return
	}
	if was != nil {
		if !r.writes(plan, was) {
			return
		}
		if key := r.key(was); key != r.key(plan) {
			r.planDeletion(was)
		}
	}
	w := plannedWrite{key: r.key(plan)}
	if object, known := r.planned(plan); known {
		data, err := client.Encode(object)
		w.object, w.unknown = data, err != nil
	} else {
		w.unknown = true
	}
	r.session.planned.add(w)
}

// planDeletion records that a plan deletes the object of a state.
func (r *Resource) planDeletion(was map[string]tftypes.Value) {
	if r.session != nil && r.session.pending == nil && was != nil {
		r.session.planned.add(plannedWrite{key: r.key(was)})
	}
}

// writes reports whether a plan differs from the state in what the server has.
func (r *Resource) writes(plan, was map[string]tftypes.Value) bool {
	var changed []string
	for name := range plan {
		if r.isWritten(name) && !same(plan[name], was[name]) {
			changed = append(changed, name)
		}
	}
	return len(changed) > 0 && !r.sameOnServer(changed, plan, was)
}

// planned returns the object that a plan describes, without secrets: they move no decision. known
// is false if it depends on unknown values, or if the server would refuse it.
func (r *Resource) planned(plan map[string]tftypes.Value) (object api.Object, known bool) {
	var d configDocument
	document, err := r.readAttributes(&d, plan)
	if err != nil || len(d.Unknown) > 0 {
		return nil, false
	}
	foldSecrets(r.secrets(), document, false)
	object, err = Unflatten(r.Kind, document)
	return object, err == nil
}

// moves reports whether what the run has planned so far moves the decision of an object. What is
// planned but not known yet may.
func (r *Resource) moves(ctx context.Context, object api.Object, diags *diag.Diagnostics) bool {
	if r.Decision == nil {
		return false
	}
	var writes []plannedWrite
	concerned := false
	for _, w := range r.session.planned.soFar() {
		concerns := r.ConcernedBy(object, w.key.Kind)
		if concerns && w.unknown {
			return true
		}
		concerned = concerned || concerns
		if !w.unknown {
			writes = append(writes, w)
		}
	}
	if !concerned {
		return false
	}
	moves, err := r.asked(ctx, object, writes)
	if err != nil {
		if !r.session.causes.tell("simulation: " + err.Error()) {
			diags.AddWarning("The plan cannot tell which decisions it moves",
				"The server did not simulate what the plan changes: "+Sentence(err.Error())+" Decisions that may move are known after the apply.")
		}
		return true
	}
	return moves
}

// asked reports whether writes move the decision of an object, according to the server.
func (r *Resource) asked(ctx context.Context, object api.Object, writes []plannedWrite) (bool, error) {
	if r.Derived {
		result, err := simulateWrites(ctx, r.session.client, writes, object)
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(result.Objects, func(o api.Object) bool { return api.KeyOf(o) == api.KeyOf(object) })
		return at < 0 || !reflect.DeepEqual(r.Decision(result.Objects[at]), r.Decision(object)), nil
	}
	p := &r.session.planned
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.answer.writes < len(writes) {
		// Others may have been planned meanwhile: whoever waits needs fewer of them.
		all := slices.DeleteFunc(slices.Clone(p.soFar()), func(w plannedWrite) bool { return w.unknown })
		result, err := simulateWrites(ctx, r.session.client, all)
		if err != nil {
			return false, err
		}
		moved := map[api.Key]bool{}
		for _, c := range result.Changes {
			moved[c.Key] = true
		}
		p.answer = simulatedWrites{len(all), moved}
	}
	return p.answer.moved[api.KeyOf(object)], nil
}

// simulateWrites asks the server what moves if writes are made one after another. asked are objects
// to show afterwards.
func simulateWrites(ctx context.Context, c *client.Client, writes []plannedWrite, asked ...api.Object) (*api.SimulationResult, error) {
	request := api.Simulation{Steps: true}
	last, deleted := map[api.Key]int{}, map[api.Key]bool{}
	for i, w := range writes {
		if w.object != nil {
			last[w.key] = i // Terraform may plan an object twice
		}
	}
	for i, w := range writes {
		switch {
		case w.object == nil && !deleted[w.key]:
			deleted[w.key] = true
			request.Delete = append(request.Delete, w.key)
		case w.object != nil && last[w.key] == i:
			request.Objects = append(request.Objects, w.object)
		}
	}
	for _, object := range asked {
		data, err := client.Encode(object)
		if err != nil {
			return nil, fmt.Errorf("simulate what the plan changes: %w", err)
		}
		request.Objects = append(request.Objects, data)
	}
	return c.Simulate(ctx, request)
}
