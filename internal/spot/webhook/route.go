package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// resultKey is the attribute of a trace that says how a request was answered: the label of the metric.
const resultKey = "scheduler.admission.result"

// reviewer answers the requests of one path.
type reviewer func(context.Context, Cluster, *request) answer

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, review := range map[string]reviewer{
		"pods": admitPod, "pod-labels": checkPodLabels, "workloads": checkWorkload, "probe": answerProbe,
	} {
		mux.Handle("POST /clusters/{cluster}/{secret}/"+path, s.handle(path, review))
	}
	return mux
}

// handle answers the requests of one path. Addresses contain secrets and are not logged.
func (s *Server) handle(path string, review reviewer) http.Handler {
	route := "POST /clusters/{cluster}/{secret}/" + path
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := s.now()
		name := r.PathValue("cluster")
		cluster, ok := s.options.Clusters(name)
		if !ok || !knows(cluster, r.PathValue("secret")) {
			// The name may be invented: it must not become a metric label.
			s.metrics.requests.WithLabelValues("", path, string(resultNotFound)).Inc()
			w.Header().Set("Connection", "close") // unknown clients keep no connections from clusters
			http.NotFound(w, r)
			return
		}
		traced, span := s.options.Tracer.Serve(r.Context(), r.Header, time.Now())
		became := s.serve(w, r.WithContext(traced), name, path, func(ctx context.Context, request *request) answer {
			return review(ctx, cluster, request)
		})
		s.metrics.observe(name, path, became, s.now().Sub(started))
		span.Object(string(api.KindCluster), "", name)
		span.Text(resultKey, string(became))
		span.EndAs(route, nil)
	})
}

// knows compares a secret in constant time.
func knows(cluster Cluster, given string) bool {
	want := cluster.Secret()
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && want != ""
}

// serve answers one request of a known cluster.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, cluster, path string, review func(context.Context, *request) answer) (became result) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Faults.Component("webhook").Note(&recovery.Panic{Object: cluster, Cause: cause, Stack: debug.Stack()})
			s.logger.Error("an admission request failed", "cluster", cluster, "path", path, "panic", cause, "stack", string(debug.Stack()))
			became = refuse(w, resultFailed, http.StatusInternalServerError, "the request could not be answered")
		}
	}()
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return refuse(w, resultBadRequest, http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience(r))
	defer cancel()

	size := r.ContentLength
	if size < 0 {
		size = maxBody
	}
	if size > maxBody {
		return refuse(w, resultTooLarge, http.StatusRequestEntityTooLarge, "the body is too large")
	}
	weight, places := max(size, weightOfRequest), s.placesOf(cluster)
	if places.Acquire(ctx, weight) != nil {
		return refuse(w, resultBusy, http.StatusServiceUnavailable, "there are too many requests from this cluster")
	}
	defer places.Release(weight)

	body, err := readBody(w, r)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return refuse(w, resultTooLarge, http.StatusRequestEntityTooLarge, "the body is too large")
	case err != nil:
		return refuse(w, resultBadRequest, http.StatusBadRequest, "the body could not be read")
	}
	request, err := decodeRequest(body)
	var a answer
	switch {
	case err == nil:
		a = review(ctx, &request)
	case request.UID != "":
		a = unread(err)
	default:
		return refuse(w, resultBadRequest, http.StatusBadRequest, err.Error())
	}
	encoded, err := a.encode(request.UID)
	if err != nil {
		s.logger.Error("the response to an admission request could not be written", "cluster", cluster, "path", path, "error", err)
		return refuse(w, resultFailed, http.StatusInternalServerError, "the request could not be answered")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	_, _ = w.Write(encoded) // fails if the client has given up
	return a.result
}

// patience returns the timeout of a request: less than the cluster's own, which it sends as
// timeout=3s, so that the response arrives in time.
func patience(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return assignWithin
	}
	return min(max(timeout-answerMargin, timeout/2), assignWithin)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, maxBody)) + bytes.MinRead)
	}
	_, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, maxBody))
	return body.Bytes(), err
}

func refuse(w http.ResponseWriter, r result, status int, message string) result {
	http.Error(w, message, status)
	return r
}
