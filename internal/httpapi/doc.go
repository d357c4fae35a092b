// Package httpapi is the REST API: it decodes and validates requests, writes to the store, waits
// for the resulting decision, and shows objects of the fleet. It knows kinds only through
// api.Kinds, from which routes, documentation and permissions of each kind are derived.
package httpapi
