// Package recovery limits a panic to the object that was being processed. A panic is a
// bug in the server: it may affect that object, but must never end the process. The
// package turns it into an error, logs it with its stack, counts it, and restarts a
// component that panicked.
package recovery
