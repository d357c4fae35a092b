package expression

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

var addressType = cel.OpaqueType("kubernetes.URL")

// parseAddress parses an absolute URL or an absolute path. The first parser is strict; only the
// second one handles fragments.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.ParseRequestURI(text)
	if err == nil {
		u, err = url.Parse(text)
	}
	if err != nil {
		if cause := (*url.Error)(nil); errors.As(err, &cause) {
			err = cause.Err // the rest repeats the text, whatever its length
		}
		return nil, fmt.Errorf("%s is not a URL such as \"https://example.com/path\": %w", quote(text), err)
	}
	return u, nil
}

// addressFunctions declares Kubernetes' functions for URLs.
func addressFunctions() cel.EnvOption {
	read := func(name, id string, result *cel.Type, answer func(u *url.URL) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(id, []*cel.Type{addressType}, result,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				return ofOne(v, func(a address) ref.Val { return answer(a.URL) })
			})))
	}
	text := func(name, id string, part func(u *url.URL) string) cel.EnvOption {
		return read(name, id, cel.StringType, func(u *url.URL) ref.Val { return types.String(part(u)) })
	}
	return several(
		cel.Function("url", cel.Overload("string_to_url", []*cel.Type{cel.StringType}, addressType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				return ofOne(v, func(text types.String) ref.Val {
					u, err := parseAddress(string(text))
					if err != nil {
						return types.WrapErr(err)
					}
					return address{u}
				})
			}))),
		cel.Function("isURL", cel.Overload("is_url_string", []*cel.Type{cel.StringType}, cel.BoolType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				return ofOne(v, func(text types.String) ref.Val {
					_, err := parseAddress(string(text))
					return types.Bool(err == nil)
				})
			}))),
		text("getScheme", "url_get_scheme", func(u *url.URL) string { return u.Scheme }),
		text("getHost", "url_get_host", func(u *url.URL) string { return u.Host }),
		text("getHostname", "url_get_hostname", (*url.URL).Hostname),
		text("getPort", "url_get_port", (*url.URL).Port),
		text("getEscapedPath", "url_get_escaped_path", (*url.URL).EscapedPath),
		read("getQuery", "url_get_query", cel.MapType(cel.StringType, stringsType), func(u *url.URL) ref.Val {
			query := u.Query()
			entries := make(map[string]ref.Val, len(query))
			for name, values := range query {
				entries[name] = stringList(values)
			}
			return newTable(entries)
		}),
	)
}

// address is a URL as a CEL value.
type address struct {
	*url.URL
}

// ConvertToNative implements ref.Val.
func (a address) ConvertToNative(t reflect.Type) (any, error) { return nil, noConversion(a, t) }

// ConvertToType implements ref.Val.
func (a address) ConvertToType(t ref.Type) ref.Val { return convertOpaque(a, t) }

// Equal implements ref.Val.
func (a address) Equal(other ref.Val) ref.Val {
	o, ok := other.(address)
	return types.Bool(ok && a.String() == o.String())
}

// Type implements ref.Val.
func (a address) Type() ref.Type { return addressType }

// Value implements ref.Val.
func (a address) Value() any { return a.URL }
