package main

import (
	"context"
	"encoding/json"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Vector is a schema with a value, and what becomes of the value.
type Vector struct {
	Schema     json.RawMessage `json:"schema"`
	Value      json.RawMessage `json:"value"`
	Old        json.RawMessage `json:"old,omitempty"`
	Structural []string        `json:"structural,omitempty"`
	Defaulted  any             `json:"defaulted,omitempty"`
	Unknown    []string        `json:"unknown,omitempty"`
	Errors     []string        `json:"errors,omitempty"`
	Reasons    []string        `json:"reasons,omitempty"`
}

func schemaVector(line []byte) (any, error) {
	var vector Vector
	if err := json.Unmarshal(line, &vector); err != nil {
		return nil, err
	}
	vector = Vector{Schema: vector.Schema, Value: vector.Value, Old: vector.Old}
	var v1 apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(vector.Schema, &v1); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	if found := structuralschema.ValidateStructural(field.NewPath("schema"), structural); len(found) > 0 {
		vector.Structural = texts(found)
		return vector, nil
	}
	return vector, validated(&vector, &props, structural)
}

func validated(vector *Vector, props *apiextensions.JSONSchemaProps, structural *structuralschema.Structural) error {
	var object, old map[string]any
	if err := utiljson.Unmarshal(vector.Value, &object); err != nil {
		return err
	}
	if vector.Old != nil {
		if err := utiljson.Unmarshal(vector.Old, &old); err != nil {
			return err
		}
	}
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	vector.Unknown = pruning.PruneWithOptions(object, structural, true, options)
	sort.Strings(vector.Unknown)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
	defaulting.Default(object, structural)
	vector.Defaulted = object
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind{Group: "t", Version: "v1", Kind: "T"}
	strategy := customresource.NewStrategy(nil, false, kind, validator, nil, structural, nil, nil, nil)
	found := validate(strategy, object, old)
	type pair struct{ text, reason string }
	var pairs []pair
	for _, one := range found {
		pairs = append(pairs, pair{one.Error(), string(one.Type)})
	}
	sort.Slice(pairs, func(a, b int) bool {
		return pairs[a].text < pairs[b].text || pairs[a].text == pairs[b].text && pairs[a].reason < pairs[b].reason
	})
	for _, one := range pairs {
		vector.Errors = append(vector.Errors, one.text)
		vector.Reasons = append(vector.Reasons, one.reason)
	}
	return nil
}

// strategy is how kube-apiserver validates custom resources.
type strategy interface {
	Validate(context.Context, runtime.Object) field.ErrorList
	ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList
}

func validate(strategy strategy, object, old map[string]any) field.ErrorList {
	if old == nil {
		return strategy.Validate(context.TODO(), &unstructured.Unstructured{Object: object})
	}
	// An update says which version it follows.
	objects := [2]*unstructured.Unstructured{{Object: runtime.DeepCopyJSON(object)}, {Object: old}}
	for _, one := range objects {
		one.SetResourceVersion("1")
	}
	return strategy.ValidateUpdate(context.TODO(), objects[0], objects[1])
}

func texts(errors field.ErrorList) []string {
	var found []string
	for _, one := range errors {
		found = append(found, one.Error())
	}
	sort.Strings(found)
	return found
}
