//! What faults do to leadership, on a real kube-apiserver, seen by a witness.
