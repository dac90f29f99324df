package main

import (
	"encoding/json"
	"fmt"
	"sort"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// parsedSchema is that of `schema()` in crates/smd/tests/it/vectors.rs.
const parsedSchema = `types:
- name: root
  map:
    fields:
    - {name: spec, type: {namedType: spec}}
    - {name: any, type: {namedType: deduced}}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: deduced}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
- name: strings
  map: {elementType: {scalar: string}}
- name: sub
  map:
    fields:
    - {name: x, type: {scalar: numeric}}
    - {name: "y", type: {scalar: string}}
    - {name: t, type: {namedType: strings}}
- name: named
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: v, type: {scalar: numeric}}
    - {name: sub, type: {namedType: sub}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: proto, type: {scalar: string}, default: TCP}
    - {name: "n", type: {scalar: string}}
- name: spec
  map:
    fields:
    - {name: a, type: {scalar: numeric}}
    - {name: b, type: {scalar: string}}
    - {name: m, type: {namedType: strings}}
    - {name: sub, type: {namedType: sub}}
    - {name: s, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: l, type: {list: {elementType: {namedType: named}, elementRelationship: associative, keys: [name]}}}
    - {name: p, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, proto]}}}
    - {name: al, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: am, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: mm, type: {map: {elementType: {namedType: sub}}}}
`

// Step is a write of a manager, and what there is after it.
type Step struct {
	Op        string                     `json:"op"`
	Manager   string                     `json:"manager"`
	Force     bool                       `json:"force,omitempty"`
	Object    json.RawMessage            `json:"object"`
	Conflicts []string                   `json:"conflicts,omitempty"`
	Result    any                        `json:"result"`
	Managers  map[string]json.RawMessage `json:"managers"`
}

// same converts nothing: there is one version.
type same struct{}

func (same) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

func (same) IsMissingVersionError(error) bool { return false }

func sequenceVector(line []byte) (any, error) {
	var steps []Step
	if err := json.Unmarshal(line, &steps); err != nil {
		return nil, err
	}
	parser, err := typed.NewParser(parsedSchema)
	if err != nil {
		return nil, err
	}
	kind := parser.Type("root")
	builder := &merge.UpdaterBuilder{Converter: same{}, ReturnInputOnNoop: true}
	live, err := kind.FromUnstructured(nil)
	if err != nil {
		return nil, err
	}
	managers := fieldpath.ManagedFields{}
	for at := range steps {
		step := &steps[at]
		var content any
		if err := utiljson.Unmarshal(step.Object, &content); err != nil {
			return nil, fmt.Errorf("step %d: %w", at, err)
		}
		object, err := kind.FromUnstructured(content)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", at, err)
		}
		step.Conflicts = nil
		if step.Op == "apply" {
			applied, owners, err := builder.BuildUpdater().Apply(live, object, "v1", managers.Copy(), step.Manager, step.Force)
			if conflicts, found := err.(merge.Conflicts); found {
				for _, conflict := range conflicts {
					step.Conflicts = append(step.Conflicts, conflict.Manager+" "+conflict.Path.String())
				}
				sort.Strings(step.Conflicts)
			} else if err != nil {
				return nil, fmt.Errorf("step %d: %w", at, err)
			} else {
				live, managers = applied, owners
			}
		} else {
			updated, owners, err := builder.BuildUpdater().Update(live, object, "v1", managers.Copy(), step.Manager)
			if err != nil {
				return nil, fmt.Errorf("step %d: %w", at, err)
			}
			live, managers = updated, owners
		}
		step.Result = live.AsValue().Unstructured()
		step.Managers = map[string]json.RawMessage{}
		for name, owned := range managers {
			text, err := owned.Set().ToJSON()
			if err != nil {
				return nil, err
			}
			step.Managers[name] = text
		}
	}
	return steps, nil
}
