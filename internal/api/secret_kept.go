package api

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// KeepSecrets copies secrets into a new version of an object from the current one, which is nil if
// there is none. document is the decoded JSON that the new version was read from; it distinguishes
// absent from empty.
//
// A secret that is absent or null is kept as long as its block exists. Empty text removes it. If
// the headers are absent or null, all are kept; if they are given, those that are null are kept.
//
// A secret is kept only if it is still sent to the same receiver. Otherwise, somebody who may write
// the object but does not know the secret could send it to a server of their own. Such a version is
// rejected.
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

// isElement reports whether a secret is the value of a header in a map.
func isElement(field string) bool { return strings.HasSuffix(field, "]") }

// keeps reports whether a document keeps the stored secret of a field.
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
		return false // the block was removed
	}
	value := object[names[block]]
	if elements, given := value.(map[string]any); given && isElement(field) {
		var named bool
		value, named = elements[names[block+1]]
		return named && value == nil
	}
	return value == nil
}

// receiver is where a secret is sent.
type receiver struct {
	// absent says that the secret is no longer used: the name that it belongs to was removed.
	absent  bool
	address string
	trust   trust
}

// trust is how a receiver's identity is verified.
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

// reaches reports whether a secret for r may be sent to another receiver, because that is the same
// server. Certificate verification may become stricter, from unverified to verified.
func (r receiver) reaches(to receiver) bool {
	return r.address == to.address && (r.trust.unchecked || r.trust == to.trust)
}

// describe names the receiver by what distinguishes it from the other one.
func (r receiver) describe(other receiver) string {
	switch {
	case r.address != other.address:
		return cmp.Or(r.address, "no address")
	case r.trust.unchecked:
		return r.address + " without verifying its certificate"
	case r.trust.ca == "":
		return r.address + " with a certificate from a public authority"
	case other.trust.unchecked || other.trust.ca == "":
		return r.address + " with a certificate from the authorities in ca_cert"
	}
	return r.address + " with a certificate from these authorities (ca_cert)"
}

// secretReceiver is implemented by objects with secrets.
type secretReceiver interface {
	// receiver returns where the secret of a field is sent.
	receiver(field string) receiver
}

func receiverOf(object Object, field string) receiver {
	if r, ok := object.(secretReceiver); ok {
		return r.receiver(field)
	}
	return receiver{absent: true} // kinds that do not implement secretReceiver keep no secrets
}

// origin returns the scheme, host and port of an address.
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
