// Package promise commits the promises of previews: it checks whether the decision that would be
// made now is still the one that was shown, and what must be written to commit it. It makes no
// decisions itself.
package promise

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Kind is the kind of the system records that hold previews.
const Kind api.Kind = "preview"

// BrokenError says that a decision would differ now.
type BrokenError struct {
	Was, Is string
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the fleet changed since the preview: plan again: it showed %s, and the decision would now be %s", e.Was, e.Is)
}

// Names formats names for a message; of very many it shows the first.
func Names(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("[%s and %d more]", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "[" + strings.Join(names, ", ") + "]"
}
