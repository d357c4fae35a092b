package history

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// tags are what a record is found by: the members of its JSON that this package knows.
type tags struct {
	Time   time.Time `json:"time"`
	Object struct {
		Kind      api.Kind `json:"kind"`
		Namespace string   `json:"namespace"`
		Name      string   `json:"name"`
	} `json:"object"`
	Moved []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"moved"`
	Cause struct {
		Type   string `json:"type"`
		Object struct {
			Kind api.Kind `json:"kind"`
			Name string   `json:"name"`
		} `json:"object"`
	} `json:"cause"`
	NoticesOnly bool `json:"notices_only"`
}

func decodeTags(record []byte) (tags, error) {
	var t tags
	if err := jsonv2.Unmarshal(record, &t); err != nil {
		return t, fmt.Errorf("%w: a record of the history: %w", store.ErrDamaged, err)
	}
	return t, nil
}

// words are what the filter of a chunk knows of a record.
func (t *tags) words() []string {
	words := []string{
		kindWord(t.Object.Kind), namespaceWord(t.Object.Namespace), nameWord(t.Object.Name), causeWord(t.Cause.Type),
	}
	for _, cluster := range t.clusters() {
		words = append(words, clusterWord(cluster))
	}
	return words
}

// clusters are those that something moved from or to, and the one that caused it.
func (t *tags) clusters() []string {
	var clusters []string
	for _, move := range t.Moved {
		for _, cluster := range []string{move.From, move.To} {
			if cluster != "" {
				clusters = append(clusters, cluster)
			}
		}
	}
	if t.Cause.Object.Kind == api.KindCluster {
		clusters = append(clusters, t.Cause.Object.Name)
	}
	return clusters
}

func kindWord(kind api.Kind) string         { return "kind " + string(kind) }
func namespaceWord(namespace string) string { return "namespace " + namespace }
func nameWord(name string) string           { return "name " + name }
func causeWord(cause string) string         { return "cause " + cause }
func clusterWord(cluster string) string     { return "cluster " + cluster }

// words are those that every record has that the query selects.
func (q *Query) words() []string {
	var words []string
	if q.Kind != "" {
		words = append(words, kindWord(q.Kind))
	}
	if q.Namespace != "" {
		words = append(words, namespaceWord(q.Namespace))
	}
	if q.Name != "" {
		words = append(words, nameWord(q.Name))
	}
	if q.Cause != "" {
		words = append(words, causeWord(q.Cause))
	}
	if q.Cluster != "" {
		words = append(words, clusterWord(q.Cluster))
	}
	return words
}

// inChunk reports whether a chunk may have records that the query selects.
func (q *Query) inChunk(i *index) bool {
	if !q.Since.IsZero() && i.Until.Before(q.Since) || !q.Until.IsZero() && !i.Since.Before(q.Until) {
		return false
	}
	for _, word := range q.words() {
		if !i.words.mayHave(word) {
			return false
		}
	}
	return true
}

// selects reports whether the query selects a record.
func (q *Query) selects(record []byte) bool {
	// Names have no characters that JSON escapes, so most others are ruled out without decoding them.
	for _, name := range []string{q.Name, q.Cluster, q.Cause} {
		if name != "" && !bytes.Contains(record, []byte(`"`+name+`"`)) {
			return false
		}
	}
	t, err := decodeTags(record)
	if err != nil {
		return false
	}
	switch {
	case t.NoticesOnly && !q.Notices:
		return false
	case q.Kind != "" && t.Object.Kind != q.Kind, q.Namespace != "" && t.Object.Namespace != q.Namespace,
		q.Name != "" && t.Object.Name != q.Name, q.Cause != "" && t.Cause.Type != q.Cause,
		!q.Since.IsZero() && t.Time.Before(q.Since), !q.Until.IsZero() && !t.Time.Before(q.Until):
		return false
	case q.Visible != nil && !q.Visible(api.Key{Kind: t.Object.Kind, Namespace: t.Object.Namespace, Name: t.Object.Name}):
		return false
	}
	return q.Cluster == "" || slices.Contains(t.clusters(), q.Cluster)
}
