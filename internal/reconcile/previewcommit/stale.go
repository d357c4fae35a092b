// Package previewcommit commits previews: it checks whether the decision that would be
// made now is still the one that was shown, and what must be written to commit it. It makes no
// decisions itself.
package previewcommit

import (
	"fmt"
	"strings"
)

// StalePreviewError says that a decision would differ now.
type StalePreviewError struct {
	Was, Is string
}

// Error implements error.
func (e *StalePreviewError) Error() string {
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
