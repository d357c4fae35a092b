package httpapi

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// withDetails is an object with the words of other servers where the reader may know
// them, without them elsewhere. They may be anything that answers at the address that
// somebody wrote; so they are for those who may write that address. A metric is
// where its provider is, and who may write the one may write the other.
func (s *Server) withDetails(who identity, object api.Object) api.Object {
	if !api.HasDetails(object) || s.mayWrite(who, object) == nil {
		return object
	}
	return api.WithoutDetails(object)
}
