package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// uiPath is where the page for people is, and the directory of its other files.
const uiPath = "/ui"

// uiPolicy lets the page load its own files, and call this server and the issuers with which people
// log in. Nothing in the page is inline, so that text from objects never becomes a program.
func uiPolicy(logins []api.LoginOption) string {
	connect := []string{"'self'"}
	for _, login := range logins {
		if issuer, err := url.Parse(login.Issuer); err == nil && issuer.Host != "" {
			connect = append(connect, issuer.Scheme+"://"+issuer.Host)
		}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " + strings.Join(connect, " ") +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// uiAbsent is shown in place of a page that was not built.
const uiAbsent = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Scheduler</title>
<h1>This server was built without its page</h1>
<p>To get the page, install Node.js 20 or later, run <code>make build</code> again, and start the server that it builds.
<p>Everything else works: <code>schedulerctl</code> shows the same from a terminal, and
<a href="v1/openapi.json">v1/openapi.json</a> describes the API.
</html>
`

// ui serves the page for people. The page is a client of the API like any other: its files need no
// token, and the data that it shows does.
type ui struct {
	files  map[string]uiFile // by name
	policy string
}

type uiFile struct {
	data []byte
	etag string
}

// newUI reads the files of the page. If there is none, the page says how to build it.
func newUI(files fs.FS, logins []api.LoginOption) (*ui, error) {
	u := &ui{files: map[string]uiFile{}, policy: uiPolicy(logins)}
	if files == nil {
		return u, nil
	}
	names, err := fs.Glob(files, "*")
	if err != nil {
		return nil, fmt.Errorf("find the files of the page: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read %s of the page: %w", name, err)
		}
		u.files[name] = newUIFile(data)
	}
	return u, nil
}

func newUIFile(data []byte) uiFile {
	sum := sha256.Sum256(data)
	return uiFile{data, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// register adds the routes.
func (u *ui) register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+uiPath, u.index)
	mux.HandleFunc("GET "+uiPath+"/{$}", func(w http.ResponseWriter, _ *http.Request) {
		// Relative, so that it also leads to the page behind a proxy that adds a path.
		w.Header().Set("Location", ".."+uiPath)
		w.WriteHeader(http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET "+uiPath+"/{file}", u.file)
}

func (u *ui) index(w http.ResponseWriter, r *http.Request) {
	index, built := u.files["index.html"]
	if !built {
		index = newUIFile([]byte(uiAbsent))
	}
	// The page names the hashes of its other files, so only the page itself has to be asked for again.
	w.Header().Set("Cache-Control", "no-cache")
	u.serve(w, r, "index.html", index)
}

func (u *ui) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	file, ok := u.files[name]
	if !ok || name == "index.html" {
		problem.Write(w, problem.New(api.ProblemUnknownPath, "the page has no file %q; %s is the page", name, uiPath))
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	u.serve(w, r, name, file)
}

func (u *ui) serve(w http.ResponseWriter, r *http.Request, name string, file uiFile) {
	header := w.Header()
	header.Set("Content-Security-Policy", u.policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("ETag", file.etag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.data))
}
