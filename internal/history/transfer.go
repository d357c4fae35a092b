package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Part returns the lines of the log after a revision, up to another one or as many as are sent at
// once, with a mark at their end. It is empty if the log ends before. Where this log has a gap, so has the part.
func (l *Log) Part(after, until int64) []byte {
	l.mu.RLock()
	files, through := slices.Clone(l.files), l.through
	l.mu.RUnlock()
	var text bytes.Buffer
	add := func(lines ...line) {
		encoded, _ := encodeLines(lines) // texts and numbers
		text.Write(encoded)
	}
	at := after
	for n, f := range files {
		end := through
		if n+1 < len(files) {
			end = files[n+1].first - 1
		}
		if end <= after {
			continue
		}
		if f.first > at+1 {
			add(line{Gap: &api.HistoryGap{After: at, Until: min(f.first-1, until), Reason: "no server has kept it"}})
		}
		lines, err := l.read(f)
		if err != nil {
			add(line{Gap: &api.HistoryGap{After: max(after, f.first-1), Until: min(end, until), Reason: fmt.Sprintf("the file %s of another server is damaged", f.name())}})
		}
		for _, line := range lines {
			if l, _ := decode(line); l.within(after, until) {
				text.Write(append(line, '\n'))
			}
		}
		if at = min(end, until); at == until || int64(text.Len()) >= l.maxFile {
			break
		}
	}
	if at == after {
		return nil
	}
	add(line{Through: at})
	return text.Bytes()
}

// within reports whether a line is an entry or a gap after a revision, up to another.
func (l *line) within(after, until int64) bool {
	switch {
	case l.Entry != nil:
		return l.Entry.Revision > after && l.Entry.Revision <= until
	case l.Gap != nil:
		return l.Gap.Until > after && l.Gap.After < until
	}
	return false
}

// part is what another server has sent.
type part struct {
	lines   []line
	through int64
	whole   bool // without gaps
}

// parsePart returns the part in a text, which must be of a range.
func parsePart(text []byte, after, until int64) (p part, err error) {
	p.whole = true
	at := after
	for text := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return part{}, fmt.Errorf("a line of another server: %w", err)
		}
		switch {
		case p.through > 0:
			return part{}, errors.New("another server has sent lines behind the last one")
		case l.Through > 0:
			p.through = l.Through
			continue
		case !l.within(after, until) || l.Entry != nil && l.Entry.Revision < at:
			return part{}, errors.New("another server has sent other lines than it was asked for")
		case l.Gap != nil:
			l.Gap.After, l.Gap.Until = max(l.Gap.After, after), min(l.Gap.Until, until)
			p.whole = false
		default:
			at = l.Entry.Revision
		}
		p.lines = append(p.lines, l)
	}
	if p.through <= after || p.through > until || p.through < at {
		return part{}, errors.New("another server does not have it")
	}
	return p, nil
}

// take writes what other servers have of the revisions up to one. It returns without error when none
// has more.
func (l *Log) take(ctx context.Context, until int64) error {
	if l.options.Others == nil {
		return nil
	}
	for after := l.complete(); after < until; after = l.complete() {
		var best part
		for text := range l.options.Others(ctx, after, until) {
			p, err := parsePart(text, after, until)
			if err != nil {
				l.options.Logger.Warn("another server's history of decisions cannot be used", "error", err)
				continue
			}
			if best.through == 0 || p.whole && !best.whole {
				best = p
			}
			if best.whole {
				break
			}
		}
		if best.through == 0 {
			return ctx.Err()
		}
		if err := l.append(best.lines, best.through); err != nil {
			return err
		}
	}
	return nil
}
