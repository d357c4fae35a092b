package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

const backupPath = "/v1/backup"

// backupTime is how long a client may take to download a backup: the database may have gigabytes.
const backupTime = time.Hour

// backup streams a backup of the store and of the history. It contains the data of all namespaces, so it is for
// administrators only.
func (s *status) backup(w http.ResponseWriter, r *http.Request) {
	if err := auth.Of(r.Context()).MayAdminister("make backups"); err != nil {
		problem.Write(w, s.api.Problem(r.Context(), err))
		return
	}
	// It is a read, but of everything.
	if refused := s.audit.begin(r, &huma.Operation{OperationID: "backup"}, true, nil); refused != nil {
		problem.Write(w, refused)
		return
	}
	stream := &backupWriter{w: w}
	err := s.store.Backup(r.Context(), stream, s.history)
	switch {
	case err == nil:
	case !stream.begun:
		problem.Write(w, s.api.Problem(r.Context(), err))
	default:
		s.logger.LogAttrs(r.Context(), slog.LevelWarn, "a backup was broken off",
			slog.String("request_id", requestOf(r.Context()).id), slog.Any("error", err))
		breakOff()
	}
}

// backupWriter starts the response with the first byte, so that a backup that fails before can
// still return a problem document.
type backupWriter struct {
	w     http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (b *backupWriter) Write(data []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.w.Header().Set("Content-Type", "application/x-tar")
		b.w.Header().Set("Cache-Control", "no-store")
		b.w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(b.w).SetWriteDeadline(time.Now().Add(backupTime)) // fails only on a test recorder
	}
	return b.w.Write(data)
}

// describeBackup adds the route to the OpenAPI document; huma does not support streaming files.
func (s *status) describeBackup() {
	s.api.Document().AddOperation(&huma.Operation{
		Extensions:  map[string]any{operation.AccessExtension: string(auth.AccessAdminister)},
		OperationID: "backup", Method: http.MethodGet, Path: backupPath, Tags: []string{"server"},
		Summary:     "Stream a backup of the store and of the history",
		Description: "Returns a tar archive with the history of decisions, from which scheduler-server restore creates a data directory. It contains secrets in encrypted form, but not the key file. Requires the role admin.",
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"application/x-tar": {Schema: &huma.Schema{Type: "string", Format: "binary"}},
		}}},
	})
}
