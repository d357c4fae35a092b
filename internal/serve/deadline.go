package serve

import (
	"net/http"
	"time"
)

// readTime is how long a client may take to read a response.
const readTime = 60 * time.Second

// LimitTime limits slow clients: how long the body may take, and how long the client may take to
// read the response once it begins, which is within work. If a body is not read to its end, its
// deadline stays, so that discarding the rest is limited too.
func LimitTime(next http.Handler, body, work time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(body)) // fails only on a test recorder
		}
		_ = control.SetWriteDeadline(time.Now().Add(work + readTime)) // replaced by an earlier one when the response begins
		next.ServeHTTP(&timedAnswer{ResponseWriter: w}, r)
	})
}

// timedAnswer limits how long the client may take to read the response.
type timedAnswer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *timedAnswer) WriteHeader(status int) {
	if !w.begun && status >= http.StatusOK {
		w.begun = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(readTime)) // fails only on a test recorder
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *timedAnswer) Write(data []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap supports http.ResponseController.
func (w *timedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
