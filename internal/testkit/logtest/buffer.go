// Package logtest is test code: a log that is read while it is written.
package logtest

import (
	"strings"
	"sync"
)

// Buffer collects what goroutines or a process write. The zero value is empty.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *Buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Contains reports whether a text has been written.
func (b *Buffer) Contains(text string) bool { return strings.Contains(b.String(), text) }

// Tail returns the end of what has been written so far.
func (b *Buffer) Tail() string {
	text := b.String()
	return text[max(0, len(text)-4000):]
}
