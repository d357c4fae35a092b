package store

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// Records are too small to be compressed individually: what repeats is common to many records. They
// are therefore compressed with a dictionary of typical values, which is part of the program. Each
// compressed value names its dictionary. A released dictionary must never be changed or removed,
// because stores contain values that need it.

//go:embed dictionary-1.txt
var dictionary1 []byte

// dictionaries are numbered from 1; the last one is used for writing.
var dictionaries = []*s2.Dict{s2.MakeDictManual(dictionary1, 0)}

// maxCompressed is the maximum length of a value that is compressed here, so that a damaged value
// cannot use much memory. Larger statuses are compressed by their codec.
const maxCompressed = compressAbove

// maxPacked is the buffer size that compress needs.
func maxPacked(value []byte) int { return 1 + s2.MaxEncodedLen(len(value)) }

// compress appends the number of a dictionary and the value compressed with it. It returns nil if
// that is not smaller.
func compress(into, value []byte) []byte {
	if len(value) > maxCompressed {
		return nil
	}
	number, start := len(dictionaries), len(into)
	into = append(into, byte(number))
	block := dictionaries[number-1].Encode(into[len(into):cap(into)], value)
	if 1+len(block) >= len(value) {
		return nil
	}
	return into[:start+1+len(block)]
}

var errTooLong = errors.New("it is longer than any value")

// decompress is the inverse of compress. The value is in the memory of room if it is large enough.
func decompress(room, packed []byte) ([]byte, error) {
	if len(packed) == 0 || packed[0] == 0 || int(packed[0]) > len(dictionaries) {
		return nil, fmt.Errorf("this program does not know how it is compressed: use a newer program")
	}
	block := packed[1:]
	if n, err := s2.DecodedLen(block); err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	} else if n > maxCompressed {
		return nil, errTooLong
	}
	value, err := dictionaries[packed[0]-1].Decode(room[:cap(room)], block)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return value, nil
}
