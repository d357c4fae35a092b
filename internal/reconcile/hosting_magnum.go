package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// magnumClusters is how Magnum clusters are decided: in which OpenStack project each is created.
var magnumClusters = onHosts(row[*api.MagnumCluster, *guest]{
	kind: api.KindMagnumCluster,
	put: func(p *planner, g *guest, m *api.MagnumCluster, specRevision int64) {
		p.projects.putGuest(g, m, specRevision)
	},
	seen:   func(p *planner, g *guest, m *api.MagnumCluster) { p.projects.seeGuest(g, m) },
	remove: func(p *planner, key api.Key) { p.projects.removeGuest(key) },
	adopt:  func(p *planner, _ *api.MagnumCluster, r *record) { p.projects.adopt(r) },
	decide: func(p *planner, g *guest, now time.Time) (changed, moved bool) {
		changed = p.projects.decide(g, now)
		return changed, changed
	},
	where: func(m *api.MagnumCluster) where { return onHost(m.Status.Project) },
	observe: func(s *snapshot, m *api.MagnumCluster) api.Object {
		refs := magnumMetrics(m, s.project(m.Metadata.Namespace+"/"+m.Status.Project))
		if len(refs) == 0 {
			return m
		}
		c := *m
		c.Status.Metrics, c.Status.Conditions = placement.ObserveMetrics(s.fleet, refs, m.Metadata.Namespace, m.Status.Conditions)
		return &c
	},
	simulate: simulated[*api.MagnumCluster, *guest]{
		complete: func(*simulation, *api.MagnumCluster, *api.MagnumCluster, given, time.Time) {}, // nothing is missing
	},
}, func(p *planner) *hosts { return p.projects })

// magnumInProjects is the role of Magnum clusters that are created in OpenStack projects, which are
// identified by path.
func magnumInProjects(project func(path string) *api.OpenStackProject) role {
	return role{
		request: func(object api.Object) (hosting.HostRequest, wish) {
			m, ok := object.(*api.MagnumCluster)
			if !ok {
				return hosting.HostRequest{}, noWish
			}
			return hosting.HostRequest{
				Guest: api.KeyOf(m), UID: m.Metadata.UID, Namespace: m.Metadata.Namespace,
				LabelConstraints: m.Spec.LabelConstraints, MetricConstraints: m.Spec.MetricConstraints,
				One: "project", Many: "projects",
			}, statedWish
		},
		chosen: func(object api.Object) (string, *float64) {
			m, ok := object.(*api.MagnumCluster)
			if !ok || m.Status.Project == "" {
				return "", nil
			}
			return m.Metadata.Namespace + "/" + m.Status.Project, m.Status.Score
		},
		again: func(g *guest) bool {
			m, ok := g.object.(*api.MagnumCluster)
			return ok && m.Status.ObservedRescheduleRequests < m.Metadata.RescheduleRequests && !g.rescheduled(m)
		},
		result: func(g *guest, now time.Time) api.Object {
			m, ok := g.object.Copy().(*api.MagnumCluster)
			if !ok {
				return g.object
			}
			decideMagnum(m, g, project(g.host), now.UTC())
			return m
		},
	}
}

// decideMagnum sets a decision in the status of a Magnum cluster, with what it inherits from its
// project. Its own labels take precedence (reference: the opposite of a cluster and its cloud).
func decideMagnum(m *api.MagnumCluster, g *guest, project *api.OpenStackProject, now time.Time) {
	s := &m.Status
	s.ObservedGeneration = m.Metadata.Generation
	s.ObservedRescheduleRequests = m.Metadata.RescheduleRequests
	name := strings.TrimPrefix(g.host, m.Metadata.Namespace+"/")
	if name != s.Project {
		s.ScheduledAt = &now
		s.DecisionRevision++
	}
	s.Project, s.Score = name, g.score
	s.ProjectID, s.TemplateID, s.Labels = "", m.Spec.TemplateID, nil
	if project != nil {
		s.ProjectID = project.Spec.ProjectID
		s.TemplateID = cmp.Or(m.Spec.TemplateID, project.Spec.TemplateID)
		s.Labels = api.Overlay(project.Metadata.Labels, m.Metadata.Labels)
	}
	setBound(&s.Conditions, g.condition(api.ReasonNoSuitableProject), now)
}

// magnumMetrics returns the metrics of a Magnum cluster: those of its project and its own, which
// take precedence.
func magnumMetrics(m *api.MagnumCluster, project *api.OpenStackProject) []api.MetricRef {
	if project == nil {
		return m.Spec.Metrics
	}
	refs := slices.DeleteFunc(slices.Clone(project.Spec.Metrics), func(r api.MetricRef) bool {
		return slices.ContainsFunc(m.Spec.Metrics, func(own api.MetricRef) bool { return own.Key() == r.Key() })
	})
	return append(refs, m.Spec.Metrics...)
}

// rescheduled reports whether a request for a new decision has been answered, although the answer
// is not stored yet.
func (g *guest) rescheduled(m *api.MagnumCluster) bool {
	done, ok := g.outcome.(*api.MagnumCluster)
	return ok && done.Status.ObservedRescheduleRequests >= m.Metadata.RescheduleRequests
}

// changeProject applies a new version of a project; nil deletes it.
func (p *planner) changeProject(key api.Key, project *api.OpenStackProject) {
	change(p.projectObjects, key.Path(), project)
	if project == nil {
		p.projects.putHost(key.Path(), nil)
	} else {
		p.projects.putHost(key.Path(), hosting.ProjectHost(project))
	}
}
