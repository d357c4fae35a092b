package api

import (
	"crypto/x509"
	"encoding/base64"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Notification tells another system what happens to decisions, and to what they depend on. One
// without a namespace tells of all namespaces, and of clusters and metrics providers.
type Notification struct {
	Kind     Kind               `json:"kind" enum:"notification"`
	Metadata Metadata           `json:"metadata"`
	Spec     NotificationSpec   `json:"spec"`
	Status   NotificationStatus `json:"status,omitzero"`
}

// NotificationEvent is what a notification can tell of.
type NotificationEvent string

// Events.
const (
	// EventMoved: a decision has changed.
	EventMoved NotificationEvent = "moved"
	// EventUndecided: nothing fits an object.
	EventUndecided NotificationEvent = "undecided"
	// EventHeld: a window, a budget or a freeze holds a decision, or an object that it depends on is lost.
	EventHeld NotificationEvent = "held"
	// EventStaged: a decision changes in steps, and begins to, waits for approval or has stopped.
	EventStaged NotificationEvent = "staged"
	// EventEvicting: a workload is leaving a cluster.
	EventEvicting NotificationEvent = "evicting"
	// EventRecovered: what one of the others told of is over.
	EventRecovered NotificationEvent = "recovered"
	// EventBrake: a workload stays on clusters that are offline, because too many are at once.
	EventBrake NotificationEvent = "brake"
	// EventProviderFailing: a metrics provider cannot be read.
	EventProviderFailing NotificationEvent = "provider_failing"
	// EventClusterOffline: a cluster is no longer online.
	EventClusterOffline NotificationEvent = "cluster_offline"
)

// notificationEvents are all events; fleetEvents those of objects that belong to no namespace.
var (
	notificationEvents = []NotificationEvent{
		EventMoved, EventUndecided, EventHeld, EventStaged, EventEvicting, EventRecovered, EventBrake, EventProviderFailing, EventClusterOffline,
	}
	fleetEvents = []NotificationEvent{EventClusterOffline}
)

// NotificationSpec says who is told what, and how.
type NotificationSpec struct {
	Events   []NotificationEvent   `json:"events" doc:"What is told: 'moved' (a decision has changed), 'undecided' (nothing fits), 'held' (a decision would move, but a window, budget or freeze holds it, or something that it depends on is lost), 'staged' (a decision begins to change in steps, waits for approval, or has stopped), 'evicting' (a workload is leaving a cluster), 'brake' (a workload stays on clusters that are offline, because too many are at once), 'provider_failing' (a metrics provider cannot be read), 'cluster_offline' (a cluster is no longer online) and 'recovered' (something that one of these told of is over)."`
	Selector *NotificationSelector `json:"selector,omitempty" doc:"Objects that are told of. If omitted, all: those of its namespace, or of all namespaces for a notification without one."`
	Settle   Duration              `json:"settle,omitempty" default:"0s" doc:"How long to wait after an event for others, at most an hour. Several changes of one decision in that time become one: from before the first to after the last."`
	RetryFor Duration              `json:"retry_for,omitempty" default:"72h" shortest:"1s" doc:"How long a delivery that fails is tried again. After that it is given up, and the next one is tried. It stays in the list of attempts, and can be sent again."`
	Paused   bool                  `json:"paused,omitempty" default:"false" doc:"If true, nothing is sent. What happens meanwhile is sent afterwards, as far as the history goes back."`

	Webhook      *WebhookDestination      `json:"webhook,omitempty" doc:"Sends each event to an address: a CloudEvent in structured mode, with a signature as in Standard Webhooks."`
	Alertmanager *AlertmanagerDestination `json:"alertmanager,omitempty" doc:"Raises alerts in a Prometheus Alertmanager. What recovers is resolved, whether or not 'recovered' is among the events."`
	Slack        *SlackDestination        `json:"slack,omitempty" doc:"Writes into a channel of Slack, or of what accepts the same incoming webhooks, such as Mattermost and Rocket.Chat."`
	HCPTerraform *HCPTerraformDestination `json:"hcp_terraform,omitempty" doc:"Starts a run of a workspace in HCP Terraform or Terraform Enterprise, unless one is pending: that one sees the change as well."`
	GitHub       *GitHubDestination       `json:"github,omitempty" doc:"Starts the workflows of a GitHub repository that have the trigger 'repository_dispatch'."`
	GitLab       *GitLabDestination       `json:"gitlab,omitempty" doc:"Starts a pipeline of a GitLab project."`
	Atlantis     *AtlantisDestination     `json:"atlantis,omitempty" doc:"Has Atlantis plan."`

	CACert             string `json:"ca_cert,omitempty" doc:"PEM certificates that the destination's certificate must chain to."`
	InsecureSkipVerify bool   `json:"insecure_skip_verify,omitempty" default:"false" doc:"If true, the destination's certificate is not verified."`
}

// NotificationSelector selects the objects that a notification tells of. All conditions must hold.
type NotificationSelector struct {
	Namespaces    []string       `json:"namespaces,omitempty" doc:"Namespaces of the objects. If omitted, any. Only for a notification without a namespace: one in a namespace tells of that namespace."`
	Kinds         []Kind         `json:"kinds,omitempty" doc:"Kinds of the objects: 'placement', 'workload', 'cluster', 'magnum_cluster' or 'metrics_provider'. If omitted, any."`
	Names         []string       `json:"names,omitempty" doc:"Names of the objects. If omitted, any."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the labels of the object, as they are when it is told. Nothing is told of an object that has been deleted by then."`
}

// notifiedKinds are the kinds of which notifications tell.
var notifiedKinds = []Kind{KindPlacement, KindWorkload, KindCluster, KindMagnumCluster, KindMetricsProvider}

// WebhookDestination is an address that gets each event.
type WebhookDestination struct {
	URL            string `json:"url" doc:"Address that the events are posted to."`
	Secret         Secret `json:"secret,omitzero" doc:"Key of the signatures: 'whsec_' and 24 to 64 bytes in base64. If omitted, nothing is signed. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
	PreviousSecret Secret `json:"previous_secret,omitzero" doc:"While the receiver still has the key of before: that key. Everything is then signed with both." writeOnly:"true" nullable:"true"`
}

// AlertmanagerDestination is an Alertmanager.
type AlertmanagerDestination struct {
	URL         string            `json:"url" doc:"Base URL, such as 'http://alertmanager:9093'."`
	BearerToken Secret            `json:"bearer_token,omitzero" doc:"Token sent as 'Authorization: Bearer', if a proxy in front of it asks for one. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
	Labels      map[string]string `json:"labels,omitempty" doc:"More labels of each alert, such as a severity or a team."`
	ExpireAfter Duration          `json:"expire_after,omitempty" default:"24h" shortest:"1m" doc:"After how long Alertmanager resolves an alert by itself, if nothing recovers before. An alert about a move, which does not recover, is resolved after five minutes."`
}

// SlackDestination is an incoming webhook of Slack.
type SlackDestination struct {
	URL Secret `json:"url,omitzero" doc:"Address of the incoming webhook. Whoever knows it can write into the channel." writeOnly:"true" nullable:"true"`
}

// HCPTerraformDestination is a workspace in HCP Terraform.
type HCPTerraformDestination struct {
	Address     string `json:"address,omitempty" default:"https://app.terraform.io" doc:"Address of HCP Terraform, or of Terraform Enterprise."`
	WorkspaceID string `json:"workspace_id" doc:"ID of the workspace, such as 'ws-6jrRyVDv1J8zQMB5'."`
	Token       Secret `json:"token,omitzero" doc:"Token of a user or team that may queue plans in the workspace; one of an organization cannot. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
	AutoApply   *bool  `json:"auto_apply,omitempty" doc:"Whether the run is applied without confirmation. If omitted, the workspace decides."`
}

// GitHubDestination is a repository on GitHub.
type GitHubDestination struct {
	Address    string `json:"address,omitempty" default:"https://api.github.com" doc:"Address of the REST API. For GitHub Enterprise Server, 'https://<host>/api/v3'."`
	Repository string `json:"repository" doc:"Owner and name of the repository, such as 'acme/infrastructure'."`
	EventType  string `json:"event_type,omitempty" default:"scheduler" maxLength:"100" doc:"Type of the event, by which workflows select it: 'on: repository_dispatch: types: [scheduler]'."`
	Token      Secret `json:"token,omitzero" doc:"Token that may write the contents of the repository. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
}

// GitLabDestination is a project on GitLab.
type GitLabDestination struct {
	Address   string            `json:"address,omitempty" default:"https://gitlab.com" doc:"Address of GitLab."`
	Project   string            `json:"project" doc:"ID of the project, or its path, such as 'acme/infrastructure'."`
	Ref       string            `json:"ref" doc:"Branch or tag that the pipeline runs for."`
	Variables map[string]string `json:"variables,omitempty" doc:"More variables of the pipeline. 'SCHEDULER_NOTIFICATION', 'SCHEDULER_EVENTS' and 'SCHEDULER_MESSAGE' are always set."`
	Token     Secret            `json:"token,omitzero" doc:"Pipeline trigger token of the project. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
}

// AtlantisDestination is an Atlantis server, and what it plans.
type AtlantisDestination struct {
	URL         string   `json:"url" doc:"Address of the server. It must be started with '--api-secret'."`
	Repository  string   `json:"repository" doc:"Owner and name of the repository, such as 'acme/infrastructure'."`
	Ref         string   `json:"ref" doc:"Branch that is planned."`
	Type        string   `json:"type,omitempty" default:"Github" enum:"Github,Gitlab,Gitea,BitbucketCloud,BitbucketServer,AzureDevops" doc:"Where the repository is, as Atlantis calls it."`
	Projects    []string `json:"projects,omitempty" doc:"Names of projects in 'atlantis.yaml'. Either these or 'directories' are required."`
	Directories []string `json:"directories,omitempty" doc:"Directories of the repository, each of which is planned in the workspace 'default'."`
	Token       Secret   `json:"token,omitzero" doc:"The secret of '--api-secret'. It is kept only while the address and the certificate checks stay the same." writeOnly:"true" nullable:"true"`
}

// NotificationStatus is how delivery stands.
type NotificationStatus struct {
	ObservedGeneration int64       `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Conditions         []Condition `json:"conditions,omitempty" doc:"'Delivering': False while deliveries fail, are paused, or have stopped because the destination answered 410 (Gone) and the notification has not been written since."`
	// Cursor is where the history is read from: the position of the last item that is dealt with.
	Cursor        string                `json:"cursor,omitempty" doc:"Position in the history up to which everything has been dealt with, except for what is set aside."`
	LastSuccessAt *time.Time            `json:"last_success_at,omitempty" doc:"When something was last delivered."`
	LastFailureAt *time.Time            `json:"last_failure_at,omitempty" doc:"When an attempt last failed."`
	Attempts      []NotificationAttempt `json:"attempts,omitempty" doc:"The most recent deliveries, newest first."`
	SetAside      []NotificationAttempt `json:"set_aside,omitempty" doc:"Deliveries that the destination refuses, each of another object. They are tried again, what is told of the same objects waits, and everything else is delivered meanwhile."`
}

// NotificationResult is what became of a delivery.
type NotificationResult string

// Results of deliveries.
const (
	DeliveryDone    NotificationResult = "delivered"
	DeliveryFailed  NotificationResult = "failed"
	DeliveryRefused NotificationResult = "refused"
	DeliveryGivenUp NotificationResult = "given_up"
	DeliveryGone    NotificationResult = "gone"
)

// NotificationAttempt is a delivery, with its most recent attempt.
type NotificationAttempt struct {
	ID       string             `json:"id" doc:"ID of the delivery. It is the same in every attempt, and what the receiver tells repetitions by: for a webhook, 'webhook-id'."`
	Time     time.Time          `json:"time" doc:"When it was last attempted."`
	Attempts int64              `json:"attempts" doc:"How often it was attempted."`
	Result   NotificationResult `json:"result" enum:"delivered,failed,refused,given_up,gone" doc:"What became of it: 'delivered', 'failed' (it is tried again, and everything else waits), 'refused' (it is tried again, and what is told of the same object waits), 'given_up', or 'gone' (the destination answered 410)."`
	Code     int64              `json:"code,omitempty" doc:"Status code of the answer, if there was one."`
	Message  string             `json:"message,omitempty" doc:"Why it failed."`
	Events   int64              `json:"events" doc:"Number of events in it."`
	From     string             `json:"from" doc:"Position in the history of the first event: a revision, and a number. What it says is in the history."`
	To       string             `json:"to" doc:"Position in the history of the last event."`
}

// NotificationTest is what became of an event that was sent as a test.
type NotificationTest struct {
	ID      string             `json:"id" doc:"ID of the test, as the destination got it. It begins with 'test-'."`
	Time    time.Time          `json:"time" doc:"When it was sent."`
	Result  NotificationResult `json:"result" enum:"delivered,failed,gone" doc:"What became of it: 'delivered', 'failed', or 'gone' (the destination answered 410)."`
	Code    int64              `json:"code,omitempty" doc:"Status code of the destination's answer, if there was one."`
	Message string             `json:"message,omitempty" doc:"Why it failed."`
}

// NotificationAttempts is the list of the most recent deliveries.
type NotificationAttempts struct {
	Items []NotificationAttempt `json:"items" doc:"The most recent deliveries, newest first, and then older ones that are set aside, because the destination refuses them."`
}

// Listed returns the most recent deliveries, and then those set aside that are older.
func (s *NotificationStatus) Listed() []NotificationAttempt {
	list := append([]NotificationAttempt{}, s.Attempts...)
	for _, aside := range s.SetAside {
		if !slices.ContainsFunc(s.Attempts, func(a NotificationAttempt) bool { return a.ID == aside.ID }) {
			list = append(list, aside)
		}
	}
	return list
}

// ObjectKind implements Object.
func (n *Notification) ObjectKind() Kind { return KindNotification }

// Meta implements Object.
func (n *Notification) Meta() *Metadata { return &n.Metadata }

// SpecPart implements Object.
func (n *Notification) SpecPart() any { return &n.Spec }

// StatusPart implements Object.
func (n *Notification) StatusPart() any { return &n.Status }

// Copy implements Object.
func (n *Notification) Copy() Object { d := *n; return &d }

// notificationSecret is a secret of a destination: where it is, and how it is set without changing
// what is shared with a copy.
type notificationSecret struct {
	field string
	get   func(s *NotificationSpec) Secret
	set   func(s *NotificationSpec, secret Secret)
}

// secretIn describes a secret in the block of a destination.
func secretIn[D any](field string, block func(s *NotificationSpec) **D, at func(d *D) *Secret) notificationSecret {
	return notificationSecret{field, func(s *NotificationSpec) Secret {
		if d := *block(s); d != nil {
			return *at(d)
		}
		return Secret{}
	}, func(s *NotificationSpec, secret Secret) {
		var d D
		if old := *block(s); old != nil {
			d = *old
		}
		*at(&d) = secret
		*block(s) = &d
	}}
}

var notificationSecrets = []notificationSecret{
	secretIn("spec.webhook.secret", func(s *NotificationSpec) **WebhookDestination { return &s.Webhook }, func(d *WebhookDestination) *Secret { return &d.Secret }),
	secretIn("spec.webhook.previous_secret", func(s *NotificationSpec) **WebhookDestination { return &s.Webhook }, func(d *WebhookDestination) *Secret { return &d.PreviousSecret }),
	secretIn("spec.alertmanager.bearer_token", func(s *NotificationSpec) **AlertmanagerDestination { return &s.Alertmanager }, func(d *AlertmanagerDestination) *Secret { return &d.BearerToken }),
	secretIn("spec.slack.url", func(s *NotificationSpec) **SlackDestination { return &s.Slack }, func(d *SlackDestination) *Secret { return &d.URL }),
	secretIn("spec.hcp_terraform.token", func(s *NotificationSpec) **HCPTerraformDestination { return &s.HCPTerraform }, func(d *HCPTerraformDestination) *Secret { return &d.Token }),
	secretIn("spec.github.token", func(s *NotificationSpec) **GitHubDestination { return &s.GitHub }, func(d *GitHubDestination) *Secret { return &d.Token }),
	secretIn("spec.gitlab.token", func(s *NotificationSpec) **GitLabDestination { return &s.GitLab }, func(d *GitLabDestination) *Secret { return &d.Token }),
	secretIn("spec.atlantis.token", func(s *NotificationSpec) **AtlantisDestination { return &s.Atlantis }, func(d *AtlantisDestination) *Secret { return &d.Token }),
}

// Secrets implements Object.
func (n *Notification) Secrets() map[string]Secret {
	out := map[string]Secret{}
	for _, s := range notificationSecrets {
		if secret := s.get(&n.Spec); !secret.IsZero() {
			out[s.field] = secret
		}
	}
	return out
}

// SetSecret implements Object.
func (n *Notification) SetSecret(field string, secret Secret) {
	for _, s := range notificationSecrets {
		if s.field == field {
			s.set(&n.Spec, secret)
		}
	}
}

// receiver implements secretReceiver: the destination. The address of a channel is itself the secret.
func (n *Notification) receiver(field string) receiver {
	s := &n.Spec
	to := receiver{trust: trustOf(s.CACert, s.InsecureSkipVerify)}
	block, _, _ := strings.Cut(strings.TrimPrefix(field, "spec."), ".")
	address, there := s.destinations()[block]
	to.absent = !there
	if to.address = origin(address); block == "slack" {
		to.address = "the channel"
	}
	return to
}

// destinations returns the addresses of the blocks that are set, by their names.
func (s *NotificationSpec) destinations() map[string]string {
	blocks := map[string]string{}
	if s.Webhook != nil {
		blocks["webhook"] = s.Webhook.URL
	}
	if s.Alertmanager != nil {
		blocks["alertmanager"] = s.Alertmanager.URL
	}
	if s.Slack != nil {
		blocks["slack"] = s.Slack.URL.Reveal()
	}
	if s.HCPTerraform != nil {
		blocks["hcp_terraform"] = s.HCPTerraform.Address
	}
	if s.GitHub != nil {
		blocks["github"] = s.GitHub.Address
	}
	if s.GitLab != nil {
		blocks["gitlab"] = s.GitLab.Address
	}
	if s.Atlantis != nil {
		blocks["atlantis"] = s.Atlantis.URL
	}
	return blocks
}

// Destination returns the name of the block that is set, such as "webhook".
func (s *NotificationSpec) Destination() string {
	for name := range s.destinations() {
		return name
	}
	return ""
}

// Tells reports whether the notification tells of an event. recovered is the event that is over, if
// the event is that.
func (s *NotificationSpec) Tells(event, recovered NotificationEvent) bool {
	return slices.Contains(s.Events, event) || s.Alertmanager != nil && event == EventRecovered && slices.Contains(s.Events, recovered)
}

// Selects reports whether a notification tells of an object. object is nil if it has been deleted.
func (n *Notification) Selects(key Key, object Object) bool {
	if n.Metadata.Namespace != "" && key.Namespace != n.Metadata.Namespace {
		return false
	}
	s := n.Spec.Selector
	switch {
	case s == nil:
		return true
	case len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, key.Namespace),
		len(s.Kinds) > 0 && !slices.Contains(s.Kinds, key.Kind),
		len(s.Names) > 0 && !slices.Contains(s.Names, key.Name):
		return false
	}
	return s.LabelSelector == nil || object != nil && s.LabelSelector.Matches(object.Meta().Labels)
}

