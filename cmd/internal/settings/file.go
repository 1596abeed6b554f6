package settings

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// BeforeResolve is Kong's hook after the flags and the environment were read: it adds what the file says. Whatever is
// wrong with the file becomes a problem, told with the others.
func (s *Serve) BeforeResolve(ctx *kong.Context) error {
	s.problems = nil
	known := map[string]bool{}
	path := ""
	for _, f := range ctx.Flags() {
		known[f.Name] = true
		if f.Name == "config" {
			path, _ = ctx.FlagValue(f).(string)
		}
	}
	if path == "" {
		return nil
	}
	values, err := readFile(path)
	if err != nil {
		s.problems = append(s.problems, fmt.Sprintf("--config: %v", err))
		return nil
	}
	delete(known, "help")
	delete(known, "config")
	texts := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !known[key] {
			s.problems = append(s.problems, fmt.Sprintf("%s: there is no setting %q", path, key))
			continue
		}
		text, ok := asText(values[key])
		if !ok {
			s.problems = append(s.problems, fmt.Sprintf("%s: %s must be a text, a number or a list of texts", path, key))
			continue
		}
		texts[key] = text
	}
	ctx.AddResolver(fileValues(texts))
	return nil
}

func readFile(path string) (map[string]any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	switch filepath.Ext(path) {
	case ".toml":
		err = toml.Unmarshal(b, &values)
	case ".yaml", ".yml":
		err = yaml.Unmarshal(b, &values)
	default:
		return nil, fmt.Errorf("%s: the name must end in .toml, .yaml or .yml", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// asText gives a file's value as a flag would be written.
func asText(v any) (string, bool) {
	switch v := v.(type) {
	case []any:
		var words []string
		for _, e := range v {
			word, ok := e.(string)
			if !ok || strings.Contains(word, ",") {
				return "", false
			}
			words = append(words, word)
		}
		return strings.Join(words, ","), true
	case string, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// fileValues resolves flags from a file, unless the environment has said something already (Kong would let the file win).
type fileValues map[string]string

func (fileValues) Validate(*kong.Application) error { return nil }

func (v fileValues) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	for _, name := range f.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	if text, ok := v[f.Name]; ok {
		return text, nil
	}
	return nil, nil
}
