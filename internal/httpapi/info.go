package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// checks is everything that says whether the server can answer for the fleet.
func (s *Server) checks() []Check {
	var running, loaded error
	if s.stopping.Err() != nil {
		running = errors.New("the server is stopping")
	}
	if !s.sessions.Loaded() {
		loaded = errors.New("the server is still loading its objects")
	}
	return append([]Check{check("running", running), check("loaded", loaded), s.damage(), s.components()}, s.options.Checks()...)
}

func health(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

// damage is the check of what is stored. Names of objects are not for everybody.
func (s *Server) damage() Check {
	if n := len(s.fleet.Snapshot().AllDamaged()); n > 0 {
		return Check{"objects", CheckWarning, fmt.Sprintf("damaged objects in the store: %d; GET /v1/server and the log name them", n)}
	}
	return Check{Name: "objects", State: CheckOK}
}

// components is the check of what a panic has ended and is started again.
func (s *Server) components() Check {
	if down := s.options.Faults.Down(); len(down) > 0 {
		return Check{"components", CheckWarning, "started again after a panic: " + strings.Join(down, ", ")}
	}
	return Check{Name: "components", State: CheckOK}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client went away: there is nobody to tell
}

type serverOutput struct {
	Body *api.ServerInfo
}

func (s *Server) describe(ctx context.Context, _ *struct{}) (*serverOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(""); err != nil {
		return nil, err
	}
	var damaged []api.DamagedObject
	for _, d := range s.fleet.Snapshot().AllDamaged() {
		if !who.SeesDamaged(d.Key) {
			continue
		}
		damaged = append(damaged, api.DamagedObject{Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name})
	}
	return &serverOutput{&api.ServerInfo{
		Damaged: damaged,
		Version: s.options.Version, Leader: s.options.Leader(), Now: s.now().UTC(), Store: s.store.Info(),
	}}, nil
}
