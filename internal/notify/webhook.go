package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// webhook sends each event as a CloudEvent in structured mode, signed as in Standard Webhooks.
var webhook = destination{name: "webhook", each: true, divisible: true, timeout: usualTimeout, send: sendWebhook}

// cloudEvent is the structured form of CloudEvents 1.0. Its members type and data are those that
// Standard Webhooks recommends.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            data      `json:"data"`
}

func sendWebhook(ctx context.Context, to *sender, d *delivery) error {
	e, spec := &d.events[0], d.notification.Spec.Webhook
	body, err := json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: d.id, Source: api.KeyOf(d.notification).URLPath(), Type: fmt.Sprintf("dev.scheduler.%s.%s.v1", e.object.Kind, e.kind),
		Subject: e.object.Path(), Time: e.time, DataContentType: "application/json", Data: e.data(d.notification),
	})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	header := http.Header{}
	header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	sign(header, d.id, to.now(), body, spec.Secret, spec.PreviousSecret)
	_, err = to.request(ctx, http.MethodPost, spec.URL, header, body)
	return err
}

// sign adds the headers of Standard Webhooks: a signature for each secret that is set.
func sign(header http.Header, id string, now time.Time, body []byte, secrets ...api.Secret) {
	at := strconv.FormatInt(now.Unix(), 10)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", at)
	var signatures []string
	for _, secret := range secrets {
		key, ok := api.WebhookKey(secret)
		if !ok {
			continue
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + at + ".")) // never fails
		_, _ = mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) > 0 {
		header.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
}
