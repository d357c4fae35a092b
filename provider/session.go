package provider

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// session is what resources and data sources of one configured provider share.
type session struct {
	client *client.Client
	// namespace is that of placements that name none.
	namespace string
	// check says that the server is asked for before anything is done with it.
	check bool
	// warn says that a refresh warns of what it finds unsatisfied.
	warn        bool
	unsatisfied *unsatisfied
	changes     changes
	lists       *listSnapshots
	// scores are those of clusters that are being replaced.
	scores replacedScores
	// told is set when somebody has reported that the server is lost, and failing when
	// a resource has, or is about to, so that the run fails: of a data source in a check
	// block Terraform only warns.
	told, failing atomic.Bool
	// pending says why there is no client yet: the configuration is not known.
	pending error
}

// sessionOf takes the session out of what the framework hands to Configure,
// which is nil while Terraform only validates.
func sessionOf(data any, diags *diag.Diagnostics) *session {
	if data == nil {
		return nil
	}
	s, ok := data.(*session)
	if !ok {
		diags.AddError("The provider is wired wrongly", fmt.Sprintf("Expected its session, got %T. This is a bug in the provider.", data))
	}
	return s
}

// connected reports that there is a client to work with, and adds the reason
// where there is none.
func (s *session) connected(diags *diag.Diagnostics) bool {
	switch {
	case s == nil:
		diags.AddError("The provider is not configured", "Terraform asked for an object before it configured the provider. This is a bug in the provider.")
	case s.pending != nil:
		diags.AddError("The provider is not configured yet", sentence(s.pending.Error()))
	default:
		return true
	}
	return false
}

// put writes an object. Every write may move decisions, so no list read before
// it is used after it.
func (s *session) put(ctx context.Context, object api.Object, opts client.PutOptions) (api.Object, error) {
	defer s.lists.forget()
	defer s.changes.begin(object.ObjectKind())()
	stored, err := s.client.Put(ctx, object, opts)
	if key := api.KeyOf(object); err == nil && opts.Create && key.Kind == api.KindCluster {
		s.scores.restore(ctx, s.client, key.Name)
	}
	return stored, err
}

// confirmTime is how long a write without an answer is looked for.
const confirmTime = 5 * time.Second

// written looks for an object whose write got no answer. ctx may have ended.
func (s *session) written(ctx context.Context, object api.Object) (api.Object, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	return s.client.Written(ctx, object)
}

// delete removes an object; one that is gone already is removed.
func (s *session) delete(ctx context.Context, key api.Key) error {
	defer s.lists.forget()
	defer s.changes.begin(key.Kind)()
	if key.Kind == api.KindCluster {
		s.scores.remember(ctx, s.client, key.Name)
	}
	if err := s.client.Delete(ctx, key); err != nil && !client.IsNotFound(err) {
		return err
	}
	return nil
}
