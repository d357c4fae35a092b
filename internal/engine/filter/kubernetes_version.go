package filter

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// kubernetesVersion requires that the observed Kubernetes version of a cluster meets the
// placement's constraint. An unknown version does not.
type kubernetesVersion struct{}

func (kubernetesVersion) Name() string { return "kubernetes_version" }

func (kubernetesVersion) Compile(s *Spec, made []Check) ([]Check, error) {
	text := s.Placement.KubernetesVersion
	if text == "" {
		return made, nil
	}
	c, err := constraint.ParseVersion(text)
	if err != nil {
		return made, fmt.Errorf("spec.kubernetes_version: %w", err)
	}
	return append(made, &hasVersion{is: c}), nil
}

// hasVersion requires a version of Kubernetes.
type hasVersion struct {
	kubernetesVersion
	is constraint.Version
}

func (c *hasVersion) Key(k key.Writer) {
	if !k.Words("text", c.is.String()) {
		k.Text("constraint", c.is.Canonical())
	}
}

func (c *hasVersion) Reads() columns.Aspects { return columns.Observations }
func (c *hasVersion) On() string             { return c.is.String() }

func (c *hasVersion) Rejection(n int) string {
	return fmt.Sprintf("%s match kubernetes_version %q", Plural(n, "does not", "do not"), c.is.String())
}

func (c *hasVersion) Apply(l *Evaluation, keep columns.Bitmap) {
	matches := map[string]bool{} // by version: a fleet has few
	keep.Each(func(row int) {
		version := l.Fleet.Cluster(row).Status.KubernetesVersion
		match, known := matches[version]
		if !known {
			match = c.is.Match(version)
			matches[version] = match
		}
		if !match {
			keep.Clear(row)
		}
	})
}

func (c *hasVersion) Admits(l *Evaluation, row int, _ bool) bool {
	return c.is.Match(l.Fleet.Cluster(row).Status.KubernetesVersion)
}

func (c *hasVersion) Reason(l *Evaluation, row int) string {
	return "Kubernetes " + c.is.Explain(l.Fleet.Cluster(row).Status.KubernetesVersion)
}
