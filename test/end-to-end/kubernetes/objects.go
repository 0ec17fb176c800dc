package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"sigs.k8s.io/yaml"
)

const namespace = "follow-ups"

// The strategies have the rules that the API server applies to a new object of each kind.
var strategies = map[string]rest.RESTCreateStrategy{
	"Deployment":          deployment.Strategy,
	"NetworkPolicy":       networkpolicy.Strategy,
	"PodDisruptionBudget": poddisruptionbudget.Strategy,
}

// The strategies of these kinds need the code of the storage, which doubles the time of the compilation. Their rules for a new object
// are only these validations.
var validations = map[string]func(runtime.Object) field.ErrorList{
	"ConfigMap": func(object runtime.Object) field.ErrorList {
		return validation.ValidateConfigMap(object.(*core.ConfigMap))
	},
	"ServiceAccount": func(object runtime.Object) field.ErrorList {
		return validation.ValidateServiceAccount(object.(*core.ServiceAccount))
	},
}

var strictCodecs = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)

func check(input Input) (*Output, error) {
	definitions, err := readDefinitions(input.Definitions)
	if err != nil {
		return nil, err
	}
	output := &Output{}
	var policies []*networkingv1.NetworkPolicy
	var workers []*appsv1.Deployment
	for _, file := range input.Manifests {
		documents, err := readDocuments(file)
		if err != nil {
			return nil, err
		}
		for _, document := range documents {
			object, versioned := checkDocument(document, definitions, input.WithoutDefinition)
			switch typed := versioned.(type) {
			case *networkingv1.NetworkPolicy:
				policies = append(policies, typed)
			case *appsv1.Deployment:
				workers = append(workers, typed)
				object.PodSecurity, err = podSecurity(typed.Spec.Template, input.PodSecurityVersions)
				if err != nil {
					return nil, err
				}
			}
			output.Objects = append(output.Objects, object)
		}
	}
	for _, connection := range input.Connections {
		allowed, err := isAllowed(policies[0].Spec, workers[0].Spec.Template, connection)
		if err != nil {
			return nil, err
		}
		output.Allowed = append(output.Allowed, allowed)
	}
	return output, nil
}

// readDocuments returns each document of a YAML file as JSON.
func readDocuments(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		// Rejects duplicate keys.
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !bytes.Equal(asJSON, []byte("null")) {
			documents = append(documents, asJSON)
		}
	}
}

// checkDocument returns the result, and the object with its defaults if it is not a custom resource. For a WorkerDeployment, the
// object is a Deployment with the same template, as the Temporal Worker Controller creates it.
func checkDocument(document []byte, definitions definitionsByKind, withoutDefinition []string) (Object, runtime.Object) {
	var identity struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	object := Object{Problems: []string{}, Warnings: []string{}}
	if err := json.Unmarshal(document, &identity); err != nil {
		object.Problems = append(object.Problems, err.Error())
		return object, nil
	}
	object.Kind = identity.Kind
	kind := schema.FromAPIVersionAndKind(identity.APIVersion, identity.Kind)
	definition, isDefined := definitions[kind]
	if isDefined {
		object.Problems = append(object.Problems, definition.problems(document)...)
	}
	if isDefined || slices.Contains(withoutDefinition, identity.Kind) {
		if identity.Kind != "WorkerDeployment" {
			return object, nil
		}
		document = deploymentOf(document)
		kind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	}
	versioned, problems, warnings := create(document, kind)
	object.Problems = append(object.Problems, problems...)
	object.Warnings = append(object.Warnings, warnings...)
	return object, versioned
}

// create does the same as the API server for a new object, except that it stores nothing.
func create(document []byte, kind schema.GroupVersionKind) (versioned runtime.Object, problems, warnings []string) {
	internal, err := runtime.Decode(strictCodecs.UniversalDecoder(), document)
	if err != nil {
		return nil, []string{err.Error()}, nil
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return nil, []string{err.Error()}, nil
	}
	accessor.SetNamespace(namespace)
	rest.FillObjectMetaSystemFields(accessor)
	if strategy, isKnown := strategies[kind.Kind]; isKnown {
		ctx := requestContext(kind)
		warnings = strategy.WarningsOnCreate(ctx, internal)
		if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
			problems = append(problems, err.Error())
		}
	} else if validate, isKnown := validations[kind.Kind]; isKnown {
		for _, problem := range validate(internal) {
			problems = append(problems, problem.Error())
		}
	} else {
		problems = append(problems, fmt.Sprintf("no check knows %s", kind))
	}
	versioned, err = legacyscheme.Scheme.ConvertToVersion(internal, kind.GroupVersion())
	if err != nil {
		problems = append(problems, err.Error())
	}
	return versioned, problems, warnings
}

func requestContext(kind schema.GroupVersionKind) context.Context {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return genericapirequest.WithRequestInfo(
		genericapirequest.WithNamespace(context.Background(), namespace),
		&genericapirequest.RequestInfo{
			IsResourceRequest: true, Verb: "create", Namespace: namespace,
			APIGroup: kind.Group, APIVersion: kind.Version, Resource: plural.Resource,
		},
	)
}

func deploymentOf(workerDeployment []byte) []byte {
	var source struct {
		Metadata json.RawMessage `json:"metadata"`
		Spec     struct {
			Replicas json.RawMessage `json:"replicas"`
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	var whole struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	must(json.Unmarshal(workerDeployment, &source))
	must(json.Unmarshal(workerDeployment, &whole))
	created, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   source.Metadata,
		"spec": map[string]any{
			"replicas": source.Spec.Replicas,
			"selector": map[string]any{"matchLabels": source.Spec.Template.Metadata.Labels},
			"template": whole.Spec.Template,
		},
	})
	must(err)
	return created
}
