package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Patch is a patch of a document, and what comes of it.
type Patch struct {
	Type   string          `json:"type"`
	Kind   string          `json:"kind,omitempty"`
	Doc    json.RawMessage `json:"doc"`
	Patch  json.RawMessage `json:"patch"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// patchTypes are the types that strategic patches are about.
var patchTypes = map[string]any{
	"Deployment":     appsv1.Deployment{},
	"Node":           corev1.Node{},
	"Pod":            corev1.Pod{},
	"Secret":         corev1.Secret{},
	"Service":        corev1.Service{},
	"ServiceAccount": corev1.ServiceAccount{},
}

func patchVector(line []byte) (any, error) {
	var vector Patch
	if err := json.Unmarshal(line, &vector); err != nil {
		return nil, err
	}
	vector.Result, vector.Error = nil, ""
	result, err := patched(vector)
	if err != nil {
		vector.Error = err.Error()
		return vector, nil
	}
	vector.Result = result
	return vector, nil
}

func patched(vector Patch) ([]byte, error) {
	switch vector.Type {
	case "json":
		patch, err := jsonpatch.DecodePatch(vector.Patch)
		if err != nil {
			return nil, err
		}
		return patch.Apply(vector.Doc)
	case "merge":
		return jsonpatch.MergePatch(vector.Doc, vector.Patch)
	case "strategic":
		of, known := patchTypes[vector.Kind]
		if !known {
			return nil, fmt.Errorf("no type for strategic patches of %q", vector.Kind)
		}
		return strategicpatch.StrategicMergePatch(vector.Doc, vector.Patch, of)
	}
	return nil, fmt.Errorf("unknown type of patch %q", vector.Type)
}
