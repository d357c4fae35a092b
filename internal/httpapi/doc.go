// Package httpapi is the REST API: it decodes and checks what users send,
// writes it to the store, waits for the decision that follows, and shows
// objects from the fleet. It knows the kinds only through api.Kinds: a new kind
// gets its routes, its documentation and its permissions from its line there.
package httpapi
