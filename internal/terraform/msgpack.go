package terraform

import (
	"bytes"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// topLevelTexts returns the given string attributes of an object in MessagePack, except those that
// are null. It decodes nothing else.
func topLevelTexts(data []byte, names ...string) (map[string]string, error) {
	decoder := msgpack.NewDecoder(bytes.NewReader(data))
	length, err := decoder.DecodeMapLen()
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(names))
	for range length {
		name, err := decoder.DecodeString()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			if err := decoder.Skip(); err != nil {
				return nil, err
			}
			continue
		}
		var text *string
		if err := decoder.Decode(&text); err != nil {
			return nil, err
		}
		if text != nil {
			texts[name] = *text
		}
	}
	return texts, nil
}
