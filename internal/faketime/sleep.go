// Package faketime is test code: it lets time pass under testing/synctest.
package faketime

import "time"

// Sleep lets time of a bubble pass, which takes none. It panics under the clock of the machine, where a test waits for
// a condition instead: see package eventually.
func Sleep(d time.Duration) {
	// The clock of a bubble begins with the year 2000.
	if now := time.Now(); now.Year() >= 2020 {
		panic("the test sleeps for " + d.String() + " outside of a bubble of testing/synctest") //nolint:forbidigo // any goroutine of a test may sleep, and has no other way to fail it
	}
	time.Sleep(d) //nolint:forbidigo // see above
}
