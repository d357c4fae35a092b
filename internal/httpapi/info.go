package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// status serves the health and the description of the server.
type status struct {
	api      *operation.API
	store    Store
	history  store.History // nil = none is kept
	fleet    *fleet.Fleet
	sessions *auth.Sessions
	faults   *recovery.Recorder
	version  string
	name     string
	leading  *leaderClient
	// more returns the checks of other parts.
	more     func() []Check
	now      func() time.Time
	logger   *slog.Logger
	stopping context.Context
	audit    *auditor
}

func (s *status) routes() {
	operation.Register(s.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "describe-server", Method: http.MethodGet, Path: "/v1/server", Tags: []string{"server"},
		Summary: "Describe the server",
	}), s.describe)
	s.describeBackup()
	operation.Register(s.api, operation.Administer("upgrade the format of the store", huma.Operation{
		OperationID: "finish-upgrade", Method: http.MethodPost, Path: "/v1/upgrade/finish", Tags: []string{"server"},
		Summary:     "Finish the upgrade of all servers",
		Description: "Writes the store in the newest format from now on. Servers and programs that do not know it cannot open it any more. A conflict names a server that is up and does not know it.",
		Errors:      []int{http.StatusConflict},
	}), s.finishUpgrade)
}

// checks returns all checks of whether the server can serve requests.
func (s *status) checks() []Check {
	var running, loaded error
	if s.stopping.Err() != nil {
		running = errors.New("the server is stopping")
	}
	if !s.sessions.Loaded() {
		loaded = errors.New("the server is still loading its objects")
	}
	return append([]Check{check("running", running), check("loaded", loaded), s.damage(), s.components(), check("audit", s.audit.required())}, s.more()...)
}

func health(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

// damage returns the check of stored data. It does not name objects, because it is public.
func (s *status) damage() Check {
	if n := len(s.fleet.Snapshot().AllDamaged()); n > 0 {
		return Check{"objects", CheckWarning, fmt.Sprintf("damaged objects in the store: %d; GET /v1/server and the log name them", n)}
	}
	return Check{Name: "objects", State: CheckOK}
}

// components returns the check of components that wait to be restarted after a panic.
func (s *status) components() Check {
	if down := s.faults.Down(); len(down) > 0 {
		return Check{"components", CheckWarning, "started again after a panic: " + strings.Join(down, ", ")}
	}
	return Check{Name: "components", State: CheckOK}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // fails if the client has gone away
}

type storeOutput struct {
	Body *api.StoreInfo
}

// finishUpgrade switches the store to the newest format.
func (s *status) finishUpgrade(ctx context.Context, _ *struct{}) (*storeOutput, error) {
	if err := s.store.FinishUpgrade(ctx); err != nil {
		return nil, err
	}
	info := s.store.Info()
	return &storeOutput{&info}, nil
}

type serverOutput struct {
	Body *api.ServerInfo
}

func (s *status) describe(ctx context.Context, _ *struct{}) (*serverOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	var damaged []api.DamagedObject
	for _, d := range s.fleet.Snapshot().AllDamaged() {
		if !who.SeesDamaged(d.Key) {
			continue
		}
		damaged = append(damaged, api.DamagedObject{Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name})
	}
	info := &api.ServerInfo{
		Damaged: damaged, Name: s.name,
		Version: s.version, Fields: api.Fingerprint(), Leader: s.leading.leads(), Now: s.now().UTC(), Store: s.store.Info(),
	}
	if s.leading.others != nil {
		info.Servers = s.leading.others.Servers(ctx)
	}
	return &serverOutput{info}, nil
}
