package kubernetes

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// answerOf interprets a probe of readyz. A proxy in front of a failed API server, and an API server
// that rejects the credentials, count as no response.
func answerOf(code int, err error) (answer health.Answer, reason, message string) {
	switch {
	case errors.Is(err, kube.ErrKubeconfig):
		return health.AnswerNone, api.ReasonInvalidKubeconfig, err.Error()
	case err != nil:
		return health.AnswerNone, api.ReasonUnreachable, "the API server cannot be reached: " + outbound.Describe(err)
	case code == http.StatusUnauthorized:
		return health.AnswerNone, api.ReasonUnauthorized, "the API server does not accept the credentials (401)"
	case code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return health.AnswerNone, api.ReasonUnreachable, fmt.Sprintf("the API server cannot be reached (%d)", code)
	case code == http.StatusForbidden, code == http.StatusNotFound:
		// A response that forbids access, or from a server without readyz, is still a response.
		return health.AnswerReady, "", "the API server responds"
	case code < 200 || code > 299:
		return health.AnswerNotReady, "", fmt.Sprintf("the API server says that it is not ready (%d)", code)
	}
	return health.AnswerReady, "", "the API server is ready"
}

// unanswered returns why a cluster is not queried after a probe, or nil if it responds.
func unanswered(code int, err error) error {
	switch answer, _, _ := answerOf(code, err); {
	case answer != health.AnswerNone:
		return nil
	case err != nil:
		return err
	}
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, false)
}