// TellsOf returns the kinds of objects that a notification may tell of.
func (n *Notification) TellsOf() []Kind {
	if s := n.Spec.Selector; s != nil && len(s.Kinds) > 0 {
		return s.Kinds
	}
	if n.Metadata.Namespace == "" {
		return notifiedKinds
	}
	return slices.DeleteFunc(slices.Clone(notifiedKinds), func(k Kind) bool { return k == KindCluster }) // they are in no namespace
}

// SetDefaults implements Object.
func (n *Notification) SetDefaults() {
	n.Kind = KindNotification
	n.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&n.Spec)
}

// longestSettle is the longest time to wait for other events.
const longestSettle = time.Hour

var (
	workspaceID    = regexp.MustCompile(`^ws-[A-Za-z0-9]+$`)
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)
	gitLabProject  = regexp.MustCompile(`^([0-9]+|[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+)$`)
	alertLabel     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate implements Object.
func (n *Notification) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(n, GlobalOrNamespaced)
	s := &n.Spec
	n.validateEvents(&errs)
	if sel := s.Selector; sel != nil {
		checkUnique(&errs, "spec.selector.namespaces", sel.Namespaces)
		checkNames(&errs, "spec.selector.namespaces", sel.Namespaces)
		if len(sel.Namespaces) > 0 && n.Metadata.Namespace != "" {
			errs.Add("spec.selector.namespaces", "must be absent: the notification is in a namespace, and tells of that one only")
		}
		for i, kind := range sel.Kinds {
			errs.check(index("spec.selector.kinds", i), oneOf(kind, notifiedKinds...))
		}
		checkUnique(&errs, "spec.selector.names", sel.Names)
		checkNames(&errs, "spec.selector.names", sel.Names)
		sel.LabelSelector.validate(&errs, "spec.selector.label_selector")
	}
	if d, err := s.Settle.Parse(); err == nil && d > longestSettle {
		errs.Add("spec.settle", "%q must be at most %s", string(s.Settle), Duration("1h"))
	}
	s.validateDestination(&errs)
	if s.CACert != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CACert)) {
		errs.Add("spec.ca_cert", "contains no PEM certificate: it must have a block that begins with -----BEGIN CERTIFICATE-----")
	}
	return errs.inOrder(n)
}

