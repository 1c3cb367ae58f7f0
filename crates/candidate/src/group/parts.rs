//! The parts of a group: how many, what they are called, and which Lease is whose.

use elector_api::names;
use elector_protocol::shard::{ShardField, ShardLayout};

use crate::config::{ConfigError, Setting};

/// The parts into which the work of a group is divided, each with a leader of its own.
///
/// Every process of a group has to be given the same parts. Each part is an ordinary Lease: `GROUP-PART` for a named one,
/// `GROUP-03-of-16` for a range, and `GROUP-03-of-16-namespaces` for one of namespaces.
///
/// ```
/// use elector_candidate::Parts;
///
/// let reconcilers = Parts::named(["certs", "routes"]);
/// let shards = Parts::by_uid(16);
/// # drop((reconcilers, shards));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts(pub(crate) PartLayout);

/// The way in which work is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartLayout {
    Named(Vec<String>),
    /// This many equal ranges of the hash of `metadata.uid`.
    ByUid(u16),
    /// This many equal ranges of the hash of `metadata.namespace`.
    ByNamespace(u16),
}

/// The largest number of parts. All of them are renewed by the processes of one group.
const MOST_PARTS: usize = 1024;

// === impl Parts ===

impl Parts {
    /// Parts with these names: a leader for each reconciler, say. A name is a DNS label, at most 63 lower-case letters,
    /// digits and dashes, and not that of a range. From 1 to 1024 parts, no two the same.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(PartLayout::Named(
            names.into_iter().map(Into::into).collect(),
        ))
    }

    /// So many equal ranges of objects, by the hash of their `metadata.uid`. From 1 to 1024.
    #[must_use]
    pub const fn by_uid(count: u16) -> Self {
        Self(PartLayout::ByUid(count))
    }

    /// So many equal ranges of namespaces, by the hash of their names: all objects of one namespace are in one part, and so
    /// are all objects without a namespace. From 1 to 1024.
    #[must_use]
    pub const fn by_namespace(count: u16) -> Self {
        Self(PartLayout::ByNamespace(count))
    }

    /// Their names, in their order: that of a range is its index and the number of all, as `03-of-16`, and says where it is
    /// one of namespaces, as `03-of-16-namespaces`.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.0 {
            PartLayout::Named(names) => names.clone(),
            PartLayout::ByUid(_) | PartLayout::ByNamespace(_) => {
                let ranges = self.ranges().into_iter();
                ranges
                    .flat_map(|layout| {
                        (0..layout.count()).map(move |index| layout.part_name(index))
                    })
                    .collect()
            }
        }
    }

    /// The ranges, `None` where the parts are named.
    pub(crate) const fn ranges(&self) -> Option<ShardLayout> {
        match &self.0 {
            PartLayout::Named(_) => None,
            PartLayout::ByUid(count) => ShardLayout::new(ShardField::Uid, *count),
            PartLayout::ByNamespace(count) => ShardLayout::new(ShardField::Namespace, *count),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let refused = |rule: String| {
            let rule = format!("is refused: {rule}");
            Err(ConfigError::new(Setting::PARTS, rule))
        };
        let count = match &self.0 {
            PartLayout::Named(names) => names.len(),
            PartLayout::ByUid(count) | PartLayout::ByNamespace(count) => usize::from(*count),
        };
        if count == 0 || count > MOST_PARTS {
            return refused(format!(
                "a group has from 1 to {MOST_PARTS} parts, and not {count}"
            ));
        }
        let PartLayout::Named(names) = &self.0 else {
            return Ok(());
        };
        for (index, name) in names.iter().enumerate() {
            if let Some(error) = names::dns_label(name).first() {
                return refused(format!("the name {name:?}: {error}"));
            }
            if is_range(name) {
                return refused(format!(
                    "the name {name:?}: names of the form 03-of-16 are those of ranges"
                ));
            }
            if names[..index].contains(name) {
                return refused(format!("the name {name:?} stands twice"));
            }
        }
        Ok(())
    }
}

/// The name of the Lease of a part.
pub(crate) fn lease_name(group: &str, part: &str) -> String {
    format!("{group}-{part}")
}

fn is_range(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.strip_suffix("-namespaces").unwrap_or(name);
    name.split_once("-of-")
        .is_some_and(|(index, count)| is_number(index) && is_number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_the_name_that_its_lease_ends_with() {
        let leases = |parts: &Parts| {
            parts.validate().unwrap();
            let names = parts.names();
            let leases = names.iter().map(|part| lease_name("web", part));
            leases.collect::<Vec<_>>()
        };
        let named = Parts::named(["certs", "routes"]);
        assert_eq!(leases(&named), ["web-certs", "web-routes"]);
        let ranges = leases(&Parts::by_uid(16));
        assert_eq!((ranges.len(), &*ranges[3]), (16, "web-03-of-16"));
        assert_eq!(leases(&Parts::by_namespace(1)), ["web-0-of-1-namespaces"]);
        assert_eq!(leases(&Parts::by_uid(100))[7], "web-007-of-100");
        assert_eq!(leases(&Parts::by_uid(1024)).len(), 1024);
    }

    #[test]
    fn what_is_refused_is_named_with_the_rule() {
        let many = (0..=MOST_PARTS).map(|index| format!("p{index}"));
        for (parts, text) in [
            (
                Parts::named([""; 0]),
                "parts is refused: a group has from 1 to 1024 parts, and not 0",
            ),
            (
                Parts::by_uid(0),
                "parts is refused: a group has from 1 to 1024 parts, and not 0",
            ),
            (
                Parts::by_namespace(1025),
                "parts is refused: a group has from 1 to 1024 parts, and not 1025",
            ),
            (
                Parts::named(many),
                "parts is refused: a group has from 1 to 1024 parts, and not 1025",
            ),
            (
                Parts::named(["Web"]),
                "parts is refused: the name \"Web\": a ",
            ),
            (Parts::named([""]), "parts is refused: the name \"\": a "),
            (
                Parts::named(["a", "3-of-16"]),
                "parts is refused: the name \"3-of-16\": names of the form",
            ),
            (
                Parts::named(["3-of-16-namespaces"]),
                "parts is refused: the name \"3-of-16-namespaces\": names of the form",
            ),
            (
                Parts::named(["a", "b", "a"]),
                "parts is refused: the name \"a\" stands twice",
            ),
        ] {
            let error = parts.validate().unwrap_err();
            assert!(error.to_string().starts_with(text), "{error}");
            assert_eq!(error.setting(), "parts");
        }
        let longest = "x".repeat(63);
        Parts::named([longest.as_str(), "of", "a-of-b"])
            .validate()
            .unwrap();
        assert!(Parts::named(["x".repeat(64)]).validate().is_err());
    }
}
