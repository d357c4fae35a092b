package movement

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// play is an object whose decision changes in steps.
type play struct {
	t       *testing.T
	rules   *api.Rollout
	divided bool
	stands  []Seat
	target  []Seat
	under   *api.RolloutStatus
	last    int64
	offline map[string]bool
	health  []api.ClusterHealth
	group   func(string) (int, string)
	now     time.Time
	nextAt  time.Time
	written bool
}

// rules returns rules with their defaults.
func rules(change func(*api.Rollout)) *api.Rollout {
	p := &api.Placement{Spec: api.PlacementSpec{Rollout: &api.Rollout{}}}
	p.SetDefaults()
	if change != nil {
		change(p.Spec.Rollout)
	}
	return p.Spec.Rollout
}

func newPlay(t *testing.T, stands, target string, change func(*api.Rollout)) *play {
	return &play{
		t: t, rules: rules(change), stands: seats(stands), target: seats(target), offline: map[string]bool{}, group: ByRank, now: epoch,
	}
}

// seats reads seats: "a b c", each with one unit, or "a:3 b:2".
func seats(text string) (list []Seat) {
	for field := range strings.FieldsSeq(text) {
		name, n, ok := strings.Cut(field, ":")
		s := Seat{name, 1}
		if ok {
			s.Units = int64(n[0] - '0')
		}
		list = append(list, s)
	}
	return list
}

func (p *play) look(after time.Duration) *play {
	p.now = p.now.Add(after)
	out := Stage(Change{
		Rules: p.rules, Divided: p.divided, Stands: p.stands, Target: p.target, Under: p.under, Revision: p.last, Written: p.written,
		Group: p.group, Now: p.now, Health: p.health,
		Lost:   func(cluster string) bool { return p.offline[cluster] },
		Online: func(cluster string) bool { return !p.offline[cluster] },
	})
	p.stands, p.under, p.last, p.nextAt, p.written = out.Stands, out.Rollout, out.Revision, out.NextAt, false
	if p.under != nil {
		for _, s := range p.target {
			p.under.Target = append(p.under.Target, api.RolloutTarget{Cluster: s.Cluster, Replicas: s.Units})
		}
	}
	return p
}

func (p *play) to(target string) *play { p.target = seats(target); return p }

func (p *play) report(cluster string, status api.HealthStatus) *play {
	at := p.now
	p.health = slices.DeleteFunc(p.health, func(h api.ClusterHealth) bool { return h.Cluster == cluster })
	p.health = append(p.health, api.ClusterHealth{Cluster: cluster, Status: status, Since: &at, ReportedAt: &at})
	return p
}

// expect checks what stands, in any order, and what the rollout waits for: "" if there is none.
func (p *play) expect(stands string, waiting api.RolloutWait, step, total int64) *play {
	p.t.Helper()
	if got, want := units(p.stands), units(seats(stands)); !maps.Equal(got, want) {
		p.t.Fatalf("after %s: %v stand, want %v; rollout %+v", p.now.Sub(epoch), got, want, p.under)
	}
	switch {
	case p.under == nil && waiting != "":
		p.t.Fatalf("after %s: no rollout, want one that waits for %s", p.now.Sub(epoch), waiting)
	case p.under != nil && (p.under.WaitingFor != waiting || p.under.Step != step || p.under.TotalSteps != total):
		p.t.Fatalf("after %s: step %d of %d waits for %q, want %d of %d for %q", p.now.Sub(epoch), p.under.Step, p.under.TotalSteps, p.under.WaitingFor, step, total, waiting)
	}
	return p
}

