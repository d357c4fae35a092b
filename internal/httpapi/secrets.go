package httpapi

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// keepSecrets adds the secrets that are kept to the next version of an object, and validates it
// again if there are any.
func keepSecrets(next api.Object, current *stored, document []byte) error {
	var before api.Object
	if current != nil {
		before = current.object
	}
	if len(next.Secrets()) == 0 && (before == nil || len(before.Secrets()) == 0) {
		return nil
	}
	given, err := api.DecodeDocument(document)
	if err != nil {
		return err // impossible: it has been decoded before
	}
	errs := api.KeepSecrets(next, before, given)
	return errs.And(next.Validate()).Err()
}
