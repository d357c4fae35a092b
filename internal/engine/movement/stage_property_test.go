package movement

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestStageLaws plays random changes of a target with reports, clusters that go offline, approvals and
// writes, and compares every look with what a naive observer has seen.
func TestStageLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		divided := rapid.Bool().Draw(r, "divided")
		some := func(label string) (list []Seat) {
			for i := range 7 {
				if rapid.IntRange(0, 2).Draw(r, label) == 0 {
					u := int64(1)
					if divided {
						u = rapid.Int64Range(1, 4).Draw(r, "replicas")
					}
					list = append(list, Seat{fmt.Sprintf("c%d", i), u})
				}
			}
			return list
		}
		p := newPlay(t, "", "", func(rules *api.Rollout) {
			rules.MaxConcurrent = rapid.SampledFrom([]api.GroupSize{"1", "2", "3", "34%", "100%"}).Draw(r, "max_concurrent")
			rules.MaxFailures = rapid.SampledFrom([]api.FailureLimit{"0", "1", "30%"}).Draw(r, "max_failures")
			rules.Approval = rapid.SampledFrom([]api.Approval{api.ApprovalNone, api.ApprovalGroup, api.ApprovalStep}).Draw(r, "approval")
			rules.Health = rapid.SampledFrom([]api.RolloutHealth{api.HealthAuto, api.HealthReported, api.HealthCluster}).Draw(r, "health")
			rules.ProgressDeadline = rapid.SampledFrom([]api.Duration{"", "90s"}).Draw(r, "deadline")
		})
		p.divided = divided
		p.group = func(cluster string) (int, string) { return int(cluster[1]) % 2, cluster[1:] }
		p.stands, p.target = some("stands"), some("target")
		o := &observer{r}
		for range rapid.IntRange(1, 25).Draw(r, "looks") {
			after := time.Duration(rapid.SampledFrom([]int{0, 1, 20, 60, 100}).Draw(r, "seconds")) * time.Second
			p.now = p.now.Add(after)
			switch cluster := fmt.Sprintf("c%d", rapid.IntRange(0, 6).Draw(r, "cluster")); rapid.IntRange(0, 7).Draw(r, "what") {
			case 0:
				p.target = some("new target")
			case 1:
				p.offline[cluster] = !p.offline[cluster]
			case 2, 3:
				p.tell(cluster, rapid.SampledFrom([]api.HealthStatus{api.Healthy, api.Unhealthy, api.HealthUnknown}).Draw(r, "status"))
			case 4:
				if p.under != nil {
					p.approve(p.under.Revision, rapid.Int64Range(0, p.under.TotalSteps).Draw(r, "step"))
				}
			case 5:
				p.written = true
			case 6:
				if rapid.Bool().Draw(r, "divided otherwise") { // by another policy
					divided = !divided
					p.divided, p.written, p.target = divided, true, some("target divided otherwise")
					each := rapid.Int64Range(1, 4).Draw(r, "replicas each")
					p.stands = slices.Clone(p.stands)
					for i := range p.stands {
						if p.stands[i].Units = 1; divided {
							p.stands[i].Units = each
						}
					}
				}
			}
			p.target = slices.DeleteFunc(slices.Clone(p.target), func(s Seat) bool { return p.offline[s.Cluster] }) // the engine chooses no others
			before := *p
			before.stands = slices.Clone(p.stands)
			p.look(0)
			o.watch(&before, p)
		}
		// It always ends when all are healthy and approved.
		for i := 0; p.under != nil; i++ {
			if i == 100 {
				r.Fatalf("it does not end: %+v", p.under)
			}
			clear(p.offline)
			p.approve(p.under.Revision, 0).look(time.Second)
			for _, s := range p.target {
				p.now = p.now.Add(time.Millisecond)
				p.tell(s.Cluster, api.Healthy)
			}
			p.look(time.Second).look(2 * time.Minute)
		}
		if got, want := units(p.stands), units(p.target); !maps.Equal(got, want) {
			r.Fatalf("it ended with %v, want %v", got, want)
		}
	})
}

// tell reports about a cluster that stands. A report is repeated like every agent does.
func (p *play) tell(cluster string, status api.HealthStatus) {
	if _, stands := units(p.stands)[cluster]; stands {
		p.report(cluster, status)
	}
}

// observer checks what is seen of a rollout from outside.
type observer struct{ t *rapid.T }

