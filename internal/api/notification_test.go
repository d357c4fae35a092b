package api

import (
	"strings"
	"testing"
)

const testWebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestValidateNotification(t *testing.T) {
	hook := `"webhook":{"url":"https://hook"}`
	for name, c := range map[string]struct{ metadata, spec, want string }{
		"valid":               {`"name":"n"`, `"events":["moved"],` + hook, ""},
		"signed":              {`"name":"n"`, `"events":["moved"],"webhook":{"url":"https://hook","secret":"` + testWebhookSecret + `"}`, ""},
		"no events":           {`"name":"n"`, hook, `spec.events: is required: at least one event, such as "moved"`},
		"unknown event":       {`"name":"n"`, `"events":["exploded"],` + hook, `spec.events[0]: "exploded" is not one of "moved"`},
		"event twice":         {`"name":"n"`, `"events":["moved","moved"],` + hook, `spec.events[1]: "moved" is already listed at position 0`},
		"clusters":            {`"name":"n","namespace":"shop"`, `"events":["cluster_offline"],` + hook, `spec.events[0]: "cluster_offline" is told by a notification without a namespace only`},
		"foreign namespace":   {`"name":"n","namespace":"shop"`, `"events":["moved"],"selector":{"namespaces":["bank"]},` + hook, `spec.selector.namespaces: must be absent`},
		"kind":                {`"name":"n"`, `"events":["moved"],"selector":{"kinds":["metric"]},` + hook, `spec.selector.kinds[0]: "metric" is not one of`},
		"settle":              {`"name":"n"`, `"events":["moved"],"settle":"2h",` + hook, `spec.settle: "2h" must be at most 1h`},
		"no destination":      {`"name":"n"`, `"events":["moved"]`, `spec: needs a destination`},
		"two destinations":    {`"name":"n"`, `"events":["moved"],"slack":{"url":"https://slack"},` + hook, `spec.webhook: must be absent, because there is slack`},
		"address":             {`"name":"n"`, `"events":["moved"],"webhook":{"url":"hook"}`, `spec.webhook.url: is not an address`},
		"short secret":        {`"name":"n"`, `"events":["moved"],"webhook":{"url":"https://hook","secret":"whsec_AAAA"}`, `spec.webhook.secret: is not a secret of Standard Webhooks`},
		"secret in the clear": {`"name":"n"`, `"events":["moved"],"webhook":{"url":"https://hook","previous_secret":"hunter2"}`, `spec.webhook.previous_secret: is not a secret of Standard Webhooks`},
		"label":               {`"name":"n"`, `"events":["moved"],"alertmanager":{"url":"https://a","labels":{"a-b":"c"}}`, `spec.alertmanager.labels["a-b"]: "a-b" is not the name of a label`},
		"channel":             {`"name":"n"`, `"events":["moved"],"slack":{"url":"slack"}`, `spec.slack.url: is not an address`},
		"workspace":           {`"name":"n"`, `"events":["moved"],"hcp_terraform":{"workspace_id":"prod"}`, `spec.hcp_terraform.workspace_id: "prod" is not the ID of a workspace`},
		"repository":          {`"name":"n"`, `"events":["moved"],"github":{"repository":"acme"}`, `spec.github.repository: "acme" is not owner and name`},
		"project":             {`"name":"n"`, `"events":["moved"],"gitlab":{"project":"acme","ref":"main"}`, `spec.gitlab.project: "acme" is neither the ID of a project nor its path`},
		"no ref":              {`"name":"n"`, `"events":["moved"],"gitlab":{"project":"1","ref":""}`, `spec.gitlab.ref: is required`},
		"nothing to plan":     {`"name":"n"`, `"events":["moved"],"atlantis":{"url":"https://a","repository":"a/b","ref":"main"}`, `spec.atlantis.projects: is required`},
		"token":               {`"name":"n"`, `"events":["moved"],"github":{"repository":"a/b","token":"a\nb"}`, `spec.github.token: must not contain line breaks`},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := Decode([]byte(`{"kind":"notification","metadata":{` + c.metadata + `},"spec":{` + c.spec + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			object.SetDefaults()
			errs := object.Validate()
			got := ""
			if len(errs) > 0 {
				got = errs[0].Field + ": " + errs[0].Message
			}
			if len(errs) > 1 || (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("the error repeats a secret: %s", got)
			}
		})
	}
}

// A notification in a namespace tells of nothing outside it.
func TestNotificationSelects(t *testing.T) {
	web := &Placement{Metadata: Metadata{Name: "web", Namespace: "shop", Labels: map[string]string{"tier": "prod"}}}
	for name, c := range map[string]struct {
		n       Notification
		key     Key
		object  Object
		selects bool
	}{
		"all":                {Notification{}, KeyOf(web), web, true},
		"its namespace":      {Notification{Metadata: Metadata{Namespace: "shop"}}, KeyOf(web), web, true},
		"another namespace":  {Notification{Metadata: Metadata{Namespace: "bank"}}, KeyOf(web), web, false},
		"a cluster":          {Notification{Metadata: Metadata{Namespace: "bank"}}, Key{Kind: KindCluster, Name: "berlin"}, nil, false},
		"selected namespace": {Notification{Spec: NotificationSpec{Selector: &NotificationSelector{Namespaces: []string{"bank"}}}}, KeyOf(web), web, false},
		"selected kind":      {Notification{Spec: NotificationSpec{Selector: &NotificationSelector{Kinds: []Kind{KindWorkload}}}}, KeyOf(web), web, false},
		"selected name":      {Notification{Spec: NotificationSpec{Selector: &NotificationSelector{Names: []string{"web"}}}}, KeyOf(web), web, true},
		"labels":             {Notification{Spec: NotificationSpec{Selector: &NotificationSelector{LabelSelector: &LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}}}, KeyOf(web), web, true},
		"labels of nothing":  {Notification{Spec: NotificationSpec{Selector: &NotificationSelector{LabelSelector: &LabelSelector{}}}}, KeyOf(web), nil, false},
	} {
		if got := c.n.Selects(c.key, c.object); got != c.selects {
			t.Errorf("%s: %t", name, got)
		}
	}
}