func (n *Notification) validateEvents(errs *FieldErrors) {
	events := make([]string, len(n.Spec.Events))
	for i, event := range n.Spec.Events {
		errs.check(index("spec.events", i), oneOf(event, notificationEvents...))
		events[i] = string(event)
		if n.Metadata.Namespace != "" && slices.Contains(fleetEvents, event) {
			errs.Add(index("spec.events", i), "%q is told by a notification without a namespace only: clusters belong to none", string(event))
		}
	}
	checkUnique(errs, "spec.events", events)
	if len(events) == 0 {
		errs.Add("spec.events", "is required: at least one event, such as \"moved\"")
	}
}

func (s *NotificationSpec) validateDestination(errs *FieldErrors) {
	blocks := slices.Sorted(maps.Keys(s.destinations()))
	if len(blocks) == 0 {
		errs.Add("spec", "needs a destination: one of the blocks webhook, alertmanager, slack, hcp_terraform, github, gitlab or atlantis")
	}
	for _, block := range blocks[min(1, len(blocks)):] {
		errs.Add("spec."+block, "must be absent, because there is %s: a notification has one destination", blocks[0])
	}
	for _, block := range blocks {
		field := "spec." + block + ".address"
		if block == "webhook" || block == "alertmanager" || block == "atlantis" {
			field = "spec." + block + ".url"
		}
		if block != "slack" {
			errs.check(field, checkURL(s.destinations()[block]))
		}
	}
	for _, secret := range notificationSecrets {
		errs.check(secret.field, checkHeaderValue(secret.get(s)))
	}
	if w := s.Webhook; w != nil {
		errs.check("spec.webhook.secret", checkWebhookSecret(w.Secret))
		errs.check("spec.webhook.previous_secret", checkWebhookSecret(w.PreviousSecret))
	}
	if a := s.Alertmanager; a != nil {
		for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
			if !alertLabel.MatchString(name) {
				errs.Add("spec.alertmanager.labels["+quote(name)+"]", "%q is not the name of a label: letters, digits and \"_\", and no digit first", name)
			}
		}
	}
	if s.Slack != nil && s.Slack.URL.Reveal() != "" {
		errs.check("spec.slack.url", checkURL(s.Slack.URL.Reveal()))
	}
	if h := s.HCPTerraform; h != nil && !workspaceID.MatchString(h.WorkspaceID) {
		errs.Add("spec.hcp_terraform.workspace_id", "%q is not the ID of a workspace, such as \"ws-6jrRyVDv1J8zQMB5\"", h.WorkspaceID)
	}
	if g := s.GitHub; g != nil && (!repositoryName.MatchString(g.Repository) || strings.Count(g.Repository, "/") != 1) {
		errs.Add("spec.github.repository", "%q is not owner and name of a repository, such as \"acme/infrastructure\"", g.Repository)
	}
	if g := s.GitLab; g != nil {
		if !gitLabProject.MatchString(g.Project) {
			errs.Add("spec.gitlab.project", "%q is neither the ID of a project nor its path, such as \"acme/infrastructure\"", g.Project)
		}
		errs.check("spec.gitlab.ref", checkText(g.Ref))
		for _, name := range slices.Sorted(maps.Keys(g.Variables)) {
			if !alertLabel.MatchString(name) {
				errs.Add("spec.gitlab.variables["+quote(name)+"]", "%q is not the name of a variable: letters, digits and \"_\", and no digit first", name)
			}
		}
	}
	if a := s.Atlantis; a != nil {
		a.validate(errs)
	}
}

