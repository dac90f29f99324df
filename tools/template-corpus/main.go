// Template-corpus renders the cases of a template corpus with Go's text/template and Sprig.
//
// It reads cases from standard input, a JSON object each: a template, its data, and whether it has Sprig's functions. It
// writes them, a line each, with what Go gives for them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// Case is a template with its data, and what Go makes of it.
type Case struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data,omitempty"`
	Builtin  bool            `json:"builtin,omitempty"`
	Output   *string         `json:"output,omitempty"`
	Error    bool            `json:"error,omitempty"`
}

// unstructured turns whole numbers into int64, as Kubernetes' unstructured objects have them.
func unstructured(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		float, _ := value.Float64()
		return float
	case []any:
		for i := range value {
			value[i] = unstructured(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = unstructured(value[key])
		}
	}
	return value
}

func render(c Case) (out string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	var data any
	if len(c.Data) > 0 {
		decoder := json.NewDecoder(strings.NewReader(string(c.Data)))
		decoder.UseNumber()
		if err := decoder.Decode(&data); err != nil {
			return "", err
		}
		data = unstructured(data)
	}
	t := template.New("")
	if !c.Builtin {
		t = t.Funcs(sprig.TxtFuncMap())
	}
	if t, err = t.Parse(c.Template); err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, data)
	return text.String(), err
}

func main() {
	decoder := json.NewDecoder(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var c Case
		if err := decoder.Decode(&c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		c.Output, c.Error = nil, false
		if out, err := render(c); err != nil {
			c.Error = true
		} else {
			c.Output = &out
		}
		if err := encoder.Encode(c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
