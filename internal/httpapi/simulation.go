package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// simulationTime is the timeout of a simulation; a full pass over the largest fleet takes about a
// second.
const simulationTime = 60 * time.Second

// simulationSlots is the number of concurrent simulations. Their bodies are large, and they use all
// cores.
const simulationSlots = 4

// Limits of a simulation besides the size of its text: a value of two characters may become a
// structure of hundreds of bytes.
const (
	maxSimulated       = 100_000   // objects, or keys of objects to delete
	maxSimulatedValues = 4_000_000 // names and values in the whole document
)

// checkSimulated returns an error if a simulation has more objects or values than are held in
// memory. What else is wrong is found when it is decoded.
func checkSimulated(data []byte) error {
	if len(data) <= 2*maxSimulated {
		return nil // an element and its comma have at least two characters
	}
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for values := 0; ; values++ {
		if _, err := d.ReadToken(); err != nil {
			return nil //nolint:nilerr // io.EOF, or not JSON
		}
		if values >= maxSimulatedValues {
			return problem.New(api.ProblemTooLarge, "a simulation may have at most %d values: simulate fewer objects at a time", maxSimulatedValues)
		}
		if d.StackDepth() < 2 {
			continue
		}
		if kind, length := d.StackIndex(2); kind == '[' && length > maxSimulated {
			return problem.New(api.ProblemTooLarge, "a simulation may have at most %d objects, and as many to delete: simulate fewer at a time", maxSimulated)
		}
	}
}

type simulateInput struct {
	Payload operation.Payload
}

type simulateOutput struct {
	Body *api.SimulationResult
}

// simulations decides without changing anything.
type simulations struct {
	api       *operation.API
	rights    auth.Rights
	decisions Decisions
	maxBody   int64
	// slots limits concurrent simulations.
	slots *semaphore.Weighted
}

func (s *simulations) routes() {
	simulate := operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "simulate", Method: http.MethodPost, Path: "/v1/simulations", Tags: []string{"simulation"},
		Summary:      "Decide without changing anything",
		Description:  "Explains the given objects and up to 100 others that would change, with at most a million candidates in all. At most 100000 objects are simulated at once.",
		MaxBodyBytes: s.maxBody, Middlewares: huma.Middlewares{s.oneOfFew},
		Responses: map[string]*huma.Response{"200": operation.JSONResponse("OK", s.api.Schema(api.SimulationResult{}))},
		Errors:    []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	})
	operation.Register(s.api, simulate, s.simulate)
	s.api.DescribeBody(simulate, s.api.Schema(api.Simulation{}), true)
}

// oneOfFew admits a simulation before its body is read.
func (s *simulations) oneOfFew(ctx huma.Context, next func(huma.Context)) {
	if !s.slots.TryAcquire(1) {
		ctx.SetHeader("Retry-After", "1")
		s.api.Refuse(ctx, http.StatusTooManyRequests, "too many simulations are running: repeat the request")
		return
	}
	defer s.slots.Release(1)
	next(ctx)
}

func (s *simulations) simulate(ctx context.Context, in *simulateInput) (*simulateOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	if err := checkSimulated(in.Payload.Data); err != nil {
		return nil, err
	}
	var request api.Simulation
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	if err := s.rights.MaySimulate(ctx, who, request); err != nil {
		return nil, err
	}
	result, err := s.decisions.Simulate(ctx, request)
	if err != nil {
		return nil, err
	}
	return &simulateOutput{s.rights.VisibleResult(who, result)}, nil
}
