//go:build faults

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// deed is what a contender does to an object.
type deed string

const (
	read   deed = "read"
	write  deed = "write"
	remove deed = "delete"
	commit deed = "commit" // a write with a preview's token
)

// ask and reply are an operation on one object, as a contender saw it.
type ask struct {
	object string
	deed   deed
	number int64 // the number written
}

type reply struct {
	number  int64 // 0 = the object does not exist
	version int64
	unknown bool // unknown whether it was done
	refused bool // it was not done
}

// held is the state of an object.
type held struct{ number, version int64 }

// register is an object that is written, deleted and read. Its version also increases with decisions.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byObject := map[string][]porcupine.Operation{}
		for _, op := range history {
			object := op.Input.(ask).object
			byObject[object] = append(byObject[object], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byObject {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return held{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(held), input.(ask), output.(reply)
		switch {
		case out.refused:
			return in.deed == commit || in.deed == remove && now.number == 0, now
		case in.deed == read:
			return out.number == now.number && (out.number == 0 || out.version >= now.version), held{out.number, max(now.version, out.version)}
		case in.deed == remove:
			return out.unknown || now.number != 0, held{0, now.version}
		case out.unknown || out.number != in.number: // or another write immediately after
			return true, held{in.number, now.version}
		}
		// The response shows it with its decision; others may have read it without.
		return out.version > now.version, held{in.number, now.version}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// contest has contenders that read and write the same few objects through any server.
type contest struct {
	ensemble *ensemble
	name     string
	number   int64
	halt     chan struct{}
	running  sync.WaitGroup
	began    time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	stale   int // reads that were not judged
	// replaced counts how often an object was given up for a new one because the outcome of a write is unknown.
	// Histories with many unknown writes cannot be checked.
	replaced [contested]int

	promises, kept atomic.Int64 // number of previews that were committed
}

const (
	contenders = 4
	contested  = 3

	contenderTimeout = 4 * time.Second // for an operation, including retries
)

// contestLabel numbers the writes of contenders.
const contestLabel = "contest"

// entryOf returns the number of a contender's write.
func entryOf(object api.Object) int64 {
	number, err := strconv.ParseInt(object.Meta().Labels[contestLabel], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

var contestNumber atomic.Int64

// contestPrefix is the prefix of the names of contested objects.
const contestPrefix = "contest-"

// ageOf returns the maximum age of what a response shows: it has everything from before that time. The header has whole
// milliseconds.
func ageOf(header http.Header) (time.Duration, error) {
	age, err := strconv.Atoi(header.Get(api.LastContactHeader))
	return time.Duration(age+1) * time.Millisecond, err
}

// clearContests deletes the objects of earlier contests. They have been judged, and deciding them again would make each
// round longer than the one before. Those of the last contest remain, for the comparison with a fresh server.
func (e *ensemble) clearContests() {
	e.t.Helper()
	there, err := objects(e.leader().process)
	if err != nil {
		e.t.Fatal(err)
	}
	for key := range there {
		if !strings.HasPrefix(key.Name, contestPrefix) {
			continue
		}
		eventually.True(e.t, "an object of an earlier contest is deleted", func() bool {
			err := e.clients(0).Delete(e.t.Context(), key)
			return err == nil || client.IsNotFound(err)
		})
	}
}

// startContest starts the contenders. Each contest has its own objects.
func (e *ensemble) startContest(name string) *contest {
	x := &contest{ensemble: e, name: name, number: contestNumber.Add(1), halt: make(chan struct{}), began: time.Now()}
	for contender := range contenders {
		own := rand.New(rand.NewPCG(e.random.Uint64(), uint64(contender)))
		x.running.Go(func() {
			for {
				select {
				case <-x.halt:
					return
				case <-time.After(time.Duration(own.IntN(20)) * time.Millisecond): // a user who thinks
				}
				x.act(own, own.IntN(contested))
			}
		})
	}
	return x
}

// stop ends the contest when everything has been done that contenders do. On a busy machine, that may take longer than
// a fault.
func (x *contest) stop() {
	x.ensemble.t.Helper()
	defer x.running.Wait()
	defer close(x.halt)
	for _, d := range []deed{read, write, remove, commit} {
		eventually.True(x.ensemble.t, fmt.Sprintf("%s: there is a %s", x.name, d), func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return slices.ContainsFunc(x.history, func(op porcupine.Operation) bool { return op.Input.(ask).deed == d })
		})
	}
}

// nameOf returns the current name of a contested object. The caller holds mu.
func (x *contest) nameOf(which int) string {
	return fmt.Sprintf("%s%d-%d-%d", contestPrefix, x.number, which, x.replaced[which])
}

// act does one thing to one object through one server.
func (x *contest) act(random *rand.Rand, which int) {
	x.mu.Lock()
	name := x.nameOf(which)
	x.mu.Unlock()
	r := x.ensemble.replicas[random.IntN(len(x.ensemble.replicas))]
	in := ask{object: name, deed: []deed{read, read, read, write, write, remove, commit}[random.IntN(7)]}
	ctx, cancel := context.WithTimeout(context.Background(), contenderTimeout)
	defer cancel()
	object := placement(name, groupName(random.IntN(groups)), 1+random.Int64N(2), 0)
	object.Metadata.Labels = nil
	var out reply
	var token string
	var promised []string
	if in.deed == write || in.deed == commit {
		in.number = x.ensemble.number.Add(1)
		object.Metadata.Labels = map[string]string{contestLabel: strconv.FormatInt(in.number, 10)}
		object.SetDefaults()
		if in.deed == commit {
			preview, err := r.contender.Preview(ctx, object)
			if err != nil {
				return // nothing was written
			}
			token, promised = preview.Token, preview.Clusters
			// The token is valid on every server.
			r = x.ensemble.replicas[random.IntN(len(x.ensemble.replicas))]
		}
	}
	call := time.Since(x.began)
	counts := true
	switch in.deed {
	case read:
		out, counts = x.read(ctx, r, name)
	case remove:
		err := r.contender.Delete(ctx, api.KeyOf(object))
		out.refused = client.IsNotFound(err)
		out.unknown = err != nil && !out.refused
	case write, commit:
		var options client.PutOptions
		options.PreviewToken = token
		if random.IntN(2) == 0 && token == "" {
			options.Wait = pointer(time.Duration(0))
		}
		stored, err := r.contender.Put(ctx, object, options)
		switch {
		case err == nil:
			out.number, out.version = entryOf(stored), versionOf(stored)
			if p := stored.(*api.Placement); token != "" && out.number == in.number {
				x.promises.Add(1)
				if p.Status.ObservedGeneration == p.Metadata.Generation && sameClusters(p.Status.Clusters, promised) {
					x.kept.Add(1)
				}
			}
		case refused(err):
			out.refused = true
		default:
			out.unknown = true
		}
	}
	back := time.Since(x.began)
	if out.unknown {
		back = time.Hour // it may be done at any later time
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !counts {
		x.stale++
		return
	}
	if out.unknown && name == x.nameOf(which) {
		x.replaced[which]++
	}
	x.history = append(x.history, porcupine.Operation{Input: in, Call: int64(call), Output: out, Return: int64(back)})
}

// read reads an object from a server. It does not count where the server says that its
// picture may be old, or says nothing.
func (x *contest) read(ctx context.Context, r *replica, name string) (out reply, counts bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+api.KeyOf(placement(name, "g0", 1, 0)).URLPath(), nil)
	if err != nil {
		x.ensemble.t.Error(err)
		return reply{}, false
	}
	asked := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{}, false
	}
	defer answer.Body.Close()
	// What it shows was complete so many milliseconds ago: while this was being asked, or
	// before.
	if age, err := strconv.Atoi(answer.Header.Get(api.LastContactHeader)); err != nil || time.Duration(age)*time.Millisecond > time.Since(asked) {
		return reply{}, false
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return reply{}, true
	case http.StatusOK:
		var object api.Placement
		if err := json.NewDecoder(answer.Body).Decode(&object); err != nil {
			return reply{}, false
		}
		return reply{number: entryOf(&object), version: versionOf(&object)}, true
	}
	return reply{}, false
}

// judge checks that what all contenders saw forms one history.
func (x *contest) judge() {
	x.ensemble.t.Helper()
	unknown := 0
	for _, op := range x.history {
		if op.Output.(reply).unknown {
			unknown++
		}
	}
	switch result, info := porcupine.CheckOperationsVerbose(register, x.history, 2*time.Minute); result {
	case porcupine.Illegal:
		x.ensemble.t.Errorf("%s: the operations are not linearizable", x.name)
		for _, part := range info.PartialLinearizationsOperations() {
			longest := slices.MaxFunc(part, func(a, b []porcupine.Operation) int { return cmp.Compare(len(a), len(b)) })
			x.ensemble.t.Logf("the end of the longest linearizable part:")
			for _, op := range longest[max(0, len(longest)-5):] {
				x.ensemble.t.Logf("  %v", op)
			}
			x.ensemble.t.Logf("and the first operations that do not fit:")
			rest := slices.DeleteFunc(slices.Clone(x.history), func(op porcupine.Operation) bool {
				return op.Input.(ask).object != longest[0].Input.(ask).object || slices.Contains(longest, op)
			})
			for _, op := range rest[:min(5, len(rest))] {
				x.ensemble.t.Logf("  %v", op)
			}
		}
	case porcupine.Ok:
	case porcupine.Unknown:
		x.ensemble.t.Errorf("%s: %d operations, %d of them without an answer: too many to check", x.name, len(x.history), unknown)
	}
	x.ensemble.t.Logf("%s: one history of %d operations, %d without an answer; %d reads not judged; %d of %d previews kept", x.name, len(x.history), unknown, x.stale, x.kept.Load(), x.promises.Load())
}