func (o *observer) watch(was, is *play) {
	limit := was.rules.MaxConcurrent.Of(max(len(is.target), 1))
	if len(is.target) == 0 {
		limit = was.rules.MaxConcurrent.Of(max(len(was.stands), 1))
	}
	had, has, wants := units(was.stands), units(is.stands), units(is.target)
	if len(was.stands) == 0 && was.under == nil {
		if !maps.Equal(has, wants) {
			o.t.Fatalf("the first decision is staged: %v, want %v", has, wants)
		}
		return
	}
	forced, gained := int64(0), 0
	for cluster, n := range had {
		if was.offline[cluster] {
			forced += n
			if _, stays := has[cluster]; stays {
				o.t.Fatalf("%s is offline and still stands", cluster)
			}
		}
	}
	for cluster, n := range has {
		if had[cluster] < n {
			gained++
		}
		if _, meant := wants[cluster]; !meant && had[cluster] == 0 {
			o.t.Fatalf("%s was gained and is not meant", cluster)
		}
	}
	if is.under == nil {
		if !maps.Equal(has, wants) {
			o.t.Fatalf("no rollout is under way, and %v stand, want %v", has, wants)
		}
	} else {
		o.underway(was, is, limit)
	}
	// A cluster is left only for one that is healthy, or if it is no longer wanted.
	if least := min(safe(was)-forced, total(wants)); safe(is) < least {
		o.t.Fatalf("%d units stand on clusters that are not in motion, want at least %d: %v after %v, meant %v, rollout %+v", safe(is), least, has, had, wants, is.under)
	}
	if gained > limit && !is.divided && forced == 0 {
		o.t.Fatalf("%d clusters gained at once, want at most %d", gained, limit)
	}
}

// safe returns the units that stand and are not in motion.
func safe(p *play) int64 {
	n := total(units(p.stands))
	if p.under == nil {
		return n
	}
	for i := range p.under.Moves {
		switch m := &p.under.Moves[i]; {
		case m.Leaves || m.StartedAt == nil || m.DoneAt != nil:
		case p.divided && m.Replicas == 0: // it was not divided when this began
			n -= units(p.stands)[m.Cluster]
		case p.divided:
			n -= m.Replicas
		default:
			n--
		}
	}
	return n
}

// underway checks one look at a rollout.
func (o *observer) underway(was, is *play, limit int) {
	r := is.under
	ahead, finished := map[string]int{}, map[string]bool{}
	if was.under != nil {
		for _, m := range was.under.Moves {
			if m.StartedAt == nil {
				ahead[m.Cluster]++
			}
			finished[m.Cluster] = finished[m.Cluster] || m.DoneAt != nil
		}
	}
	for _, m := range r.Moves {
		if m.StartedAt == nil {
			ahead[m.Cluster]--
		}
	}
	moving, begun, failures := 0, 0, int64(0)
	for i := range r.Moves {
		m := &r.Moves[i]
		if m.Moving() {
			moving++
			if m.StartedAt.Equal(is.now) && ahead[m.Cluster] > 0 {
				begun++
			}
		}
		if m.Failed() {
			failures++
		}
		if stands := units(is.stands)[m.Cluster]; gains(m) && (stands == 0 || stands < m.Replicas || is.divided == (m.Replicas == 0)) {
			o.t.Fatalf("%s is in motion with %d replicas (divided: %t), and %d units stand", m.Cluster, m.Replicas, is.divided, stands)
		}
		// A look before, at the same time, may have ended it.
		if m.DoneAt != nil && m.DoneAt.Equal(is.now) && !m.Leaves && !finished[m.Cluster] {
			o.done(is, m)
		}
		if m.NeedsApproval && m.StartedAt != nil && m.Step > r.ApprovedStep {
			o.t.Fatalf("step %d began without approval: %+v", m.Step, r)
		}
	}
	if failures != r.Failures {
		o.t.Fatalf("%d failures are told, want %d", r.Failures, failures)
	}
	stopped := failures > int64(is.rules.MaxFailures.Of(len(is.target)))
	if stopped != (r.WaitingFor == api.WaitRetry) {
		o.t.Fatalf("%d have failed, and it waits for %q", failures, r.WaitingFor)
	}
	if c := Condition(r); stopped != (c.Status == api.ConditionFalse) || c.Message == "" {
		o.t.Fatalf("condition %+v", c)
	}
	if len(is.target) > 0 && begun > 0 && moving > limit && r.Revision == was.last {
		o.t.Fatalf("%d clusters are in motion, want at most %d: %+v", moving, limit, r)
	}
}

// done checks that a cluster that is done was healthy for min_success_time.
func (o *observer) done(is *play, m *api.RolloutMove) {
	since := m.StartedAt
	reported := is.rules.Health == api.HealthReported || is.rules.Health == api.HealthAuto && len(is.health) > 0
	if reported {
		i := slices.IndexFunc(is.health, func(h api.ClusterHealth) bool { return h.Cluster == m.Cluster })
		if i < 0 || is.health[i].Status != api.Healthy || !is.health[i].ReportedAt.After(*m.StartedAt) {
			o.t.Fatalf("%s is done without a report since its step began", m.Cluster)
		}
		since = is.health[i].Since
	} else if is.offline[m.Cluster] {
		o.t.Fatalf("%s is done and offline", m.Cluster)
	}
	if is.now.Sub(*since) < time.Minute || is.now.Sub(*m.StartedAt) < time.Minute {
		o.t.Fatalf("%s is done after %s", m.Cluster, is.now.Sub(*since))
	}
}
