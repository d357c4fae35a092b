package httpapi

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// leastGzip is the size below which compressing an answer costs more than it
// saves.
const leastGzip = 2048

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// compress answers in gzip where the client asks for it and the answer is a
// JSON document of some size. Streams pass through.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !acceptsGzip(r.Header.Get("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		g := &gzipResponse{ResponseWriter: w}
		next.ServeHTTP(g, r)
		g.close()
	})
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			quality := strings.ReplaceAll(parameters, " ", "")
			return quality != "q=0" && strings.Trim(quality, "0.") != "q="
		}
	}
	return false
}

// gzipResponse decides at the first write: JSON answers are written in one
// piece, so that shows their size.
type gzipResponse struct {
	http.ResponseWriter
	status  int
	decided bool
	writer  *gzip.Writer
}

// WriteHeader implements http.ResponseWriter; the status goes out with the first
// write.
func (g *gzipResponse) WriteHeader(status int) {
	if g.status == 0 {
		g.status = status
	}
	if g.Header().Get("Content-Type") == "text/event-stream" {
		g.decide(0)
	}
}

func (g *gzipResponse) decide(size int) {
	if g.decided {
		return
	}
	g.decided = true
	header := g.Header()
	if strings.Contains(header.Get("Content-Type"), "json") && header.Get("Content-Encoding") == "" {
		header.Add("Vary", "Accept-Encoding")
		if size >= leastGzip {
			header.Set("Content-Encoding", "gzip")
			header.Del("Content-Length")
			g.writer, _ = gzipWriters.Get().(*gzip.Writer)
			g.writer.Reset(g.ResponseWriter)
		}
	}
	if g.status != 0 {
		g.ResponseWriter.WriteHeader(g.status)
	}
}

// Write implements http.ResponseWriter.
func (g *gzipResponse) Write(data []byte) (int, error) {
	g.decide(len(data))
	if g.writer != nil {
		return g.writer.Write(data)
	}
	return g.ResponseWriter.Write(data)
}

// Unwrap serves http.ResponseController.
func (g *gzipResponse) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *gzipResponse) close() {
	g.decide(0)
	if g.writer != nil {
		_ = g.writer.Close() // the client went away: there is nobody to tell
		g.writer.Reset(nil)
		gzipWriters.Put(g.writer)
	}
}
