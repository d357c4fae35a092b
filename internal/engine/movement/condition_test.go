package movement

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestSentence(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waiting := func(failures int64, clusters ...string) *api.RolloutStatus {
		r := &api.RolloutStatus{Revision: 3, Step: 1, TotalSteps: 2, WaitingFor: api.WaitSuccessTime, Failures: failures}
		for _, name := range clusters {
			r.Moves = append(r.Moves, api.RolloutMove{Cluster: name, Step: 1, StartedAt: &at, HealthySince: &at})
		}
		return r
	}
	for name, test := range map[string]struct {
		rollout *api.RolloutStatus
		want    string
	}{
		"one cluster": {waiting(0, "paris"),
			"step 1 of 2 of rollout 3 waits until paris has been healthy for min_success_time"},
		"several clusters": {waiting(0, "oslo", "paris"),
			"step 1 of 2 of rollout 3 waits until oslo, paris have been healthy for min_success_time"},
		"one has failed": {waiting(1, "paris"),
			"step 1 of 2 of rollout 3 waits until paris has been healthy for min_success_time; 1 has failed"},
		"some have failed": {waiting(2, "paris"),
			"step 1 of 2 of rollout 3 waits until paris has been healthy for min_success_time; 2 have failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Sentence(test.rollout); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}
