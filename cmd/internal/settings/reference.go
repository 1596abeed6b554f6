package settings

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Reference returns the page docs/configuration.md.
func Reference() (string, error) {
	var s Serve
	parser, err := kong.New(&s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`# Configuration

Written by ` + "`go generate ./cmd/internal/settings`" + ` from the struct that ` + "`warren serve`" + ` reads; do not edit it here.

Every setting is a flag, an environment variable and a key of a TOML or YAML file (` + "`--config`" + `), under the flag's name
without the dashes in front. A flag wins over the environment, the environment over the file, the file over the default.
Unknown keys and wrong values are refused, all at once. Sizes are written like ` + "`64MiB`" + `, times like ` + "`500ms`" + ` or ` + "`1h`" + `.

` + "```toml" + `
node-id = "n1"
bootstrap-expect = 3
join = ["10.0.0.1:5690", "10.0.0.2:5690", "10.0.0.3:5690"]
` + "```" + `
`)
	group := ""
	for _, f := range parser.Model.Flags {
		if f.Group == nil {
			continue // help
		}
		if f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | default | meaning |\n|---|---|---|---|\n", group)
		}
		value := ""
		if f.HasDefault {
			value = "`" + f.Default + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.Name, strings.Join(f.Envs, ", "), value, strings.ReplaceAll(f.Help, "|", `\|`))
	}
	return b.String(), nil
}
