//go:build !client_go_0_31

package main

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
)

// newCandidate keeps the LeaseCandidate, in v1beta1, or in v1alpha2 with the client of Kubernetes 1.32.
func newCandidate(client kubernetes.Interface, o options) (*leaderelection.LeaseCandidate, leaderelection.CacheSyncWaiter, error) {
	return leaderelection.NewCandidate(
		client, o.namespace, o.name, o.lease, o.binaryVersion, o.emulationVersion,
		coordinationv1.CoordinatedLeaseStrategy(o.strategy),
	)
}
