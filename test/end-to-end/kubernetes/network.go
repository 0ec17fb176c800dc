package main

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Connection is a connection between a worker's pod and a peer.
type Connection struct {
	// Direction is "egress" if the worker's pod connects to the peer, and "ingress" if the peer connects to the pod.
	Direction string `json:"direction"`
	IP        string `json:"ip"`
	// Namespace is the namespace of the peer's pod. If it is empty, the peer is not a pod.
	Namespace string          `json:"namespace"`
	Protocol  corev1.Protocol `json:"protocol"`
	Port      int32           `json:"port"`
}

// isAllowed evaluates a network policy that selects the worker's pods, with the rules of the API's documentation: a connection is
// allowed if one rule has the peer and the port. A rule without peers has all peers, and a rule without ports has all ports.
func isAllowed(policy networkingv1.NetworkPolicySpec, template corev1.PodTemplateSpec, connection Connection) (bool, error) {
	if connection.Direction == "egress" {
		for _, rule := range policy.Egress {
			// No rule names a port of another pod, so a named port never matches.
			matches, err := hasPeer(rule.To, connection)
			if err != nil || matches && hasPort(rule.Ports, nil, connection) {
				return err == nil, err
			}
		}
		return false, nil
	}
	for _, rule := range policy.Ingress {
		matches, err := hasPeer(rule.From, connection)
		if err != nil || matches && hasPort(rule.Ports, template.Spec.Containers, connection) {
			return err == nil, err
		}
	}
	return false, nil
}

func hasPeer(peers []networkingv1.NetworkPolicyPeer, connection Connection) (bool, error) {
	for _, peer := range peers {
		matches, err := isPeer(peer, connection)
		if matches || err != nil {
			return matches, err
		}
	}
	return len(peers) == 0, nil
}

func isPeer(peer networkingv1.NetworkPolicyPeer, connection Connection) (bool, error) {
	if peer.IPBlock != nil {
		return isInBlock(*peer.IPBlock, connection.IP)
	}
	selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
	// Kubernetes adds this label to each namespace.
	return connection.Namespace != "" && selector.Matches(labels.Set{corev1.LabelMetadataName: connection.Namespace}), err
}

func isInBlock(block networkingv1.IPBlock, ip string) (bool, error) {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return false, err
	}
	for _, except := range block.Except {
		prefix, err := netip.ParsePrefix(except)
		if err != nil || prefix.Contains(address) {
			return false, err
		}
	}
	prefix, err := netip.ParsePrefix(block.CIDR)
	return prefix.Contains(address), err
}

func hasPort(ports []networkingv1.NetworkPolicyPort, containers []corev1.Container, connection Connection) bool {
	for _, port := range ports {
		number := port.Port.IntVal
		if port.Port.Type == intstr.String {
			number = containerPort(containers, port.Port.StrVal)
		}
		if *port.Protocol == connection.Protocol && number == connection.Port {
			return true
		}
	}
	return len(ports) == 0
}

func containerPort(containers []corev1.Container, name string) int32 {
	for _, container := range containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return 0
}