func (a *AtlantisDestination) validate(errs *FieldErrors) {
	if !repositoryName.MatchString(a.Repository) {
		errs.Add("spec.atlantis.repository", "%q is not owner and name of a repository, such as \"acme/infrastructure\"", a.Repository)
	}
	errs.check("spec.atlantis.ref", checkText(a.Ref))
	switch {
	case len(a.Projects) == 0 && len(a.Directories) == 0:
		errs.Add("spec.atlantis.projects", "is required, unless 'directories' is set")
	case len(a.Projects) > 0 && len(a.Directories) > 0:
		errs.Add("spec.atlantis.directories", "must be absent, because 'projects' is set")
	}
	for i, name := range a.Projects {
		errs.check(index("spec.atlantis.projects", i), checkText(name))
	}
	for i, name := range a.Directories {
		errs.check(index("spec.atlantis.directories", i), checkText(name))
	}
	checkUnique(errs, "spec.atlantis.projects", a.Projects)
	checkUnique(errs, "spec.atlantis.directories", a.Directories)
}

// webhookSecretPrefix begins the secrets of Standard Webhooks.
const webhookSecretPrefix = "whsec_"

// WebhookKey returns the key in a secret of Standard Webhooks; ok is false if it is none.
func WebhookKey(secret Secret) (key []byte, ok bool) {
	text, found := strings.CutPrefix(secret.Reveal(), webhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	return key, found && err == nil && len(key) >= 24 && len(key) <= 64
}

func checkWebhookSecret(secret Secret) string {
	if _, ok := WebhookKey(secret); !ok && secret.Reveal() != "" {
		return "is not a secret of Standard Webhooks: it must be \"whsec_\" and then 24 to 64 bytes in base64"
	}
	return ""
}

// hosts returns the host of the destination.
func (s *NotificationSpec) hosts() []outboundHost {
	var hosts []outboundHost
	for block, address := range s.destinations() {
		field, hidden := "spec."+block+".address", false
		switch block {
		case "webhook", "alertmanager", "atlantis":
			field = "spec." + block + ".url"
		case "slack":
			field, hidden = "spec.slack.url", true
		}
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			hosts = append(hosts, outboundHost{field, u.Hostname(), hidden})
		}
	}
	return hosts
}
