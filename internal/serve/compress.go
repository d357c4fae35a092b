package serve

import (
	"compress/gzip"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// leastCompressed is the size below which compressing an answer costs more than it
// saves.
const leastCompressed = 2048

// Compress answers JSON documents of some size in gzip where the client asks for it.
// Streams are paths that it leaves alone: it holds back the beginning of an answer, and
// reports no error of a flush.
func Compress(next http.Handler, streams ...string) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(leastCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(func(mediaType string) bool { return strings.Contains(mediaType, "json") }))
	if err != nil {
		return nil, err
	}
	compressed := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(streams, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		compressed.ServeHTTP(w, r)
	}), nil
}
