// Package integration holds the tests that need more than Go: the built server in a
// separate process that is killed, a disk that fills up, a real Prometheus. They
// have the build tag integration; make test-integration runs them.
package integration
