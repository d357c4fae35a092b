package jsontext

import "unicode/utf8"

// plain are the bytes that stand for themselves in a string.
var plain = func() (plain [utf8.RuneSelf]bool) {
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		plain[b] = b != '"' && b != '\\'
	}
	return plain
}()

const hexDigits = "0123456789abcdef"

// AppendString appends a string in quotes.
func AppendString(into []byte, s string) []byte {
	into = append(into, '"')
	start := 0
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			if !plain[b] {
				into = appendEscaped(append(into, s[start:i]...), b)
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			into = append(append(into, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028', r == '\u2029': // JavaScript takes them as ends of lines
			into = append(append(into, s[start:i]...), `\u202`...)
			into = append(into, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(append(into, s[start:]...), '"')
}

func appendEscaped(into []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(into, '\\', b)
	case '\b':
		return append(into, `\b`...)
	case '\f':
		return append(into, `\f`...)
	case '\n':
		return append(into, `\n`...)
	case '\r':
		return append(into, `\r`...)
	case '\t':
		return append(into, `\t`...)
	}
	return append(into, `\u00`[0], `\u00`[1], `\u00`[2], `\u00`[3], hexDigits[b>>4], hexDigits[b&0xf])
}
