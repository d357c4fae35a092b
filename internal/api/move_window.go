package api

import (
	"cmp"
	"fmt"
	"time"
	_ "time/tzdata" // time zones, where the machine has none

	"github.com/robfig/cron/v3"
)

// MoveWindow says when decisions may move. A decision that answers its spec and whose clusters fit stays where it is while
// a window holds it. What has to move moves all the same: clusters that are offline, evict or no longer fit, and decisions
// for a changed spec.
type MoveWindow struct {
	Kind     Kind             `json:"kind" enum:"move_window"`
	Metadata Metadata         `json:"metadata"`
	Spec     MoveWindowSpec   `json:"spec"`
	Status   MoveWindowStatus `json:"status,omitzero"`
}

// Effects of a move window.
const (
	// EffectDeny: nothing moves while the window is open.
	EffectDeny = "deny"
	// EffectAllow: things move only while the window, or another one that allows it, is open.
	EffectAllow = "allow"
)

// MoveWindowSpec says when a window is open, and for what. A window of a namespace is for the decisions in it, another one
// for those of all namespaces.
type MoveWindowSpec struct {
	Effect        string         `json:"effect,omitempty" default:"deny" enum:"deny,allow" doc:"'deny': nothing moves while the window is open. 'allow': decisions for which there is such a window move only while one of them is open. Of several windows, 'deny' wins."`
	Schedule      string         `json:"schedule,omitempty" doc:"When the window opens, as a cron expression with five fields: minute, hour, day of the month, month, day of the week. If omitted, the window is open at once, and until 'ends_at'."`
	Duration      Duration       `json:"duration,omitempty" doc:"How long the window stays open, at most '168h'. Required with 'schedule'."`
	TimeZone      string         `json:"time_zone,omitempty" default:"UTC" doc:"Time zone of the schedule, such as 'Europe/Berlin'."`
	EndsAt        *time.Time     `json:"ends_at,omitempty" doc:"When the window ends for good. If omitted, it ends when it is deleted."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Selects the placements and workloads by their labels. If omitted, all."`
	Description   string         `json:"description,omitempty" maxLength:"1024" doc:"What the window is for. Conditions and explanations quote it."`
}

// MoveWindowStatus is empty: whether a window is open follows from its spec and the time.
type MoveWindowStatus struct{}

// maxWindow is how long a window may be open each time.
const maxWindow = 7 * 24 * time.Hour

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
	if err := checkTimeZone(s.TimeZone); err != nil {
		errs.Add("spec.time_zone", "%s", err)
	} else if _, err := s.Times(); err != nil {
		errs.Add("spec.schedule", "%s", err)
	}
	errs.check("spec.description", checkFreeText(s.Description))
	duration, err := s.Duration.Parse()
	switch {
	case err != nil:
		errs.Add("spec.duration", "%s", err)
	case s.Schedule == "" && s.Duration != "":
		errs.Add("spec.duration", "must be absent because there is no schedule: use ends_at")
	case s.Schedule == "" && s.Effect == EffectAllow:
		errs.Add("spec.schedule", "is required for a window that allows moves: without one, everything is allowed")
	case s.Schedule != "" && s.Duration == "":
		errs.Add("spec.duration", "is required with a schedule, such as \"4h\"")
	case s.Schedule != "" && (duration < time.Minute || duration > maxWindow):
		errs.Add("spec.duration", "%q must be from 1m to %dh", string(s.Duration), maxWindow/time.Hour)
	}
	s.LabelSelector.validate(&errs, "spec.label_selector")
	return errs.inOrder(w)
}

// checkTimeZone returns what is wrong with the name of a time zone. That of the server's machine has none.
func checkTimeZone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return fmt.Errorf("%q is not a time zone: write a name such as \"Europe/Berlin\"", name)
	}
	return nil
}

// Times returns when a window with a schedule opens, or nil without one. The error says what is wrong with the schedule or
// the time zone.
func (s *MoveWindowSpec) Times() (cron.Schedule, error) {
	if s.Schedule == "" {
		return nil, nil
	}
	if err := checkTimeZone(s.TimeZone); err != nil {
		return nil, err
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	schedule, err := parser.Parse("CRON_TZ=" + cmp.Or(s.TimeZone, "UTC") + " " + s.Schedule)
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron expression with five fields, such as \"0 18 * * FRI\": %w", s.Schedule, err)
	}
	if schedule.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("%q never comes", s.Schedule)
	}
	return schedule, nil
}

// Freeze asks that decisions stay where they are from now on.
type Freeze struct {
	Reason    string     `json:"reason" doc:"Why. Conditions and explanations quote it."`
	Namespace string     `json:"namespace,omitempty" doc:"Namespace whose decisions stay. If omitted, all."`
	Until     *time.Time `json:"until,omitempty" doc:"When the freeze ends by itself. If omitted, it ends with DELETE."`
}

// Validate returns what is wrong with the request.
func (f *Freeze) Validate(now time.Time) FieldErrors {
	var errs FieldErrors
	if f.Reason == "" {
		errs.Add("reason", "is required: say why, for those who wonder tomorrow")
	}
	if f.Until != nil && !f.Until.After(now) {
		errs.Add("until", "%s is over", f.Until.UTC().Format(time.RFC3339))
	}
	for _, e := range f.Window("freeze").Validate() {
		errs.Add(map[string]string{"metadata.namespace": "namespace", "spec.description": "reason", "spec.ends_at": "until"}[e.Field], "%s", e.Message)
	}
	return errs
}

// Window returns the move window that the freeze is.
func (f *Freeze) Window(name string) *MoveWindow {
	w := &MoveWindow{Metadata: Metadata{Name: name, Namespace: f.Namespace}, Spec: MoveWindowSpec{Effect: EffectDeny, EndsAt: f.Until, Description: f.Reason}}
	w.SetDefaults()
	return w
}
