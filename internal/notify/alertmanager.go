package notify

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// alertmanager raises alerts, and resolves those that it raised.
var alertmanager = destination{name: "alertmanager", divisible: true, timeout: usualTimeout, send: sendAlerts}

// movedAlert is how long an alert about a move lasts: a move is over when it has happened.
const movedAlert = 5 * time.Minute

// alert is one of the list that POST /api/v2/alerts takes.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

func sendAlerts(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.Alertmanager
	header := http.Header{}
	if !spec.BearerToken.IsZero() {
		header.Set("Authorization", "Bearer "+spec.BearerToken.Reveal())
	}
	return to.post(ctx, strings.TrimSuffix(spec.URL, "/")+"/api/v2/alerts", header, alertsOf(d))
}

// alertsOf returns the alerts about events: one for each state, as it is after all of them.
func alertsOf(d *delivery) []alert {
	spec := d.notification.Spec.Alertmanager
	expire, err := spec.ExpireAfter.Parse()
	if err != nil {
		expire = 24 * time.Hour // validation does not let it be something else
	}
	type state struct {
		object  api.HistoryObject
		kind    api.NotificationEvent
		cluster string
	}
	at := map[state]int{}
	alerts := []alert{}
	for i := range d.events {
		e := &d.events[i]
		s := state{e.object, e.kind, e.cluster}
		a := alert{Annotations: map[string]string{"summary": e.summary()}, StartsAt: e.time, EndsAt: e.time.Add(expire)}
		switch e.kind { //nolint:exhaustive // all others are states that last
		case api.EventMoved, eventTest:
			a.EndsAt = e.time.Add(movedAlert)
		case api.EventRecovered:
			s.kind, a.EndsAt = e.recovered, e.time
		}
		a.Labels = labelsOf(spec.Labels, s.kind, e)
		n, raised := at[s]
		if !raised {
			at[s] = len(alerts)
			alerts = append(alerts, a)
			continue
		}
		if e.kind == api.EventRecovered {
			a.StartsAt, a.Annotations = alerts[n].StartsAt, alerts[n].Annotations // what is over is what was raised
		}
		alerts[n] = a
	}
	return slices.Clip(alerts)
}

// labelsOf returns the labels of an alert, by which Alertmanager tells which one is resolved.
func labelsOf(more map[string]string, kind api.NotificationEvent, e *event) map[string]string {
	labels := maps.Clone(more)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["alertname"] = "Scheduler" + camel(string(kind))
	labels["event"], labels["kind"], labels["name"] = string(kind), string(e.object.Kind), e.object.Name
	if e.object.Namespace != "" {
		labels["namespace"] = e.object.Namespace
	}
	if e.cluster != "" {
		labels["cluster"] = e.cluster
	}
	return labels
}

// camel turns "cluster_offline" into "ClusterOffline".
func camel(text string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(text, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
