package httpapi

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// Who may write notifications, but not read what they tell of, would be told of it by a destination of their own.
func TestWhoMayBeTold(t *testing.T) {
	roles := auth.NewRoles([]auth.RoleDefinition{
		{Name: "notifier", Rules: []auth.Rule{{Verbs: []auth.Verb{auth.VerbRead, auth.VerbWrite}, Kinds: []api.Kind{api.KindNotification}}}},
		{Name: "shop", Rules: []auth.Rule{
			{Verbs: []auth.Verb{auth.VerbRead, auth.VerbWrite}, Kinds: []api.Kind{api.KindNotification}},
			{Verbs: []auth.Verb{auth.VerbRead}, Namespaces: []string{"shop"}},
		}},
	})
	in := func(namespace string, selector *api.NotificationSelector) *api.Notification {
		return &api.Notification{Metadata: api.Metadata{Name: "n", Namespace: namespace}, Spec: api.NotificationSpec{Selector: selector}}
	}
	placements := &api.NotificationSelector{Kinds: []api.Kind{api.KindPlacement}, Namespaces: []string{"shop"}}
	for name, c := range map[string]struct {
		role auth.Role
		n    *api.Notification
		may  bool
	}{
		"an administrator of everything":          {auth.RoleAdmin, in("", nil), true},
		"who reads nothing else":                  {"notifier", in("shop", nil), false},
		"who reads nothing else, everything":      {"notifier", in("", nil), false},
		"who reads the namespace":                 {"shop", in("shop", nil), true},
		"who reads another namespace":             {"shop", in("bank", nil), false},
		"who reads one namespace, everything":     {"shop", in("", nil), false},
		"who reads one namespace, it is selected": {"shop", in("", placements), true},
	} {
		if err := mayTell(roles.Identity("id", c.role, nil), c.n); (err == nil) != c.may {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := mayTell(roles.Identity("id", "notifier", nil), &api.Placement{}); err != nil {
		t.Errorf("a placement tells nobody anything: %v", err)
	}
}
