package main

import (
	corev1 "k8s.io/api/core/v1"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podSecurity returns the violations of the level "restricted" for each version. A pod without violations has an empty text.
func podSecurity(template corev1.PodTemplateSpec, versions []string) (map[string]string, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	violations := map[string]string{}
	for _, text := range versions {
		version, err := psaapi.ParseVersion("v" + text)
		if err != nil {
			return nil, err
		}
		level := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: version}
		results := evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec)
		aggregated := policy.AggregateCheckResults(results)
		violations[text] = aggregated.ForbiddenDetail()
	}
	return violations, nil
}
