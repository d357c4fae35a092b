package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// request and answer are an operation on one object, as a client saw it.
type request struct {
	object int
	write  bool
	value  string
	expect int64
}

type answer struct {
	value    string
	revision int64
	conflict bool
}

// register is a compare-and-set register with revisions: a write must return a higher revision than the register has.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byObject := map[int][]porcupine.Operation{}
		for _, op := range history {
			object := op.Input.(request).object
			byObject[object] = append(byObject[object], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byObject {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return cell{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(cell), input.(request), output.(answer)
		switch {
		case !in.write:
			return out.value == now.value && out.revision == now.revision, now
		case in.expect != Any && in.expect != now.revision:
			return out.conflict, now
		}
		return !out.conflict && out.revision > now.revision, cell{in.value, out.revision}
	},
}

func TestCommitAndReadAreLinearizable(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	const clients, operations, objects = 8, 60, 3
	var mu sync.Mutex
	var history []porcupine.Operation
	began := time.Now()
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			known := map[int]int64{}
			for n := range operations {
				in := request{object: random.IntN(objects), write: random.IntN(2) == 0, expect: Any}
				var out answer
				call := time.Since(began)
				if in.write {
					in.value = fmt.Sprint(client, "-", n)
					if random.IntN(3) > 0 {
						in.expect = known[in.object]
					}
					revision, err := s.Commit(ctx, Write{Key: placement(in.object), Value: []byte(in.value), Expect: in.expect})
					var conflict *ConflictError
					out = answer{revision: revision, conflict: errors.As(err, &conflict)}
					if err != nil && !out.conflict {
						t.Error(err)
						return
					}
				} else {
					spec, _, err := s.Read(ctx, placement(in.object))
					if err != nil {
						t.Error(err)
						return
					}
					if spec != nil {
						out = answer{value: string(spec.Value), revision: spec.ModRevision}
					}
					known[in.object] = out.revision
				}
				op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(began))}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(history) != clients*operations {
		t.Fatalf("%d operations", len(history))
	}
	if result := porcupine.CheckOperationsTimeout(register, history, eventually.Limit); result != porcupine.Ok {
		t.Fatalf("the history is not linearizable: %v", result)
	}
}
