package hub

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

// Describe says what could not be done to an object of the hub, and why. name is how messages name the
// object.
func Describe(verb, name string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s: the credentials may not do that (403)", verb, name)
	}
	_, message := kube.Describe(name, err)
	return fmt.Errorf("%s %s", verb, message)
}
