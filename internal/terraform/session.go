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

// Session is what resources and data sources of one configured provider share.
type Session struct {
	client *client.Client
	// namespace is that of objects that name none.
	namespace string
	// warn says that a refresh warns of what it finds unsatisfied.
	warn        bool
	unsatisfied *unsatisfied
	changes     changes
	lists       *listSnapshots
	// replaced are the objects that replaced ones had.
	replaced replacedDependents
	// told is set when somebody has reported that the server is lost, and failing when
	// a resource has, or is about to, so that the run fails: of a data source in a check
	// block Terraform only warns.
	told, failing atomic.Bool
	// build is the version of the provider.
	build        string
	fingerprints sync.Map // of the states of each kind
	// pending says why there is no client yet: the configuration is not known.
	pending error
}

// NewSession returns the session of a configured provider. namespace is that of
// objects that name none, build the version of the provider. With warn, a refresh warns of decisions that do not have
// what they were asked for.
func NewSession(c *client.Client, build, namespace string, warn bool) *Session {
	return &Session{client: c, build: build, namespace: namespace, warn: warn, unsatisfied: newUnsatisfied(), lists: newListSnapshots(c)}
}

// PendingSession returns the session of a provider whose configuration is not known
// yet; pending says what it waits for.
func PendingSession(pending error) *Session { return &Session{pending: pending} }

// Client is the connection to the server.
func (s *Session) Client() *client.Client { return s.client }

// Namespace is the namespace of objects that name none.
func (s *Session) Namespace() string { return s.namespace }

// Pending reports that the configuration is not known yet.
func (s *Session) Pending() bool { return s.pending != nil }

// sessionOf takes the session out of what the framework hands to Configure,
// which is nil while Terraform only validates.
func sessionOf(data any, diags *diag.Diagnostics) *Session {
	if data == nil {
		return nil
	}
	s, ok := data.(*Session)
	if !ok {
		diags.AddError("The provider passed on the wrong data", fmt.Sprintf("Expected a session, got %T. This is a bug in the provider.", data))
	}
	return s
}

// Connected reports that there is a client to work with, and adds the reason
// where there is none.
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

// confirmTime is how long a write without an answer is looked for.
const confirmTime = 5 * time.Second

// written looks for an object whose write got no answer. ctx may have ended.
func (s *Session) written(ctx context.Context, object api.Object) (api.Object, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	return s.client.Written(ctx, object)
}

// NamespacedKey is the key of the object that the arguments of a data source name.
func (s *Session) NamespacedKey(kind api.Kind, arguments map[string]any) api.Key {
	return api.Key{Kind: kind, Namespace: cmp.Or(Argument(arguments, "namespace"), s.namespace), Name: Argument(arguments, "name")}
}

// fingerprint is that of the states which this provider makes of objects of a kind.
func (s *Session) fingerprint(kind api.Kind, t tftypes.Type) string {
	if known, ok := s.fingerprints.Load(kind); ok {
		return known.(string) //nolint:forcetypeassert // nothing else is stored
	}
	sum := sha256.Sum256([]byte(s.build + "\x00" + t.String()))
	fingerprint := base64.RawURLEncoding.EncodeToString(sum[:6])
	s.fingerprints.Store(kind, fingerprint)
	return fingerprint
}
