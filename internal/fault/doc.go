// Package fault confines a panic to the object that was being worked on. A panic is
// a fault of the server: it must cost that object something, and never the process.
// The package turns it into an error, logs it with its stack, counts it, and starts
// a component again that was ended by one.
package fault
