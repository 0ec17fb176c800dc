// This program checks manifests with the code of Kubernetes. It reads an Input as JSON from stdin, and writes an Output as JSON.
//
// No API server runs. The program calls the same functions as the API server for a new object: the strict decoder, the defaults,
// the validation with its warnings, and the Pod Security admission. For custom resources, it uses the schema and the rules of their
// CustomResourceDefinition. The program itself evaluates the network policy, because no module exports such a function.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Input names the files to check and the connections to evaluate.
type Input struct {
	// Manifests and Definitions are the paths of YAML files with any number of documents.
	Manifests   []string `json:"manifests"`
	Definitions []string `json:"definitions"`
	// WithoutDefinition has the kinds of custom resources of which only the pods are checked.
	WithoutDefinition []string `json:"withoutDefinition"`
	// PodSecurityVersions are versions such as "1.37".
	PodSecurityVersions []string `json:"podSecurityVersions"`
	// Connections are made by a worker's pod (egress) or to it (ingress).
	Connections []Connection `json:"connections"`
}

// Output has one entry for each document, in the order of the files, and one verdict for each connection.
type Output struct {
	Objects []Object `json:"objects"`
	Allowed []bool   `json:"allowed"`
}

// Object is the result of the checks of one document.
type Object struct {
	Kind string `json:"kind"`
	// Problems has the reasons why the API server would reject the object or remove one of its fields.
	Problems []string `json:"problems"`
	// Warnings has the texts that kubectl would print.
	Warnings []string `json:"warnings"`
	// PodSecurity has the violations of the level "restricted" for each version. It is null if the object has no pods.
	PodSecurity map[string]string `json:"podSecurity"`
}

func main() {
	var input Input
	must(json.NewDecoder(os.Stdin).Decode(&input))
	output, err := check(input)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(output))
}

func must(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
