// Package faketime is test code: it lets time pass under testing/synctest.
package faketime

import (
	"syscall"
	"time"
)

// Sleep lets time of a bubble pass, which takes none. It panics under the clock of the machine, where a test waits for
// a condition instead: see package eventually.
func Sleep(d time.Duration) {
	if onMachineClock() {
		panic("the test sleeps for " + d.String() + " outside of a bubble of testing/synctest") //nolint:forbidigo // any goroutine of a test may sleep, and has no other way to fail it
	}
	time.Sleep(d)
}

// onMachineClock reports whether the clock is that of the machine, which system calls show in a bubble, too. The clock
// of a bubble begins with the year 2000, and no test comes close to the present by chance.
func onMachineClock() bool {
	var now syscall.Timeval
	err := syscall.Gettimeofday(&now)
	return err != nil || time.Since(time.Unix(now.Unix())).Abs() < time.Minute
}
