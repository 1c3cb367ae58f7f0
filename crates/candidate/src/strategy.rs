//! The names of the strategies that Elector has, for [`Config::strategy`](crate::Config::strategy). `docs/strategies.md`
//! says by what each of them chooses.

use elector_protocol::StrategyName;

/// The candidate of the oldest emulation version leads, as kube-controller-manager wants it. The default.
pub const OLDEST_EMULATION_VERSION: &str = StrategyName::OLDEST_EMULATION_VERSION;
/// The candidate of the newest version leads.
pub const NEWEST_VERSION: &str = StrategyName::NEWEST_VERSION;
/// The candidate of the highest priority leads.
pub const PRIORITY: &str = StrategyName::PRIORITY;
/// The leader stays.
pub const STICKY: &str = StrategyName::STICKY;
