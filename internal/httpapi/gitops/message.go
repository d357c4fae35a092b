package gitops

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// WithMessages makes problems under /integrations/ readable for controllers, wherever they come
// from: Argo CD shows its users the field 'message' alone, and its documentation asks for 403 for a
// wrong token.
func WithMessages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, prefix) {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding") // problems are read here
		held := &problemHolder{ResponseWriter: w}
		next.ServeHTTP(held, r)
		if held.status == 0 {
			return
		}
		var p problem.Problem
		if err := json.Unmarshal(held.body.Bytes(), &p.Problem); err != nil {
			w.WriteHeader(held.status)
			_, _ = w.Write(held.body.Bytes()) // fails if the client has gone away
			return
		}
		if p.Type == api.ProblemUnauthenticated && strings.HasPrefix(r.URL.Path, argocdPrefix) {
			p = *problem.New(api.ProblemForbidden, "%s", p.Detail)
			w.Header().Del("WWW-Authenticate")
		}
		p.Message = p.Error()
		problem.Write(w, &p)
	})
}

// problemHolder holds back a problem; other responses pass.
type problemHolder struct {
	http.ResponseWriter
	status int // of the problem, 0 = it is none
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (h *problemHolder) WriteHeader(status int) {
	if h.Header().Get("Content-Type") == problem.MediaType {
		h.status = status
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *problemHolder) Write(data []byte) (int, error) {
	if h.status != 0 {
		return h.body.Write(data)
	}
	return h.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (h *problemHolder) Unwrap() http.ResponseWriter { return h.ResponseWriter }
