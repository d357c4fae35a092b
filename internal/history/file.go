package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	openSuffix   = ".ndjson"
	sealedSuffix = ".ndjson.zst"

	// maxFile is how large the file may be that lines are appended to. A file is read as a whole.
	maxFile = 4 << 20
	// maxDecoded bounds what a file takes in memory: one revision may be larger than maxFile.
	maxDecoded = 512 << 20
)

// line is one line of a file: one of its fields is set.
type line struct {
	Entry *api.HistoryEntry `json:"entry,omitempty"`
	Gap   *api.HistoryGap   `json:"gap,omitempty"`
	// Through is the revision up to which the log is complete. What follows the last mark was not
	// written to its end.
	Through int64 `json:"through,omitempty"`
}

// file is a file of the log. Its name says from when on it has lines.
type file struct {
	first  int64     // revision
	since  time.Time // in whole seconds
	sealed bool      // compressed
	size   int64     // in bytes
}

func (f file) name() string {
	suffix := openSuffix
	if f.sealed {
		suffix = sealedSuffix
	}
	return fmt.Sprintf("%020d-%d%s", f.first, f.since.Unix(), suffix)
}

// parseName is the inverse of name; false for other files.
func parseName(name string) (f file, ok bool) {
	stem, open := strings.CutSuffix(name, openSuffix)
	if !open {
		if stem, f.sealed = strings.CutSuffix(name, sealedSuffix); !f.sealed {
			return file{}, false
		}
	}
	revision, seconds, _ := strings.Cut(stem, "-")
	first, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return file{}, false
	}
	since, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return file{}, false
	}
	f.first, f.since = first, time.Unix(since, 0).UTC()
	return f, f.name() == name
}

// encodeLines returns lines as they are in a file.
func encodeLines(lines []line) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return nil, fmt.Errorf("encode the history: %w", err)
		}
	}
	return text.Bytes(), nil
}

// complete returns the part of a file that ends with a mark, and the revision of that. Lines that
// cannot be read end it.
func complete(text []byte) (size int, through int64) {
	for at := 0; ; {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return size, through
		}
		var l line
		if json.Unmarshal(text[at:at+end], &l) != nil || l == (line{}) {
			return size, through
		}
		at += end + 1
		if l.Through > 0 {
			size, through = at, l.Through
		}
	}
}

// compressed returns a file as it is sealed.
func compressed(text []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxFile))
	if err != nil {
		return nil, fmt.Errorf("compress the history: %w", err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(text, nil), nil
}

// readFile returns the lines of a file, not decoded. Of a file that is not sealed, it reads as much
// as is complete.
func readFile(path string, f file) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	if f.sealed {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded))
		if err != nil {
			return nil, fmt.Errorf("decompress the history: %w", err)
		}
		defer decoder.Close()
		if text, err = decoder.DecodeAll(text, nil); err != nil {
			return nil, fmt.Errorf("decompress %s: %w", path, err)
		}
	} else {
		text = text[:min(f.size, int64(len(text)))]
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'}), nil
}