func (p *play) approve(revision, step int64) *play {
	p.t.Helper()
	approved, err := Approve(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, p.under, api.RolloutApproval{Revision: revision, Step: step}, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	p.under = approved
	return p
}

func TestStage(t *testing.T) {
	const minute = time.Minute
	tests := map[string]func(t *testing.T){
		"the first decision is not staged": func(t *testing.T) {
			newPlay(t, "", "a b c", nil).look(0).expect("a b c", "", 0, 0)
		},
		"what stands already begins nothing": func(t *testing.T) {
			if p := newPlay(t, "a b", "b a", nil).look(0).expect("a b", "", 0, 0); p.last != 0 {
				t.Errorf("revision %d", p.last)
			}
		},
		"one by one, and left when the successor was healthy for long enough": func(t *testing.T) {
			newPlay(t, "a b", "c d", nil).look(0).expect("a b c", api.WaitSuccessTime, 1, 2).
				look(minute-1).expect("a b c", api.WaitSuccessTime, 1, 2).
				look(1).expect("a c d", api.WaitSuccessTime, 2, 2).
				look(minute).expect("c d", "", 0, 0)
		},
		"two at once": func(t *testing.T) {
			newPlay(t, "a b c", "d e f", func(r *api.Rollout) { r.MaxConcurrent = "2" }).look(0).expect("a b c d e", api.WaitSuccessTime, 1, 2).
				look(minute).expect("a d e f", api.WaitSuccessTime, 2, 2).look(minute).expect("d e f", "", 0, 0)
		},
		"a percentage is rounded up": func(t *testing.T) {
			newPlay(t, "a b c", "d e f", func(r *api.Rollout) { r.MaxConcurrent = "34%" }).look(0).expect("a b c d e", api.WaitSuccessTime, 1, 2)
		},
		"nothing ends in the pass in which it began": func(t *testing.T) {
			p := newPlay(t, "a", "b", func(r *api.Rollout) { r.MinSuccessTime = "0s" }).look(0).expect("a b", api.WaitSuccessTime, 1, 1)
			p.look(p.nextAt.Sub(p.now)).expect("b", "", 0, 0)
		},
		"reports decide once there is one": func(t *testing.T) {
			newPlay(t, "a", "b", nil).report("a", api.Healthy).look(0).expect("a b", api.WaitHealth, 1, 1).
				look(5*minute).expect("a b", api.WaitHealth, 1, 1).
				report("b", api.HealthUnknown).look(0).expect("a b", api.WaitHealth, 1, 1).
				report("b", api.Healthy).look(0).expect("a b", api.WaitSuccessTime, 1, 1).
				look(minute).expect("b", "", 0, 0)
		},
		"the cluster decides if that is asked for": func(t *testing.T) {
			newPlay(t, "a", "b", func(r *api.Rollout) { r.Health = api.HealthCluster }).report("a", api.Healthy).look(0).look(minute).expect("b", "", 0, 0)
		},
		"reports are waited for if that is asked for": func(t *testing.T) {
			newPlay(t, "a", "b", func(r *api.Rollout) { r.Health = api.HealthReported }).look(0).look(5*minute).expect("a b", api.WaitHealth, 1, 1)
		},
		"an earlier report is about something else": func(t *testing.T) {
			newPlay(t, "a", "b", nil).report("b", api.Healthy).look(0).look(5*minute).expect("a b", api.WaitHealth, 1, 1)
		},
		"unhealthy in between starts min_success_time again": func(t *testing.T) {
			newPlay(t, "a", "b", func(r *api.Rollout) { r.MaxFailures = "1" }).look(0).report("b", api.Healthy).look(minute/2).report("b", api.Unhealthy).look(0).
				expect("a b", api.WaitHealth, 1, 1).report("b", api.Healthy).look(minute-1).expect("a b", api.WaitSuccessTime, 1, 1).
				look(1).expect("b", "", 0, 0)
		},
		"a failure stops it until it recovers": func(t *testing.T) {
			newPlay(t, "a b", "c d", nil).look(0).look(1).report("c", api.Unhealthy).look(0).expect("a b c", api.WaitRetry, 1, 2).
				look(5*minute).expect("a b c", api.WaitRetry, 1, 2).
				report("c", api.Healthy).look(0).expect("a b c", api.WaitSuccessTime, 1, 2).look(minute).expect("a c d", api.WaitHealth, 2, 2)
		},
		"a tolerated failure keeps its predecessor": func(t *testing.T) {
			p := newPlay(t, "a b", "c d", func(r *api.Rollout) { r.MaxFailures = "50%" }).look(0).look(1).report("c", api.Unhealthy).look(0).expect("a b c d", api.WaitHealth, 2, 2).
				look(1).report("d", api.Healthy).look(minute).expect("a c d", api.WaitHealth, 2, 2)
			if p.under.Failures != 1 {
				t.Errorf("%d failures, want 1", p.under.Failures)
			}
			p.report("c", api.Healthy).look(minute).expect("c d", "", 0, 0)
		},
		"no success before the deadline is a failure": func(t *testing.T) {
			p := newPlay(t, "a", "b", func(r *api.Rollout) { r.ProgressDeadline, r.Health = "10m", api.HealthReported }).look(0).expect("a b", api.WaitHealth, 1, 1)
			if got := p.nextAt.Sub(p.now); got != 10*minute {
				t.Errorf("looks again after %s", got)
			}
			p.look(10*minute).expect("a b", api.WaitRetry, 1, 1).approve(1, 1).look(0).expect("a b", api.WaitHealth, 1, 1).
				look(1).report("b", api.Healthy).look(minute).expect("b", "", 0, 0)
		},
		"a user's write tries again": func(t *testing.T) {
			p := newPlay(t, "a", "b", nil).look(0).look(1).report("b", api.Unhealthy).look(0).expect("a b", api.WaitRetry, 1, 1)
			p.written = true
			p.look(1).expect("a b", api.WaitHealth, 1, 1)
		},
		"every step is approved": func(t *testing.T) {
			newPlay(t, "a b", "c d", func(r *api.Rollout) { r.Approval = api.ApprovalStep }).look(0).expect("a b", api.WaitApproval, 1, 2).
				approve(1, 1).look(0).look(minute).expect("a c", api.WaitApproval, 2, 2).
				approve(1, 2).look(0).look(minute).expect("c d", "", 0, 0)
		},
		"all steps are approved at once": func(t *testing.T) {
			newPlay(t, "a b", "c d", func(r *api.Rollout) { r.Approval = api.ApprovalStep }).look(0).approve(1, 0).look(0).look(minute).look(minute).expect("c d", "", 0, 0)
		},
		"groups are approved, and no step has two": func(t *testing.T) {
			p := newPlay(t, "a b c d", "e f g h", func(r *api.Rollout) { r.Approval, r.MaxConcurrent = api.ApprovalGroup, "2" })
			p.group = func(cluster string) (int, string) {
				if strings.Contains("a e f g", cluster) {
					return 0, "canary"
				}
				return 1, "rest"
			}
			p.look(0).expect("a b c d", api.WaitApproval, 1, 3).approve(1, 1).look(0).expect("a b c d e f", api.WaitSuccessTime, 1, 3).
				look(minute).expect("b c e f g", api.WaitSuccessTime, 2, 3).
				look(minute).expect("b e f g", api.WaitApproval, 3, 3)
		},
		"lost clusters are left and replaced at once": func(t *testing.T) {
			p := newPlay(t, "a b c", "b c d", func(r *api.Rollout) { r.Approval = api.ApprovalStep })
			p.offline["a"] = true
			p.look(0).expect("b c d", "", 0, 0)
		},
		"a lost successor is replaced by a new step": func(t *testing.T) {
			p := newPlay(t, "a", "b", nil).look(0).expect("a b", api.WaitSuccessTime, 1, 1)
			p.offline["b"] = true
			if p.to("c").look(1).expect("a c", api.WaitSuccessTime, 1, 1); p.last != 2 {
				t.Errorf("revision %d, want 2", p.last)
			}
		},
		"the successor of a lost cluster that is being left stands already": func(t *testing.T) {
			p := newPlay(t, "a b", "c d", nil).look(0).expect("a b c", api.WaitSuccessTime, 1, 2)
			p.offline["a"] = true
			p.look(1).expect("b c", api.WaitSuccessTime, 1, 2)
		},
		"another target is followed from where it stands": func(t *testing.T) {
			newPlay(t, "a b c", "d e f", nil).look(0).look(minute).expect("a b d e", api.WaitSuccessTime, 2, 3).
				to("d e g").look(1).expect("a b d e", api.WaitSuccessTime, 1, 2).
				look(minute-1).expect("a d e g", api.WaitSuccessTime, 2, 2)
		},
		"back to what stands": func(t *testing.T) {
			newPlay(t, "a b", "c d", nil).look(0).expect("a b c", api.WaitSuccessTime, 1, 2).to("a b").look(1).expect("a b", "", 0, 0)
		},
		"fewer clusters are left in steps": func(t *testing.T) {
			newPlay(t, "a b c", "a", nil).look(0).expect("a b", api.WaitSuccessTime, 1, 2).look(minute).expect("a", api.WaitSuccessTime, 2, 2).look(minute).expect("a", "", 0, 0)
		},
		"a cluster is not left as one too many when the other one is lost": func(t *testing.T) {
			p := newPlay(t, "a b", "c", func(r *api.Rollout) { r.Approval = api.ApprovalStep })
			p.group = func(cluster string) (int, string) { return max(strings.Index("ac", cluster), 0), "" }
			p.look(0).expect("a b", api.WaitApproval, 1, 2)
			p.offline["b"] = true
			p.approve(1, 0).look(1).expect("a c", api.WaitSuccessTime, 2, 2).look(minute).expect("c", "", 0, 0)
		},
		"more clusters come in steps": func(t *testing.T) {
			newPlay(t, "a", "a b c", nil).look(0).expect("a b", api.WaitSuccessTime, 1, 2).look(minute).expect("a b c", api.WaitSuccessTime, 2, 2).look(minute).expect("a b c", "", 0, 0)
		},
		"replicas move when they run elsewhere": func(t *testing.T) {
			p := newPlay(t, "a:6 b:3", "a:3 b:3 c:3", nil)
			p.divided = true
			p.look(0).expect("a:6 b:3 c:3", api.WaitSuccessTime, 1, 1).look(minute).expect("a:3 b:3 c:3", "", 0, 0)
		},
		"more and fewer replicas altogether follow at once": func(t *testing.T) {
			p := newPlay(t, "a:2 b:2", "a:4 b:4", nil)
			p.divided = true
			p.look(0).expect("a:4 b:4", "", 0, 0).to("a:1 b:4").look(1).expect("a:1 b:4", "", 0, 0)
		},
		"replicas that are divided from now on": func(t *testing.T) {
			p := newPlay(t, "a", "b", nil).look(0).expect("a b", api.WaitSuccessTime, 1, 1)
			p.divided, p.written, p.stands = true, true, seats("a:2 b:2")
			p.to("b:2").look(1).expect("a:2 b:2", api.WaitSuccessTime, 1, 1).to("").look(1).expect("", "", 0, 0)
		},
		"replicas that are no longer divided": func(t *testing.T) {
			p := newPlay(t, "a:3", "a:2 b:1", func(r *api.Rollout) { r.MaxFailures = "1" })
			p.divided = true
			p.look(0).to("a:1 b:2").look(1).report("b", api.Unhealthy).look(1).expect("a:3 b:2", api.WaitHealth, 2, 2)
			p.divided, p.written, p.stands = false, true, seats("a b")
			p.to("a").look(1).expect("a", "", 0, 0)
		},
		"an instant ahead counts as now": func(t *testing.T) {
			p := newPlay(t, "a", "b", nil).look(0)
			p.look(-time.Hour).expect("a b", api.WaitSuccessTime, 1, 1).look(minute).expect("b", "", 0, 0)
		},
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

func TestApprove(t *testing.T) {
	key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	under := newPlay(t, "a b", "c d", func(r *api.Rollout) { r.Approval = api.ApprovalStep }).look(0).under
	for name, test := range map[string]struct {
		under    *api.RolloutStatus
		approval api.RolloutApproval
		want     api.ProblemType
	}{
		"nothing under way":   {nil, api.RolloutApproval{Revision: 1}, api.ProblemNoRollout},
		"another rollout":     {under, api.RolloutApproval{Revision: 2, Step: 1}, api.ProblemRolloutChanged},
		"a step too many":     {under, api.RolloutApproval{Revision: 1, Step: 3}, api.ProblemRolloutChanged},
		"the current step":    {under, api.RolloutApproval{Revision: 1, Step: 1}, ""},
		"the whole rollout":   {under, api.RolloutApproval{Revision: 1}, ""},
		"a step further down": {under, api.RolloutApproval{Revision: 1, Step: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			approved, err := Approve(key, test.under, test.approval, epoch)
			refused, _ := err.(*api.ApprovalError) //nolint:errorlint // not wrapped
			if (refused == nil) != (test.want == "") || refused != nil && (refused.Type != test.want || !strings.Contains(refused.Text, "shop/web")) {
				t.Fatalf("error %v, want type %q", err, test.want)
			}
			if err != nil {
				return
			}
			if again, err := Approve(key, approved, test.approval, epoch); err != nil || again != approved {
				t.Errorf("a repeated approval changes something: %+v, %v", again, err)
			}
		})
	}
}

func TestByLabel(t *testing.T) {
	of := map[string]map[string]string{"a": {"ring": "10"}, "b": {"ring": "9"}, "c": {}, "d": {"ring": "x"}}
	labels := func(cluster string) map[string]string { return of[cluster] }
	for want, names := range map[string]string{"b a c": "a b c", "a b d c": "a b c d"} {
		place := ByLabel("ring", seats(names), labels)
		got := strings.Fields(names)
		slices.SortFunc(got, func(x, y string) int { i, _ := place(x); j, _ := place(y); return i - j })
		if strings.Join(got, " ") != want {
			t.Errorf("%q are ordered %q, want %q", names, got, want)
		}
	}
}
