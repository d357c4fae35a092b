package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// accessUnsettled reports whether at is the name or the ID of the user or project for access to
// OpenStack, one of which is required, and the other one is not known yet.
func accessUnsettled(access, at path.Path, unknown []path.Path) bool {
	for name, id := range map[string]string{"username": "user_id", "project_name": "project_id"} {
		if at.Equal(access.AtName(name)) && slices.ContainsFunc(unknown, access.AtName(id).Equal) {
			return true
		}
	}
	return false
}

// ownerUnsettled reports whether at is the namespace of one of a cloud's metrics, and the owner is
// not known yet: only a cloud with an owner may have such metrics.
func ownerUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	return len(steps) > 0 && steps[len(steps)-1].Equal(path.PathStepAttributeName("namespace")) &&
		terraform.Related(base.AtName("metrics"), at) && slices.ContainsFunc(unknown, base.AtName("namespace").Equal)
}

// openStackUnsettled combines both for kinds that access OpenStack and may have an owner.
func openStackUnsettled(base, at path.Path, unknown []path.Path) bool {
	return accessUnsettled(base.AtName("openstack"), at, unknown) || ownerUnsettled(base, at, unknown)
}
