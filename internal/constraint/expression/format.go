package expression

import (
	"encoding/base64"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/validation"
)

var formatType = cel.OpaqueType("kubernetes.NamedFormat")

// formats are Kubernetes' text formats by name. Each returns what is wrong with a text.
var formats = map[string]func(text string) []string{
	"dns1123Label":           validation.IsDNS1123Label,
	"dns1123LabelPrefix":     ofPrefix(validation.IsDNS1123Label),
	"dns1123Subdomain":       validation.IsDNS1123Subdomain,
	"dns1123SubdomainPrefix": ofPrefix(validation.IsDNS1123Subdomain),
	"dns1035Label":           validation.IsDNS1035Label,
	"dns1035LabelPrefix":     ofPrefix(validation.IsDNS1035Label),
	"qualifiedName":          validation.IsQualifiedName,
	"labelValue":             validation.IsValidLabelValue,
	"uri": func(text string) []string {
		if _, err := parseAddress(text); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"uuid":     unless("does not match the UUID format", func(text string) bool { return uuidShape().MatchString(text) }),
	"byte":     unless("invalid base64", isBase64),
	"date":     unless("invalid date", isDate),
	"datetime": unless("invalid datetime", isDateTime),
}

// ofPrefix checks a prefix to which something is appended: it may end with a dash. (Like
// Kubernetes, it assumes a valid character before.)
func ofPrefix(judge func(text string) []string) func(text string) []string {
	return func(text string) []string {
		if len(text) > 1 && strings.HasSuffix(text, "-") {
			text = text[:len(text)-2] + "a"
		}
		return judge(text)
	}
}

func unless(wrong string, fits func(text string) bool) func(text string) []string {
	return func(text string) []string {
		if fits(text) {
			return nil
		}
		return []string{wrong}
	}
}

var uuidShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$`)
})

func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil && text != "" && !strings.ContainsAny(text, "\r\n")
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

func isDateTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	return err == nil
}

// formatFunctions declares Kubernetes' format functions: format.dns1123Label() and the like,
// format.named(name), and validate.
func formatFunctions() cel.EnvOption {
	options := []cel.EnvOption{
		cel.Function("format.named", cel.Overload("format-named", []*cel.Type{cel.StringType}, cel.OptionalType(formatType),
			cel.UnaryBinding(func(name ref.Val) ref.Val {
				return ofOne(name, func(name types.String) ref.Val {
					if _, ok := formats[string(name)]; !ok {
						return types.OptionalNone
					}
					return types.OptionalOf(format(name))
				})
			}))),
		cel.Function("validate", cel.MemberOverload("format-validate", []*cel.Type{formatType, cel.StringType}, cel.OptionalType(stringsType),
			cel.BinaryBinding(func(f, text ref.Val) ref.Val {
				return ofTwo(f, text, func(f format, text types.String) ref.Val {
					if wrong := formats[string(f)](string(text)); len(wrong) > 0 {
						return types.OptionalOf(stringList(wrong))
					}
					return types.OptionalNone
				})
			}))),
	}
	for name := range formats {
		options = append(options, cel.Function("format."+name, cel.Overload("format."+name, nil, formatType,
			cel.FunctionBinding(func(...ref.Val) ref.Val { return format(name) }))))
	}
	return several(options...)
}

// format is a format as a CEL value: its name.
type format string

// ConvertToNative implements ref.Val.
func (f format) ConvertToNative(t reflect.Type) (any, error) { return nil, noConversion(f, t) }

// ConvertToType implements ref.Val.
func (f format) ConvertToType(t ref.Type) ref.Val { return convertOpaque(f, t) }

// Equal implements ref.Val.
func (f format) Equal(other ref.Val) ref.Val { return types.Bool(f == other) }

// Type implements ref.Val.
func (f format) Type() ref.Type { return formatType }

// Value implements ref.Val.
func (f format) Value() any { return string(f) }
