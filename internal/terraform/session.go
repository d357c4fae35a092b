package terraform

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Session is shared by the resources and data sources of one configured provider.
type Session struct {
	client *client.Client
	// namespace is the default namespace of objects.
	namespace string
	// warn says whether a refresh warns about unsatisfied decisions.
	warn        bool
	unsatisfied *unsatisfied
	changes     changes
	lists       *listSnapshots
	// replaced holds the dependents of replaced objects.
	replaced replacedDependents
	// told is set when somebody has reported that the server is lost. failing is set when a
	// resource has reported it, or is about to, so that the run fails: errors of a data source in a
	// check block are only warnings.
	told, failing atomic.Bool
	// causes are the causes of errors and warnings that were explained.
	causes    causes
	deletions deletions
	planned   plannedWrites
	// fields is how the server's fields differ from the provider's; nil = they have not been compared.
	fields atomic.Pointer[serverFields]
	// build is the version of the provider.
	build        string
	fingerprints sync.Map // of the states of each kind
	// pending is the reason why there is no client yet: the configuration is unknown.
	pending error
}

// NewSession returns the session of a configured provider. namespace is the default namespace,
// build the version of the provider. With warn, a refresh warns about decisions that are not
// satisfied.
func NewSession(c *client.Client, build, namespace string, warn bool) *Session {
	return &Session{client: c, build: build, namespace: namespace, warn: warn, unsatisfied: newUnsatisfied(), lists: newListSnapshots(c)}
}

// PendingSession returns the session of a provider whose configuration is unknown; pending is the
// reason.
func PendingSession(pending error) *Session { return &Session{pending: pending} }

// Client returns the client of the server.
func (s *Session) Client() *client.Client { return s.client }

// Namespace returns the default namespace.
func (s *Session) Namespace() string { return s.namespace }

// Pending reports whether the configuration is unknown.
func (s *Session) Pending() bool { return s.pending != nil }

// SessionOf returns the session that the framework passes to Configure, or nil while Terraform only
// validates.
func SessionOf(data any, diags *diag.Diagnostics) *Session {
	if data == nil {
		return nil
	}
	s, ok := data.(*Session)
	if !ok {
		diags.AddError("The provider passed on the wrong data", fmt.Sprintf("Expected a session, got %T. This is a bug in the provider.", data))
	}
	return s
}

// Connected reports whether there is a client, and adds the reason if there is none.
func (s *Session) Connected(diags *diag.Diagnostics) bool {
	switch {
	case s == nil:
		diags.AddError("The provider is not configured", "Terraform asked for an object before it configured the provider. This is a bug in the provider.")
	case s.pending != nil:
		diags.AddError("The provider is not configured yet", Sentence(s.pending.Error()))
	default:
		return true
	}
	return false
}

// confirmTime is how long to check whether a write without a response succeeded.
const confirmTime = 5 * time.Second

// written looks for an object whose write got no response. ctx may be done.
func (s *Session) written(ctx context.Context, object api.Object) (api.Object, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	return s.client.Written(ctx, object)
}

// NamespacedKey returns the key of the object that the arguments of a data source identify.
func (s *Session) NamespacedKey(kind api.Kind, arguments map[string]any) api.Key {
	return api.Key{Kind: kind, Namespace: cmp.Or(Argument(arguments, "namespace"), s.namespace), Name: Argument(arguments, "name")}
}

// fingerprint identifies how this provider version turns objects of a kind into states.
func (s *Session) fingerprint(kind api.Kind, t tftypes.Type) string {
	if known, ok := s.fingerprints.Load(kind); ok {
		return known.(string) //nolint:forcetypeassert // nothing else is stored
	}
	sum := sha256.Sum256([]byte(s.build + "\x00" + t.String()))
	fingerprint := base64.RawURLEncoding.EncodeToString(sum[:6])
	s.fingerprints.Store(kind, fingerprint)
	return fingerprint
}
