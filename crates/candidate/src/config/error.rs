//! The rules that a configuration can break.

use std::fmt;

use elector_api::FieldError;
use elector_protocol::TimingError;

/// A setting breaks a rule, so that no candidate can be made. The text names the setting and the rule: by the method of
/// [`Config`](crate::Config), or by the flag where flags made the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    setting: Setting,
    by_flag: bool,
    /// The rest of the sentence that the name of the setting begins.
    rule: String,
}

/// A setting, by its method and by its flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    method: &'static str,
    flag: &'static str,
}

// === impl ConfigError ===

impl ConfigError {
    /// `rule` goes on after the name of the setting: `is 2h: must be at most 1h`.
    pub(crate) fn new(setting: Setting, rule: impl Into<String>) -> Self {
        Self {
            setting,
            by_flag: false,
            rule: rule.into(),
        }
    }

    /// The answer of an API server to what it would be sent.
    pub(crate) fn refused(error: &FieldError) -> Self {
        Self::new(
            Setting::of_field(&error.field),
            format!("is refused: {error}"),
        )
    }

    /// The same in the words of those who set flags, if they do.
    pub(crate) fn named_by_flag(mut self, by_flag: bool) -> Self {
        self.by_flag = by_flag;
        self
    }

    /// The setting, by its method of [`Config`](crate::Config) or [`Timing`](crate::Timing). Timing's are
    /// `lease_duration`, `renew_deadline`, `renew_interval` and `retry_period`.
    pub const fn setting(&self) -> &'static str {
        self.setting.method
    }
}

impl From<TimingError> for ConfigError {
    fn from(error: TimingError) -> Self {
        let rule = format!("is {:?}: {}", error.value, error.rule);
        Self::new(Setting::of_constant(error.name), rule)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { method, flag } = self.setting;
        let name = if self.by_flag { flag } else { method };
        write!(f, "{name} {}", self.rule)
    }
}

impl std::error::Error for ConfigError {}

// === impl Setting ===

impl Setting {
    pub(crate) const LEASE: Self = Self::new("lease", "--lease");
    pub(crate) const NAMESPACE: Self = Self::new("namespace", "--namespace");
    pub(crate) const IDENTITY: Self = Self::new("identity", "--name");
    pub(crate) const VERSION: Self = Self::new("version", "--binary-version");
    pub(crate) const EMULATION_VERSION: Self =
        Self::new("emulation_version", "--emulation-version");
    pub(crate) const STRATEGY: Self = Self::new("strategy", "--strategy");
    pub(crate) const CANDIDATE_OWNER: Self = Self::new("candidate_owner", "--pod-uid");
    /// The lease of a configuration where it is the name of a group.
    pub(crate) const GROUP: Self = Self::new("lease", "--group");
    pub(crate) const PARTS: Self = Self::new("parts", "--part");
    pub(crate) const ONE_TERM: Self = Self::new("one_term", "--after-term return");
    pub(crate) const LEASE_LABEL: Self = Self::new("lease_label", "--lease-label");
    pub(crate) const LEASE_OWNER: Self = Self::new("lease_owner", "--lease-owner");
    pub(crate) const GRACE: Self = Self::new("grace", "--grace-period");
    pub(crate) const FALLBACK: Self = Self::new("fallback", "--fallback-after");
    pub(crate) const MAX_LEASE_DURATION: Self =
        Self::new("max_lease_duration", "--max-lease-duration");
    pub(crate) const ABSENT_LEASE_GRACE: Self =
        Self::new("absent_lease_grace", "--absent-lease-grace");
    pub(crate) const HEALTH_PERIOD: Self = Self::new("health_period", "--health-period");
    pub(crate) const HEALTH_TIMEOUT: Self = Self::new("health_timeout", "--health-timeout");
    pub(crate) const HEALTH_FAILURES: Self =
        Self::new("health_failures", "--health-failure-threshold");

    const fn new(method: &'static str, flag: &'static str) -> Self {
        Self { method, flag }
    }

    /// The setting that ends up in that field of an object.
    fn of_field(field: &str) -> Self {
        match field {
            "metadata.name" => Self::IDENTITY,
            "metadata.namespace" => Self::NAMESPACE,
            // The version that it behaves as is its own, unless another is given.
            "spec.binaryVersion" | "spec.emulationVersion" => Self::VERSION,
            "spec.strategy" => Self::STRATEGY,
            field if field.starts_with("metadata.ownerReferences") => Self::CANDIDATE_OWNER,
            _ => Self::LEASE,
        }
    }

    /// The setting that is that constant of the protocol.
    fn of_constant(name: &str) -> Self {
        match name {
            "renew-deadline" => Self::new("renew_deadline", "--renew-deadline"),
            "renew-interval" => Self::new("renew_interval", "a third of --renew-deadline"),
            "retry-period" => Self::new("retry_period", "--retry-period"),
            "request-timeout" => Self::new("request_timeout", "--request-timeout"),
            _ => Self::new("lease_duration", "--lease-duration"),
        }
    }
}
