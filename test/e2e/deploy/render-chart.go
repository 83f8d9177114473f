// Renders a Helm chart with the template engine that Helm uses, and the few functions of Helm that the chart takes.
// Arguments: the templates. Standard input: {"Values": …, "Release": …, "Chart": …}. JSON is YAML, so toYaml writes a line a field, its value in JSON.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"
)

func main() {
	var values map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&values); err != nil {
		panic(err)
	}
	chart := template.New("chart").Option("missingkey=error")
	toJson := func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	chart.Funcs(template.FuncMap{
		"toJson": toJson,
		"toYaml": func(fields map[string]any) (string, error) {
			lines := []string{}
			for name, value := range fields {
				text, err := toJson(value)
				if err != nil {
					return "", err
				}
				lines = append(lines, name+": "+text)
			}
			sort.Strings(lines)
			return strings.Join(lines, "\n"), nil
		},
		"quote":     func(value any) string { return fmt.Sprintf("%q", value) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"nindent": func(width int, text string) string {
			indent := "\n" + strings.Repeat(" ", width)
			return indent + strings.ReplaceAll(text, "\n", indent)
		},
		"default": func(otherwise any, value any) any {
			if value == nil || value == "" {
				return otherwise
			}
			return value
		},
		"include": func(name string, data any) (string, error) {
			var text strings.Builder
			err := chart.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
	})
	template.Must(chart.ParseFiles(os.Args[1:]...))
	for _, path := range os.Args[1:] {
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		fmt.Println("---")
		if err := chart.ExecuteTemplate(os.Stdout, filepath.Base(path), values); err != nil {
			panic(err)
		}
	}
}
