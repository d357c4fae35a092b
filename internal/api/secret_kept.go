package api

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// KeepSecrets completes a new version of an object with the secrets that it keeps
// from the current one, which is nil where there is none. document is the JSON
// that the new version was read from, decoded: it tells what is absent from what
// is empty.
//
// A secret that is absent or null is kept while the block that it belongs to is
// there. An empty text takes it away. Of headers, a map that is absent or null
// keeps all; one that is given keeps those that it has with null.
//
// A kept secret is never sent to another receiver than it was given for, or who
// may write the object, and does not know the secret, would learn it. Such a
// version is refused.
func KeepSecrets(next, current Object, document any) FieldErrors {
	var errs FieldErrors
	var stored map[string]Secret
	if current != nil {
		stored = current.Secrets()
	}
	given := next.Secrets()
	for _, field := range slices.Sorted(maps.Keys(given)) {
		if secret := given[field]; secret.IsZero() || secret.Withheld() {
			next.SetSecret(field, Secret{})
			if _, ok := stored[field]; !ok && secret.Withheld() && isElement(field) {
				errs.Add(field, "null keeps the stored value, but none is stored: give a value or omit the field")
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(stored)) {
		if !keeps(document, field) {
			continue
		}
		from, to := receiverOf(current, field), receiverOf(next, field)
		switch {
		case to.absent:
		case from.reaches(to):
			next.SetSecret(field, stored[field])
		default:
			errs.Add(field, "must be given again, or removed with an empty string: the stored value was given for %s and is not sent to %s", from.describe(to), to.describe(from))
		}
	}
	return errs
}

// isElement reports that a secret is one of a map: the value of a header.
func isElement(field string) bool { return strings.HasSuffix(field, "]") }

// keeps reports that a document asks for nothing but the stored secret of a field.
func keeps(document any, field string) bool {
	var names []string
	for _, step := range SplitField(field) {
		name, _ := step.(string)
		names = append(names, name)
	}
	block := len(names) - 1
	if isElement(field) {
		block--
	}
	node := document
	for _, name := range names[:block] {
		object, _ := node.(map[string]any)
		node = object[name]
	}
	object, ok := node.(map[string]any)
	if !ok {
		return false // the block is gone
	}
	value := object[names[block]]
	if elements, given := value.(map[string]any); given && isElement(field) {
		var named bool
		value, named = elements[names[block+1]]
		return named && value == nil
	}
	return value == nil
}

// receiver is whom a secret is sent to.
type receiver struct {
	// absent says that the object has no use for the secret: the name that it
	// belongs to is gone.
	absent  bool
	address string
	trust   trust
}

// trust is how a receiver shows that it is the one it should be.
type trust struct {
	unchecked bool
	ca        string
}

func trustOf(caCert string, insecure bool) trust {
	if insecure {
		return trust{unchecked: true}
	}
	return trust{ca: strings.TrimSpace(caCert)}
}

// reaches reports that nobody else than r is sent what goes to another receiver.
// One whose certificate nobody checked may be checked from now on.
func (r receiver) reaches(to receiver) bool {
	return r.address == to.address && (r.trust.unchecked || r.trust == to.trust)
}

// describe names a receiver by what tells it from the other one.
func (r receiver) describe(other receiver) string {
	switch {
	case r.address != other.address:
		return cmp.Or(r.address, "nobody")
	case r.trust.unchecked:
		return r.address + " without a check of its certificate"
	case r.trust.ca == "":
		return r.address + " with a certificate of a public authority"
	case other.trust.unchecked || other.trust.ca == "":
		return r.address + " with a certificate of the authorities in ca_cert"
	}
	return r.address + " with a certificate of these authorities (ca_cert)"
}

// secretReceiver is an object with secrets.
type secretReceiver interface {
	// receiver is whom the secret of a field is sent to.
	receiver(field string) receiver
}

func receiverOf(object Object, field string) receiver {
	if r, ok := object.(secretReceiver); ok {
		return r.receiver(field)
	}
	return receiver{absent: true} // what says nothing about its secrets keeps none
}

// origin is the scheme, the host and the port of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host + ":" + port
}
