package install

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

const (
	probeNamespace = metav1.NamespaceDefault
	probeName      = "scheduler-webhook-probe"
)

// probe checks whether the API server reaches the webhook and gets its response. Nothing is stored.
// On success, the state is ready.
func (i *Installer) probe(ctx context.Context) State {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand crashes the program instead
	nonce := hex.EncodeToString(random[:])
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := i.options.Client.CoreV1().ConfigMaps(probeNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: probeNamespace, Labels: map[string]string{spot.LabelProbe: nonce}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	if err != nil {
		return i.probeFailed(&callError{"create", "configmaps", err})
	}
	switch answer.Annotations[spot.LabelProbe] {
	case nonce:
		return State{Ready: true, Reason: reasonInstalled, Message: "the API server reaches the webhook at " + i.host}
	case "":
		if i.options.Now().Sub(i.writtenAt) < settleTime {
			return State{Reason: reasonInstalling, Message: "the API server does not call the webhook yet at " + i.host}
		}
		return State{Reason: reasonNotReached, Message: "the API server did not call the webhook at " + i.host + " for a test ConfigMap"}
	}
	return State{Reason: reasonNotReached, Message: "the webhook at " + i.host + " returned an unexpected answer: does it belong to another server?"}
}

// probeFailed says why the probe failed.
func (i *Installer) probeFailed(err error) State {
	if apierrors.IsAlreadyExists(err) {
		return State{Reason: reasonProbeRejected, Message: "there is a ConfigMap " + probeName + " in namespace " + probeNamespace +
			", which is not used: delete it, because the test of the webhook needs its name"}
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && strings.Contains(status.ErrStatus.Message, `"`+probeWebhook+`"`) {
		seen := status.ErrStatus.Message
		if _, cause, ok := strings.Cut(seen, "failed to call webhook: "); ok {
			seen = cause
		}
		// The message already starts with the address, without its secret part.
		if method, rest, ok := strings.Cut(seen, `": `); ok && strings.HasPrefix(method, `Post "`) {
			seen = rest
		}
		return State{Reason: reasonNotReached, Message: "the API server cannot reach the webhook at " + i.host, Detail: i.clean(seen)}
	}
	return i.stateOf(err, reasonProbeRejected)
}
