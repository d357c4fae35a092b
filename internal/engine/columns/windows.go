package columns

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/window"
)

// moveWindows are the move windows of a fleet, and what they are compiled to.
type moveWindows struct {
	objects  map[api.Key]*api.MoveWindow
	compiled *window.Windows
}

// MoveWindows returns the move windows, by key. They must not be changed.
func (f *Fleet) MoveWindows() map[api.Key]*api.MoveWindow { return f.windows.objects }

// Windows returns when decisions may move.
func (f *Fleet) Windows() *window.Windows { return f.windows.compiled }

// changeWindows updates the move windows.
func (b *edit) changeWindows(changes map[api.Key]*api.MoveWindow) {
	if len(changes) == 0 {
		return
	}
	objects := maps.Clone(b.windows.objects)
	if objects == nil {
		objects = map[api.Key]*api.MoveWindow{}
	}
	for key, w := range changes {
		if w == nil {
			delete(objects, key)
		} else {
			objects[key] = w
		}
	}
	b.windows = moveWindows{objects, window.Compile(maps.Values(objects))}
	b.delta.Fleet |= MoveWindows
}
