package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// KindPreview is the kind of the system records that hold previews.
const KindPreview api.Kind = "preview"

// maxPreviewBytes limits the total size of previews; Options.MaxPreviews limits their number.
const maxPreviewBytes = 256 << 20

// previewedKinds are the kinds whose decisions can be previewed.
var previewedKinds = []api.Kind{api.KindPlacement, api.KindWorkload, api.KindPropagationPolicy}

// preview is the stored form of a previewed decision.
type preview struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
	CreatedAt time.Time `json:"created_at"`
	Summary   string    `json:"summary,omitempty"`
	// Current is the current decision of the object, CurrentReplicas its replicas.
	Current         []string         `json:"current,omitempty"`
	CurrentReplicas map[string]int64 `json:"current_replicas,omitempty"`
	// Bindings are the results for the workloads of a policy, by namespace and name.
	Bindings []previewcommit.Binding `json:"bindings,omitempty"`
	// Object is the object as it would be stored, with the decision as its status. Decisions depend
	// on its UID.
	Object   api.Object      `json:"-"`
	Kind     api.Kind        `json:"kind"`
	Document json.RawMessage `json:"object"`
	// OwnUID says that the UID was generated for this preview, and that no object has it yet: the
	// object that commits the preview gets it.
	OwnUID bool `json:"own_uid,omitempty"`
}

// shown returns the preview for a reader.
func (p *preview) shown(rights auth.Rights, who auth.Identity) *api.Preview {
	key := api.KeyOf(p.Object)
	shown := &api.Preview{
		ID: p.ID, Token: p.ID, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
		CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, Summary: p.Summary,
		Current: present(p.Current), Clusters: []string{}, Decisions: []api.Decision{},
	}
	shown.Labels = p.Object.Meta().Labels
	shown.Spec, _ = json.Marshal(p.Object.SpecPart()) // was stored as JSON
	switch object := p.Object.(type) {
	case *api.Placement:
		status := &object.Status
		shown.Clusters, shown.Decisions, shown.Groups = present(status.Clusters), present(rights.VisibleScores(who, object)), status.DecisionGroups
		shown.Satisfied = holds(status.Conditions, api.ConditionSatisfied)
	case *api.Workload:
		status := &object.Status
		shown.Clusters, shown.CurrentReplicas, shown.Replicas = status.Names(), p.CurrentReplicas, status.ReplicasByCluster()
		shown.Evicting = status.Evicting()
		shown.Policy, shown.ObservedAffinity = status.Policy, status.ObservedAffinity
		shown.Satisfied = holds(status.Conditions, api.ConditionScheduled)
	case *api.PropagationPolicy:
		shown.Bindings, shown.Satisfied, shown.Summary = previewcommit.Shown(p.Bindings, who.SeesWorkload)
	}
	return shown
}

// holds reports whether a condition is true.
func holds(conditions []api.Condition, conditionType string) bool {
	condition := api.FindCondition(conditions, conditionType)
	return condition != nil && condition.Status == api.ConditionTrue
}

// present returns a list that is not nil, so that it is shown even if it is empty.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func previewKey(id string) api.Key { return api.Key{Kind: KindPreview, Name: id} }

// The ID of a preview begins with its creation time, so that the records are in expiry order; the
// rest cannot be guessed.
const (
	previewMomentDigits = 12
	previewIDDigits     = previewMomentDigits + 2*16
)

func newPreviewID(now time.Time) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand crashes the program instead
	return fmt.Sprintf("%0*x", previewMomentDigits, max(now.UnixMilli(), 0)) + hex.EncodeToString(random[:])
}

// previewExpiry returns when the preview with an ID expires. ok is false for an invalid ID.
func previewExpiry(id string) (at time.Time, ok bool) {
	if _, err := hex.DecodeString(id); err != nil || len(id) != previewIDDigits || strings.ToLower(id) != id {
		return time.Time{}, false
	}
	moment, err := strconv.ParseInt(id[:previewMomentDigits], 16, 64)
	return time.UnixMilli(moment).Add(api.PreviewLifetime).UTC(), err == nil
}

// keepPreview stores a preview and sets its ID.
func (ps *previews) keepPreview(ctx context.Context, p *preview) error {
	now := ps.now().UTC()
	ps.dropExpiredPreviews(ctx, now, previewBatch)
	if err := ps.roomForPreview(now); err != nil {
		return err
	}
	p.ID = newPreviewID(now)
	p.CreatedAt = now
	p.ExpiresAt, _ = previewExpiry(p.ID)
	value, err := encodePreview(p)
	if err != nil {
		return err
	}
	_, err = ps.store.Commit(ctx, store.Write{Key: previewKey(p.ID), Part: store.Spec, Value: value, Expect: 0})
	if errors.Is(err, store.ErrInvalid) {
		return problem.New(api.ProblemTooLarge,
			"the preview of %s has %d KiB, more than the store can hold: write it without a preview", api.KeyOf(p.Object), len(value)>>10)
	}
	if err != nil {
		return fmt.Errorf("store the preview of %s: %w", api.KeyOf(p.Object), err)
	}
	return nil
}

