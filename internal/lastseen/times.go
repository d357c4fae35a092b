// Package lastseen keeps in memory when each cluster last sent a heartbeat. A heartbeat
// that reports no change is not written to the store: with 10,000 agents, that would
// cost a third of a core (without, it is about an eighth; see BenchmarkHeartbeats).
package lastseen

import (
	"maps"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Beat is when the agent of a cluster last reported.
type Beat struct {
	UID string `json:"uid"`
	// At is when it last sent a heartbeat, and ReportedAt when it last reported how much is in use;
	// zero = never.
	At         time.Time `json:"at,omitzero"`
	ReportedAt time.Time `json:"reported_at,omitzero"`
}

// Times holds the latest beats of clusters. The zero value is empty.
type Times struct {
	mu    sync.RWMutex
	beats map[string]noted // by cluster
	last  int64            // number of the last note
}

// noted is a beat, and the number of the note that last changed it.
type noted struct {
	Beat
	number int64
}

// Note records a beat, unless a later one is known. Zero fields leave the known values unchanged.
func (t *Times) Note(cluster string, beat Beat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beats == nil {
		t.beats = map[string]noted{}
	}
	if old := t.beats[cluster]; old.UID == beat.UID {
		beat.At, beat.ReportedAt = later(old.At, beat.At), later(old.ReportedAt, beat.ReportedAt)
	}
	t.last++
	t.beats[cluster] = noted{beat, t.last}
}

// Since returns the beats noted after a number, by cluster, and the number to pass next.
func (t *Times) Since(number int64) (beats map[string]Beat, next int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	beats = map[string]Beat{}
	for cluster, beat := range t.beats {
		if beat.number > number {
			beats[cluster] = beat.Beat
		}
	}
	return beats, t.last
}

// Keep forgets clusters that no longer exist. It only looks for them if more are known than exist.
func (t *Times) Keep(clusters int, exists func(cluster string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.beats) > clusters {
		maps.DeleteFunc(t.beats, func(cluster string, _ noted) bool { return !exists(cluster) })
	}
}

// Forget forgets a cluster that is gone.
func (t *Times) Forget(cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.beats, cluster)
}

// Show returns the cluster with the times of its last beat if they are later than the stored ones.
func (t *Times) Show(cluster *api.Cluster) *api.Cluster {
	if beat := t.of(cluster); beat == (Beat{}) {
		return cluster
	}
	shown := *cluster
	t.Complete(&shown)
	return &shown
}

// Complete sets the times of a cluster's last beat in its status if they are later.
func (t *Times) Complete(cluster *api.Cluster) {
	beat := t.of(cluster)
	complete(&cluster.Status.LastHeartbeatAt, beat.At)
	complete(&cluster.Status.CapacityReportedAt, beat.ReportedAt)
}

// of returns the last beat of a cluster, but not that of an earlier one with its name.
func (t *Times) of(cluster *api.Cluster) Beat {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if beat := t.beats[cluster.Metadata.Name]; beat.UID == cluster.Metadata.UID {
		return beat.Beat
	}
	return Beat{}
}

// complete does not set a time that was never stored: whether there is one matters more than its
// value.
func complete(stored **time.Time, at time.Time) {
	if *stored != nil && at.After(**stored) {
		*stored = &at
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
