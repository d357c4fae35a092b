package serve

import (
	"compress/gzip"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// leastCompressed is the size below which compressing a response costs more than it saves.
const leastCompressed = 2048

// compressed are parts of the media types that are compressed.
var compressed = []string{"json", "html", "javascript", "css"}

// Compress compresses larger responses of JSON, and pages, with gzip if the client accepts it. Streams are paths
// that are never compressed: compression buffers the beginning of a response, and hides flush
// errors.
func Compress(next http.Handler, streams ...string) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(leastCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(func(mediaType string) bool {
			return slices.ContainsFunc(compressed, func(part string) bool { return strings.Contains(mediaType, part) })
		}))
	if err != nil {
		return nil, err
	}
	compressing := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(streams, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		compressing.ServeHTTP(w, r)
	}), nil
}
