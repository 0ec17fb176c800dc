package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// definition has the schema of one version of a custom resource.
type definition struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

type definitionsByKind map[schema.GroupVersionKind]definition

func readDefinitions(files []string) (definitionsByKind, error) {
	found := definitionsByKind{}
	for _, file := range files {
		documents, err := readDocuments(file)
		if err != nil {
			return nil, err
		}
		for _, document := range documents {
			var resource apiextensionsv1.CustomResourceDefinition
			if err := json.Unmarshal(document, &resource); err != nil {
				return nil, err
			}
			for _, version := range resource.Spec.Versions {
				kind := schema.GroupVersionKind{Group: resource.Spec.Group, Version: version.Name, Kind: resource.Spec.Names.Kind}
				if found[kind], err = newDefinition(version.Schema.OpenAPIV3Schema); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return found, nil
}

func newDefinition(external *apiextensionsv1.JSONSchemaProps) (definition, error) {
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, &internal, nil)
	if err != nil {
		return definition{}, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return definition{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return definition{structural, validator, rules}, err
}

// problems returns the unknown fields and the violations of the schema and its rules.
func (d definition) problems(document []byte) []string {
	var object map[string]any
	// As in the API server, an integer stays an integer.
	must(utiljson.Unmarshal(document, &object))
	var problems []string
	tracking := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, d.structural, true, tracking) {
		problems = append(problems, "unknown field "+path)
	}
	defaulting.Default(object, d.structural)
	for _, problem := range validation.ValidateCustomResource(nil, object, d.validator) {
		problems = append(problems, problem.Error())
	}
	broken, _ := d.rules.Validate(context.Background(), nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, problem := range broken {
		problems = append(problems, problem.Error())
	}
	return problems
}
