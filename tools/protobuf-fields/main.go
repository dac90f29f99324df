// Command protobuf-fields prints crates/apiserver/src/codec/protobuf_fields.txt: for each type of the built-in kinds the number,
// JSON name and form of its protobuf fields, read by reflection from the struct tags of k8s.io/api.
//
// Run it in this folder: go run . > ../../crates/apiserver/src/codec/protobuf_fields.txt
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds that clients send as protobuf. CustomResourceDefinitions and APIServices come as JSON or YAML.
var roots = []any{
	meta.DeleteOptions{},
	core.Binding{}, core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.LimitRange{}, core.Namespace{}, core.Node{},
	core.PersistentVolume{}, core.PersistentVolumeClaim{}, core.Pod{}, core.PodTemplate{}, core.ReplicationController{},
	core.ResourceQuota{}, core.Secret{}, core.Service{}, core.ServiceAccount{},
	apps.ControllerRevision{}, apps.DaemonSet{}, apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{},
	batch.CronJob{}, batch.Job{}, coordination.Lease{}, events.Event{}, discovery.EndpointSlice{},
	rbac.ClusterRole{}, rbac.ClusterRoleBinding{}, rbac.Role{}, rbac.RoleBinding{},
	policy.Eviction{}, policy.PodDisruptionBudget{}, scheduling.PriorityClass{}, node.RuntimeClass{},
	networking.Ingress{}, networking.IngressClass{}, networking.NetworkPolicy{}, certificates.CertificateSigningRequest{},
	storage.CSIDriver{}, storage.CSINode{}, storage.CSIStorageCapacity{}, storage.StorageClass{}, storage.VolumeAttachment{},
	storage.VolumeAttributesClass{},
	admissionregistration.MutatingWebhookConfiguration{}, admissionregistration.ValidatingWebhookConfiguration{},
	autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv1.Scale{}, autoscalingv2.HorizontalPodAutoscaler{},
	authentication.SelfSubjectReview{}, authentication.TokenReview{},
	authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
	authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{},
}

// Types that are not written field by field.
var special = map[string]string{
	"meta.v1.Time": "T", "meta.v1.MicroTime": "U", "resource.Quantity": "Q", "intstr.IntOrString": "I",
	"meta.v1.FieldsV1": "J", "runtime.RawExtension": "J",
}

type field struct {
	number     int
	name, form string
}

var (
	types = map[string][]field{}
	queue []reflect.Type
)

// typeName is the name of a type as the table has it: group, version and type.
func typeName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	last := parts[len(parts)-1]
	if strings.HasPrefix(last, "v1") || strings.HasPrefix(last, "v2") {
		last = parts[len(parts)-2] + "." + last
	}
	return last + "." + t.Name()
}

// form is the letter of a type's form, for messages with their name.
func form(t reflect.Type) string {
	if letter, known := special[typeName(t)]; known {
		return letter
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "B"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "i"
	case reflect.Float64:
		return "d"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "b"
		}
		// A named list of texts is a message of its own.
		return "L"
	case reflect.Struct:
		queue = append(queue, t)
		return "m" + typeName(t)
	}
	panic("a type without a form: " + t.String())
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func read(f reflect.StructField) (field, bool) {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 3 {
		return field{}, false
	}
	n, err := strconv.Atoi(tag[1])
	if err != nil {
		panic(err)
	}
	json := strings.Split(f.Tag.Get("json"), ",")
	name := json[0]
	inline, omit := false, false
	for _, option := range json[1:] {
		inline = inline || option == "inline"
		omit = omit || option == "omitempty" || option == "omitzero"
	}
	t, pointer := f.Type, false
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	shape := ""
	switch {
	case inline || name == "":
		// The name of an embedded message does not reach the JSON form.
		name = strings.ToLower(f.Name[:1]) + f.Name[1:]
		for _, part := range tag {
			if rest, found := strings.CutPrefix(part, "name="); found {
				name = rest
			}
		}
		shape = "^"
	case t.Kind() == reflect.Map:
		t, shape = t.Elem(), "%"
	case t.Kind() == reflect.Slice && !isBytes(t):
		t, shape = t.Elem(), "*"
	case omit && !pointer && t.Kind() != reflect.Struct && !isBytes(t):
		shape = "-"
	}
	return field{n, name, shape + form(t)}, true
}

func main() {
	for _, root := range roots {
		queue = append(queue, reflect.TypeOf(root))
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		name := typeName(t)
		if _, done := types[name]; done {
			continue
		}
		types[name] = []field{}
		for i := range t.NumField() {
			if f, ok := read(t.Field(i)); ok {
				types[name] = append(types[name], f)
			}
		}
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintln(os.Stdout, "# Protobuf fields of the built-in kinds of Kubernetes: written by tools/protobuf-fields from k8s.io/api v0.36.3.")
	for _, name := range names {
		fields := types[name]
		sort.Slice(fields, func(a, b int) bool { return fields[a].number < fields[b].number })
		fmt.Fprintln(os.Stdout, "="+name)
		for _, f := range fields {
			fmt.Fprintln(os.Stdout, f.number, f.name, f.form)
		}
	}
}