// roomForPreview returns an error if too many previews are kept.
func (ps *previews) roomForPreview(now time.Time) error {
	count, size := 0, 0
	var oldest time.Time
	for record := range ps.fleet.Snapshot().AllSystem(KindPreview) {
		expiry, _ := previewExpiry(record.Key.Name)
		if !now.Before(expiry) {
			continue
		}
		if count == 0 {
			oldest = expiry
		}
		count++
		size += len(record.Value)
	}
	if count < ps.maxPreviews && size < maxPreviewBytes {
		return nil
	}
	return problem.New(api.ProblemTooManyRequests,
		"%d previews of together %d MiB are kept, and the limits are %d and %d MiB: each is removed %s after it was made, the next at %s",
		count, size>>20, ps.maxPreviews, maxPreviewBytes>>20, api.PreviewLifetime, oldest.Format(time.RFC3339))
}

// kept reports whether a preview with this ID would not have expired.
func (ps *previews) kept(id string) bool {
	expiry, ok := previewExpiry(id)
	return ok && ps.now().Before(expiry)
}

// pictured returns a preview from the fleet, or nil.
func (ps *previews) pictured(id string) (*preview, error) {
	record, ok := ps.fleet.Snapshot().System(previewKey(id))
	if !ok || !ps.kept(id) {
		return nil, nil
	}
	return decodePreview(record.Value)
}

// readPreview reads a preview from the store instead of the fleet; nil if there is none or it has
// expired.
func (ps *previews) readPreview(ctx context.Context, id string) (p *preview, revision int64, err error) {
	if !ps.kept(id) {
		return nil, 0, nil
	}
	record, _, err := ps.store.Read(ctx, previewKey(id))
	if err != nil {
		return nil, 0, fmt.Errorf("read a preview: %w", err)
	}
	if record == nil {
		return nil, 0, nil
	}
	p, err = decodePreview(record.Value)
	return p, record.ModRevision, err
}

// encodePreview compresses the preview: a decision for thousands of clusters is a megabyte of JSON.
func encodePreview(p *preview) ([]byte, error) {
	record := *p
	record.Kind = p.Object.ObjectKind()
	var packed bytes.Buffer
	var err error
	if record.Document, err = json.Marshal(p.Object); err == nil {
		w := gzip.NewWriter(&packed)
		err = errors.Join(json.NewEncoder(w).Encode(record), w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encode the preview of %s: %w", api.KeyOf(p.Object), err)
	}
	return packed.Bytes(), nil
}

// maxPreviewSize limits the size of a decompressed preview.
const maxPreviewSize = 256 << 20

func decodePreview(value []byte) (*preview, error) {
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, fmt.Errorf("decode a preview: %w: %w", store.ErrDamaged, err)
	}
	var p preview
	if err := json.NewDecoder(io.LimitReader(r, maxPreviewSize)).Decode(&p); err != nil {
		return nil, fmt.Errorf("decode a preview: %w: %w", store.ErrDamaged, err)
	}
	info, ok := api.LookupKind(p.Kind)
	if !ok {
		return nil, fmt.Errorf("decode a preview: %w: unknown kind %q", store.ErrDamaged, string(p.Kind))
	}
	p.Object = info.New()
	if err := json.Unmarshal(p.Document, p.Object); err != nil {
		return nil, fmt.Errorf("decode the object of a preview: %w: %w", store.ErrDamaged, err)
	}
	p.Document = nil
	return &p, nil
}

// previewBatch is how many previews one transaction deletes.
const previewBatch = 50

// previewSweep is the interval between deletions of expired previews.
const previewSweep = 10 * time.Minute

// sweep deletes expired previews until ctx is done.
func (ps *previews) sweep(ctx context.Context) {
	ticker := time.NewTicker(previewSweep)
	defer ticker.Stop()
	for {
		ps.dropExpiredPreviews(ctx, ps.now(), ps.maxPreviews)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// dropExpiredPreviews deletes up to limit expired previews, the oldest first. Failures are retried
// later.
func (ps *previews) dropExpiredPreviews(ctx context.Context, now time.Time, limit int) {
	var expired []store.Write
	for record := range ps.fleet.Snapshot().AllSystem(KindPreview) {
		if expiry, ok := previewExpiry(record.Key.Name); ok && now.Before(expiry) || len(expired) == limit {
			break
		}
		expired = append(expired, store.Write{Key: record.Key, Part: store.Spec, Expect: store.Any})
	}
	for len(expired) > 0 {
		n := min(previewBatch, len(expired))
		if _, err := ps.store.Commit(ctx, expired[:n]...); err != nil {
			if ctx.Err() == nil {
				ps.logger.LogAttrs(ctx, slog.LevelWarn, "expired previews could not be removed; it is tried again", slog.Int("previews", len(expired)), slog.Any("error", err))
			}
			return
		}
		expired = expired[n:]
	}
}
