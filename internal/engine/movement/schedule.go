package movement

import (
	"time"

	"github.com/robfig/cron/v3"
)

// schedule says when a window opens: at local times of a time zone.
//
// Local times that the change to daylight saving time skips start at the next instant that exists,
// which is the one of the change. Local times that occur twice start once, at the first.
type schedule struct {
	local cron.Schedule // takes local times as if they were UTC
	zone  *time.Location
}

// changes is more than a time zone ever differs from UTC, and than the local time ever jumps.
const changes = 26 * time.Hour

// next returns the first start after an instant; zero if there is none in the following years.
//
// A later local time never starts earlier, and the present one has started already. So none that has
// passed is missing, wherever the clock was put forward or back.
func (s schedule) next(after time.Time) time.Time {
	local := localTime(after.In(s.zone))
	for {
		if local = s.local.Next(local); local.IsZero() {
			return time.Time{}
		}
		if at := instantOf(local, s.zone); at.After(after) {
			return at
		}
	}
}

// localTime returns what a clock in the time zone of an instant shows, as if it were UTC.
func localTime(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf returns the instant of a local time, given as if it were UTC: the first of two, or that
// of the change if the change skips the local time. Package time leaves open which it returns.
func instantOf(local time.Time, zone *time.Location) time.Time {
	before := local.Add(-changes).In(zone)
	first, second := offsetOf(before), offsetOf(local.Add(changes).In(zone))
	at := local.Add(-first)
	if first == second || offsetOf(at.In(zone)) == first {
		return at
	}
	if later := local.Add(-second); offsetOf(later.In(zone)) == second {
		return later
	}
	_, change := before.ZoneBounds()
	return change.UTC()
}

func offsetOf(t time.Time) time.Duration {
	_, offset := t.Zone()
	return time.Duration(offset) * time.Second
}
