package api

import "time"

// Freeze stops all moves that nothing forces: in one namespace, or everywhere if it has none.
type Freeze struct {
	Kind     Kind         `json:"kind" enum:"freeze"`
	Metadata Metadata     `json:"metadata"`
	Spec     FreezeSpec   `json:"spec"`
	Status   FreezeStatus `json:"status,omitzero"`
}

// FreezeSpec says why decisions stay where they are, and until when.
type FreezeSpec struct {
	Reason string     `json:"reason" doc:"Why nothing moves. Everybody who reads a decision that is held sees it."`
	Until  *time.Time `json:"until,omitempty" doc:"When the freeze ends. If omitted, when it is deleted."`
}

// FreezeStatus is the status of a freeze. Whether it is over follows from the time.
type FreezeStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// FreezeName is the name of the freezes that FreezeRequest creates: one for each namespace, and a
// global one.
const FreezeName = "freeze"

// FreezeRequest asks to freeze everything, or some namespaces.
type FreezeRequest struct {
	FreezeSpec
	Namespaces []string `json:"namespaces,omitempty" doc:"Namespaces in which nothing moves. If omitted, nothing moves anywhere."`
}

// InForce reports whether the freeze holds moves at a time.
func (s *FreezeSpec) InForce(now time.Time) bool { return s.Until == nil || now.Before(*s.Until) }

// ObjectKind implements Object.
func (f *Freeze) ObjectKind() Kind { return KindFreeze }

// Meta implements Object.
func (f *Freeze) Meta() *Metadata { return &f.Metadata }

// SpecPart implements Object.
func (f *Freeze) SpecPart() any { return &f.Spec }

// StatusPart implements Object.
func (f *Freeze) StatusPart() any { return &f.Status }

// Copy implements Object.
func (f *Freeze) Copy() Object { d := *f; return &d }

// Secrets implements Object.
func (f *Freeze) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (f *Freeze) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (f *Freeze) SetDefaults() {
	f.Kind = KindFreeze
	f.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&f.Spec)
}

// Validate implements Object.
func (f *Freeze) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(f, GlobalOrNamespaced)
	errs.check("spec.reason", checkText(f.Spec.Reason))
	return errs.inOrder(f)
}
