package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// unready says why the server cannot answer for the fleet at present.
func (s *Server) unready() error {
	if s.stopping.Err() != nil {
		return errors.New("the server is stopping")
	}
	if !s.loaded() {
		return errors.New("the server is still loading its objects")
	}
	return s.options.Ready()
}

func health(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	if err := s.unready(); err != nil {
		w.Header().Set("Retry-After", "1")
		writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	text := "ok\n"
	if n := len(s.fleet.Snapshot().AllDamaged()); n > 0 {
		// Their names are not for everybody.
		text += fmt.Sprintf("damaged objects in the store: %d; GET /v1/server and the log name them\n", n)
	}
	writeText(w, http.StatusOK, text)
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
	if err := identityOf(ctx).mayReadNamespace(""); err != nil {
		return nil, err
	}
	var damaged []api.DamagedObject
	for _, d := range s.fleet.Snapshot().AllDamaged() {
		damaged = append(damaged, api.DamagedObject{Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name})
	}
	return &serverOutput{&api.ServerInfo{
		Damaged: damaged,
		Version: s.options.Version, Leader: s.options.Leader(), Now: s.now().UTC(), Store: s.store.Info(),
	}}, nil
}
