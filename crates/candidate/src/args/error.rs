//! Errors in flags.

use crate::config::ConfigError;

/// Why flags make no configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// A flag was given that this mode has no use for: it would let its user believe that it has an effect.
    #[error("{flag} does not go with --mode {mode}: a candidate in this mode {reason}")]
    Unused {
        /// The flag.
        flag: &'static str,
        /// The mode, as it is typed.
        mode: &'static str,
        /// Why the mode has no use for it.
        reason: &'static str,
    },
    /// An identity has at least one character.
    #[error("--name is empty")]
    EmptyName,
    /// A Pod is owner by its name and its uid.
    #[error("--pod-uid needs the name of the Pod in the environment variable POD_NAME")]
    NamelessPod,
    /// The values do not go together, or break a rule.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
