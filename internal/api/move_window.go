package api

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/timezone"
)

// MoveWindow says when decisions may move, or must not. A window without a namespace applies to
// placements and workloads in all namespaces.
type MoveWindow struct {
	Kind     Kind             `json:"kind" enum:"move_window"`
	Metadata Metadata         `json:"metadata"`
	Spec     MoveWindowSpec   `json:"spec"`
	Status   MoveWindowStatus `json:"status,omitzero"`
}

// WindowKind says whether moves are possible in a window.
type WindowKind string

// Kinds of windows.
const (
	WindowAllow WindowKind = "allow"
	WindowDeny  WindowKind = "deny"
)

// moveReasons are the causes of moves that can be held.
var moveReasons = []CauseType{CauseMetric, CauseScore, CauseFailBack, CauseCapacity, CausePreemption, CauseReschedule}

// MoveWindowSpec is the user's configuration of a window.
type MoveWindowSpec struct {
	Kind        WindowKind    `json:"kind" enum:"allow,deny" doc:"'deny': no decision that the window selects moves while it is open. 'allow': decisions that it selects move only while it, or another 'allow' window that selects them, is open. 'deny' takes precedence."`
	Schedule    string        `json:"schedule" maxLength:"256" doc:"When the window opens, as a cron expression with five fields: minute, hour, day of the month, month, day of the week. A local time that the change to daylight saving time skips starts at the next instant that exists; one that occurs twice starts once, at the first."`
	Duration    Duration      `json:"duration" shortest:"1m" doc:"How long the window stays open, in elapsed time. May be longer than the interval between two openings: openings that overlap are one."`
	TimeZone    string        `json:"time_zone,omitempty" default:"UTC" maxLength:"64" doc:"Time zone of 'schedule', by its IANA name, such as 'Europe/Berlin'. All servers use the time zone database that is part of the program."`
	Selector    *MoveSelector `json:"selector,omitempty" doc:"Placements and workloads that the window applies to. If omitted, all: those of its namespace, or of all namespaces for a global window."`
	From        *MoveClusters `json:"from,omitempty" doc:"The window only applies to moves that leave one of these clusters."`
	To          *MoveClusters `json:"to,omitempty" doc:"The window only applies to moves to one of these clusters."`
	Reasons     []CauseType   `json:"reasons,omitempty" doc:"The window only applies to moves for one of these reasons: 'metric' (another cluster has better metrics), 'score' (it has a better score otherwise), 'fail_back', 'capacity' (it has more room), 'preemption', 'reschedule' (a fresh decision was asked for). If omitted, to all moves that nothing forces."`
	Description string        `json:"description,omitempty" doc:"Free text."`
}

// MoveSelector selects placements and workloads. All conditions must hold.
type MoveSelector struct {
	Namespaces    []string       `json:"namespaces,omitempty" doc:"Namespaces of the placements and workloads. If omitted, any. Only for a global window: one in a namespace applies to that namespace."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the labels of the placement or workload."`
}

// MoveClusters selects the clusters that a move leaves or goes to. All conditions must hold.
type MoveClusters struct {
	ClusterNames  []string       `json:"cluster_names,omitempty" ref:"cluster,optional" doc:"Names of clusters. If omitted, any name."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the labels of the cluster."`
}

// MoveWindowStatus holds the conditions of a window. Whether it is open follows from the time.
type MoveWindowStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"'ReferencesResolved', if a cluster does not exist."`
}

// ObjectKind implements Object.
func (w *MoveWindow) ObjectKind() Kind { return KindMoveWindow }

// Meta implements Object.
func (w *MoveWindow) Meta() *Metadata { return &w.Metadata }

// SpecPart implements Object.
func (w *MoveWindow) SpecPart() any { return &w.Spec }

// StatusPart implements Object.
func (w *MoveWindow) StatusPart() any { return &w.Status }

// Copy implements Object.
func (w *MoveWindow) Copy() Object { d := *w; return &d }

// Secrets implements Object.
func (w *MoveWindow) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (w *MoveWindow) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (w *MoveWindow) SetDefaults() {
	w.Kind = KindMoveWindow
	w.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&w.Spec)
}

// Validate implements Object.
func (w *MoveWindow) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(w, GlobalOrNamespaced)
	s := &w.Spec
	if _, err := ParseSchedule(s.Schedule); err != nil {
		errs.Add("spec.schedule", "%s", err)
	}
	if s.Duration == "" {
		errs.Add("spec.duration", "is required, such as \"8h\"")
	} else if d, err := s.Duration.Parse(); err == nil && d > longestWindow {
		errs.Add("spec.duration", "%q must be at most %s", string(s.Duration), Duration("8784h"))
	}
	if _, err := timezone.Load(s.TimeZone); err != nil {
		errs.Add("spec.time_zone", "%s", err)
	}
	if s.Selector != nil {
		checkUnique(&errs, "spec.selector.namespaces", s.Selector.Namespaces)
		checkNames(&errs, "spec.selector.namespaces", s.Selector.Namespaces)
		if len(s.Selector.Namespaces) > 0 && w.Metadata.Namespace != "" {
			errs.Add("spec.selector.namespaces", "must be absent: the window is in a namespace, and applies to that one only")
		}
		s.Selector.LabelSelector.validate(&errs, "spec.selector.label_selector")
	}
	s.From.validate(&errs, "spec.from")
	s.To.validate(&errs, "spec.to")
	reasons := make([]string, len(s.Reasons))
	for i, r := range s.Reasons {
		errs.check(index("spec.reasons", i), oneOf(r, moveReasons...))
		reasons[i] = string(r)
	}
	checkUnique(&errs, "spec.reasons", reasons)
	return errs.inOrder(w)
}

// longestWindow is the longest duration of a window: a leap year.
const longestWindow = 366 * 24 * time.Hour

func (c *MoveClusters) validate(errs *FieldErrors, field string) {
	if c == nil {
		return
	}
	checkUnique(errs, field+".cluster_names", c.ClusterNames)
	checkNames(errs, field+".cluster_names", c.ClusterNames)
	c.LabelSelector.validate(errs, field+".label_selector")
}

// ParseSchedule parses a cron expression with five fields. The schedule takes local times as if
// they were UTC: it knows no time zone.
func ParseSchedule(text string) (cron.Schedule, error) {
	fields := strings.Fields(text)
	if len(fields) != 5 || strings.Contains(text, "=") {
		return nil, fmt.Errorf("%q is not a schedule: write the five fields of a cron expression, minute, hour, day of the month, month and day of the week, such as \"0 22 * * 1-5\"", text)
	}
	schedule, err := fiveFields.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, scheduleError(text, fields)
	}
	if schedule.Next(leapYear).IsZero() {
		return nil, fmt.Errorf("%q never starts: there is no such day", text)
	}
	return schedule, nil
}

// scheduleError says which field of a schedule is wrong, and what it may be.
func scheduleError(text string, fields []string) error {
	for i, of := range []struct{ name, values string }{
		{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day of the month", "1 to 31"}, {"month", "1 to 12 or jan to dec"},
		{"day of the week", "0 (Sunday) to 6 or sun to sat"},
	} {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := fiveFields.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("%q is not a schedule: %q is no %s: it may be from %s, as \"*\", a value, a range such as \"1-5\", a step such as \"*/2\", or several of them such as \"1,3\"", text, fields[i], of.name, of.values)
		}
	}
	return fmt.Errorf("%q is not a schedule", text)
}

var (
	fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	// leapYear is before a leap year, so that the schedule of a leap day starts.
	leapYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)
