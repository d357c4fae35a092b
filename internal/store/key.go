package store

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Layout of the keys: /v1/spec/<kind>/<namespace or ->/<name>, the same under /v1/status, and the
// store's own data under /v1/sys. Spec sorts before status, so one range and one watch cover both,
// and a reader of the range sees every Spec part before the first Status part.
const (
	specPrefix   = "/v1/spec/"
	statusPrefix = "/v1/status/"
	systemPrefix = "/v1/sys/"

	// formatKey holds the number of the format used for writing; see formatVersion.
	formatKey = systemPrefix + "format"
	// epochKey is rewritten by every process that opens the store; its ModRevision is the fence of
	// derived writes.
	epochKey = systemPrefix + "epoch"
	// identityKey identifies this store; its value is generated when the store is created. markKey
	// holds the highest revision that a server has seen in it.
	identityKey = systemPrefix + "identity"
	markKey     = systemPrefix + "mark"

	// orderKey is written when a term begins among several servers, and whenever the outcome of a
	// derived write is unknown; see Term.
	orderKey = systemPrefix + "order"

	// livePrefix is the prefix of keys bound to the lease of the server that wrote them, and
	// candidatePrefix that of the servers that lead or campaign.
	livePrefix      = systemPrefix + "live/"
	candidatePrefix = livePrefix + "servers/"

	globalNamespace = "-"
)

func partPrefix(part Part) string {
	if part == Status {
		return statusPrefix
	}
	return specPrefix
}

// etcdKey returns the key of a part of an object.
func etcdKey(key api.Key, part Part) string {
	namespace := key.Namespace
	if namespace == "" {
		namespace = globalNamespace
	}
	return partPrefix(part) + string(key.Kind) + "/" + namespace + "/" + key.Name
}

// PageAfter returns an object's position in the order of Page, as Page takes and returns it.
func PageAfter(key api.Key) string {
	return strings.TrimPrefix(etcdKey(key, Spec), specPrefix+string(key.Kind)+"/")
}

// CompareNamespaces compares by where the objects in namespaces are in that order. What
// ends a namespace is a slash, so "a-b" comes before "a".
func CompareNamespaces(a, b string) int {
	a, b = cmp.Or(a, globalNamespace), cmp.Or(b, globalNamespace)
	n := min(len(a), len(b))
	switch c := strings.Compare(a[:n], b[:n]); {
	case c != 0 || len(a) == len(b):
		return c
	case len(a) == n:
		return cmp.Compare('/', b[n])
	default:
		return cmp.Compare(a[n], '/')
	}
}

// PageKey is the key of an object by the two parts of its place.
func PageKey(kind api.Kind, namespace, name string) api.Key {
	if namespace == globalNamespace {
		namespace = ""
	}
	return api.Key{Kind: kind, Namespace: namespace, Name: name}
}

// checkKey rejects keys that the layout cannot represent.
func checkKey(key api.Key) error {
	switch {
	case key.Kind == "" || strings.Contains(string(key.Kind), "/"):
		return fmt.Errorf("store: the kind %q of object %q must be a word without a slash", string(key.Kind), key.Name)
	case key.Name == "" || strings.Contains(key.Name, "/"):
		return fmt.Errorf("store: the name of %s must not be empty and have no slash", key)
	case key.Namespace == globalNamespace || strings.Contains(key.Namespace, "/"):
		return fmt.Errorf("store: the namespace of %s must not be %q and have no slash", key, globalNamespace)
	}
	return nil
}

// parseKey is the inverse of etcdKey.
func parseKey(text []byte) (api.Key, Part, error) {
	key := string(text)
	part := Spec
	rest, ok := strings.CutPrefix(key, specPrefix)
	if !ok {
		part = Status
		rest, ok = strings.CutPrefix(key, statusPrefix)
	}
	kind, path, okKind := strings.Cut(rest, "/")
	namespace, name, okPath := strings.Cut(path, "/")
	if !ok || !okKind || !okPath || kind == "" || namespace == "" || name == "" || strings.Contains(name, "/") {
		return api.Key{}, 0, fmt.Errorf("store: %q is not the key of an object: expected %s<kind>/<namespace>/<name>", key, specPrefix)
	}
	if namespace == globalNamespace {
		namespace = ""
	}
	return api.Key{Kind: api.Kind(kind), Namespace: namespace, Name: name}, part, nil
}
