// Package filter says which clusters may be chosen. Each filter compiles what is asked
// for to checks; a check says of itself what it reads and until when its answer holds.
package filter
