// Health-rules says what continuous delivery tools show for objects: Flux by the rules of kstatus, Argo CD by its health scripts.
//
// The argument is the folder of Argo CD's scripts, GROUP/KIND/health.lua. It reads objects from standard input, a JSON document each, and
// writes a line of JSON for each. Argo CD has no answer for a kind without a script.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health is the answer of one tool.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// Answer has the answers of both for an object.
type Answer struct {
	Flux   Health  `json:"flux"`
	ArgoCD *Health `json:"argoCD,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: health-rules SCRIPTS"))
	}
	objects, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		if err := objects.Decode(&raw); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fail(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			fail(err)
		}
		answer, err := judge(object, os.Args[1])
		if err != nil {
			fail(fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
		if err := answers.Encode(answer); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func judge(object *unstructured.Unstructured, scripts string) (*Answer, error) {
	result, err := status.Compute(object)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Flux: Health{Status: result.Status.String(), Message: result.Message}}
	answer.ArgoCD, err = argoCD(object, scripts)
	return answer, err
}

func argoCD(object *unstructured.Unstructured, scripts string) (*Health, error) {
	// Before any script.
	if object.GetDeletionTimestamp() != nil {
		return &Health{Status: "Progressing", Message: "Pending deletion"}, nil
	}
	group := object.GroupVersionKind().Group
	script, err := os.ReadFile(filepath.Join(scripts, group, object.GetKind(), "health.lua"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}}
	for _, library := range libraries {
		opening := lua.P{Fn: state.NewFunction(library.open), Protect: true}
		if err := state.CallByParam(opening, lua.LString(library.name)); err != nil {
			return nil, err
		}
	}
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(string(script)); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the script answers %s, no table", state.Get(-1).Type())
	}
	text := func(name string) string { return lua.LVAsString(table.RawGetString(name)) }
	return &Health{Status: text("status"), Message: text("message")}, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
