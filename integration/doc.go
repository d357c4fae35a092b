// Package integration holds the tests that need more than Go: the built server
// as a process of its own that is killed, a disk that fills up, a real
// Prometheus. They are tagged integration; make test-integration runs them.
package integration
