package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ReadFile reads the only document of a file in YAML or JSON, as strictly as the API. The path "-" is
// standard input.
func ReadFile(path string, stdin io.Reader, into any) error {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == standardInput {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	text, err := read()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("%s: it is empty", path)
	}
	if text, err = yaml.YAMLToJSONStrict(text); err == nil {
		err = api.DecodeInto(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// files are files of objects. They are read as often as objects is called, so that only one of their
// documents is in memory at a time.
type files struct {
	paths []string
	// stdin is the text of standard input, if it is one of the paths.
	stdin []byte
	// namespace is that of namespaced objects that name none.
	namespace string
}

// fileObject is an object in a file.
type fileObject struct {
	api.Object

	document []byte // in JSON
	at       string // where it is, for messages
}

// endings are those of the files that are read in a directory.
var endings = []string{".yaml", ".yml", ".json"}

// findFiles finds the files that --file names. A directory stands for the files in it, but not for
// directories in it.
func (s *session) findFiles(names []string) (*files, error) {
	if err := s.connection.load(s.Environment); err != nil {
		return nil, err
	}
	f := &files{namespace: s.connection.namespace()}
	for _, name := range names {
		if name == standardInput {
			text, err := io.ReadAll(s.Stdin)
			if err != nil {
				return nil, err
			}
			f.stdin = text
			f.paths = append(f.paths, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, usage("--file: %w", err)
		}
		if !info.IsDir() {
			f.paths = append(f.paths, name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, usage("--file: %w", err)
		}
		found := len(f.paths)
		for _, entry := range entries {
			if !entry.IsDir() && slices.Contains(endings, filepath.Ext(entry.Name())) {
				f.paths = append(f.paths, filepath.Join(name, entry.Name()))
			}
		}
		if len(f.paths) == found {
			return nil, usage("--file: no file in directory %s ends in %s", name, strings.Join(endings, ", "))
		}
	}
	return f, nil
}

// shownErrors limits how many errors of files are shown.
const shownErrors = 20

// check reads all files, and returns what is wrong with them.
func (f *files) check() error {
	var wrong []error
	places := map[api.Key]string{}
	n := 0
	for object, err := range f.objects() {
		if err == nil {
			key := api.KeyOf(object)
			if first, ok := places[key]; ok {
				err = fmt.Errorf("%s: %s is also in %s", object.at, key, first)
			}
			places[key] = object.at
			n++
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > shownErrors {
		wrong = append(wrong[:shownErrors], fmt.Errorf("and %d more errors", len(wrong)-shownErrors))
	}
	switch {
	case len(wrong) > 0:
		return usageError{errors.Join(wrong...)}
	case n == 0:
		return usage("--file: there are no objects in %s", strings.Join(f.paths, ", "))
	}
	return nil
}

// objects yields the objects of the files in their order. After an error, the next object follows.
func (f *files) objects() iter.Seq2[fileObject, error] {
	return func(yield func(fileObject, error) bool) {
		for _, path := range f.paths {
			n := 0
			for document, err := range f.documents(path) {
				n++
				at := fmt.Sprintf("%s: document %d", path, n)
				if err != nil {
					err = fmt.Errorf("%s: %w", at, err)
				}
				for object, err := range f.objectsIn(document, at, err) {
					if !yield(object, err) {
						return
					}
				}
			}
		}
	}
}

// objectsIn yields the object of a document, or those of a list as get prints it.
func (f *files) objectsIn(document []byte, at string, err error) iter.Seq2[fileObject, error] {
	return func(yield func(fileObject, error) bool) {
		if err != nil {
			yield(fileObject{}, err)
			return
		}
		var list struct {
			Kind  api.Kind          `json:"kind"`
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(document, &list) == nil && list.Kind == "" && list.Items != nil {
			for i, item := range list.Items {
				if !yield(f.object(item, fmt.Sprintf("%s: items[%d]", at, i))) {
					return
				}
			}
			return
		}
		yield(f.object(document, at))
	}
}

// object decodes an object.
func (f *files) object(document []byte, at string) (fileObject, error) {
	object, err := api.Decode(document)
	if object != nil && object.Meta().Name != "" {
		at += ": " + singularOf(object) + " " + object.Meta().Name
	}
	if err != nil {
		return fileObject{}, fmt.Errorf("%s: %w", at, err)
	}
	info, _ := api.LookupKind(object.ObjectKind())
	meta := object.Meta()
	if info.Scope == api.Namespaced && meta.Namespace == "" {
		meta.Namespace = f.namespace
	}
	var missing api.FieldErrors
	if meta.Name == "" {
		missing.Add("metadata.name", "is required")
	}
	if info.Scope == api.OfCluster && meta.Cluster == "" {
		missing.Add("metadata.cluster", "is required, because a %s belongs to a cluster", singular(info))
	}
	if err := missing.Err(); err != nil {
		return fileObject{}, fmt.Errorf("%s: %w", at, err)
	}
	return fileObject{object, document, at}, nil
}

func singularOf(object api.Object) string {
	info, _ := api.LookupKind(object.ObjectKind())
	return singular(info)
}

// documents yields the documents of a file as JSON: those of YAML are separated by "---", and those of
// JSON follow one another. Empty ones are left out.
func (f *files) documents(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		source := io.Reader(bytes.NewReader(f.stdin))
		if path != standardInput {
			file, err := os.Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			defer file.Close()
			source = file
		}
		for reader := kubeyaml.NewYAMLReader(bufio.NewReader(source)); ; {
			text, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for document, err := range documentsIn(text) {
				if !yield(document, err) {
					return
				}
			}
		}
	}
}

// documentsIn yields the documents of a text without "---".
func documentsIn(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			decoder := json.NewDecoder(bytes.NewReader(text))
			for n := 0; ; n++ {
				var document json.RawMessage
				err := decoder.Decode(&document)
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil && n == 0 {
					break // YAML may begin like this, too
				}
				if !yield(document, err) || err != nil {
					return
				}
			}
		}
		document, err := yaml.YAMLToJSONStrict(text)
		if err != nil || string(document) != "null" {
			yield(document, err)
		}
	}
}
