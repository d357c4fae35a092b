package storetest

import (
	"sync"
	"testing"
)

// AtOnce starts what belongs to the members of a cluster at the same time, one for each of the settings: none is ready
// before the others are there.
func AtOnce[Settings, Member any](t testing.TB, all []Settings, start func(Settings) Member) []Member {
	t.Helper()
	members := make([]Member, len(all))
	var starting sync.WaitGroup
	for i, settings := range all {
		starting.Go(func() { members[i] = start(settings) })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return members
}
