//! The names and times that every part of a simulation uses.

use std::time::Duration;

/// The namespace of everything.
pub(crate) const NAMESPACE: &str = "default";

/// The namespace of a tenant that does harm in it, and the name of that client.
pub(crate) const TENANT: &str = "tenant";

/// Microseconds of 2026, when every clock would start that is not off.
pub(crate) const EPOCH: i64 = 1_767_225_600_000_000;

/// The time that a candidate in auto mode leaves an elector for its grant: the default.
pub(crate) const FALLBACK: Duration = Duration::from_secs(5);

/// A lease that no candidate names: no process of ours may write it (S11).
pub(crate) const FOREIGN: &str = "foreign";

/// A lease of the control plane, which our electors were not asked to touch (S11).
pub(crate) const SYSTEM: &str = "litter-system";

/// The lock of the electors, where they elect one of themselves.
pub(crate) const ELECTOR_LOCK: &str = "electors";

/// The lock of the elector that is built into Kubernetes, in `kube-system`.
pub(crate) const BUILTIN_LOCK: &str = "leader-election-controller";

/// The name of a group, where the leases are the parts of one.
pub(crate) const GROUP: &str = "lease";

/// The name of a lease by its number, which is that of a part of the group.
pub(crate) fn lease_name(lease: usize) -> String {
    format!("{GROUP}-{lease}")
}
