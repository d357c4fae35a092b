package collect

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// leastConcealed is the minimum length of a part of a secret that is looked for: shorter ones occur
// in any text.
const leastConcealed = 4

// conceal removes the secrets of a provider from errors, which are stored and shown: a server, or a
// proxy in front of it, may repeat what it rejects.
func conceal(provider *api.MetricsProvider, readings map[string]source.Reading, err error) (map[string]source.Reading, error) {
	replacer := concealer(provider)
	if replacer == nil {
		return readings, err
	}
	for query, reading := range readings {
		if reading.Err != nil {
			reading.Err = concealed(replacer, reading.Err)
			readings[query] = reading
		}
	}
	if err != nil {
		err = concealed(replacer, err)
	}
	return readings, err
}

// concealed returns an error with the same reason.
func concealed(replacer *strings.Replacer, err error) error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return &source.Error{Reason: e.Reason, Message: replacer.Replace(e.Message), Detail: replacer.Replace(e.Detail)}
	}
	return errors.New(replacer.Replace(err.Error()))
}

// concealer returns a replacer for the secrets of a provider, or nil if there are none. A secret
// may be sent in another form, and be repeated in part: "Bearer …", "user:…".
func concealer(provider *api.MetricsProvider) *strings.Replacer {
	if provider == nil {
		return nil
	}
	var forms []string
	for _, secret := range provider.Secrets() {
		text := secret.Reveal()
		forms = append(forms, text, base64.StdEncoding.EncodeToString([]byte(text)))
		forms = append(forms, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ':' })...)
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return len(form) < leastConcealed })
	// Longest first: if a secret contains another one, nothing of it may remain.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, "(secret)")
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...)
}
