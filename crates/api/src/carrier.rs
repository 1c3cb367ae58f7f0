//! The carrier of a strategy and a preferred holder: fields of the Lease, or its annotations.
//!
//! kube-apiserver keeps `spec.strategy` and `spec.preferredHolder` only where its feature gate is on, and drops them
//! silently elsewhere. The answer to a write shows which, so no operator has to say.

use std::collections::BTreeMap;

use elector_protocol::{Identity, StrategyName};

use crate::annotation;
use crate::lease::Lease;

/// The known way of the server with the two fields. Readers honour both ways in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// Nothing yet: fields and annotations are both written.
    #[default]
    Unknown,
    /// The server keeps the fields: annotations are removed.
    Fields,
    /// The server drops the fields: annotations are written, the fields left out.
    Annotations,
}

// === impl Carrier ===

impl Carrier {
    /// The carrier proved by the reply to a write, `None` where it proves none.
    ///
    /// A dropped field is proof. A kept preference is proof as well, and so is a strategy in a fresh Lease. A strategy
    /// kept by an update is none: without its gate, a server keeps what an older Lease already had.
    pub fn learned_from(written: &Lease, reply: &Lease) -> Option<Self> {
        let (sent, kept) = (&written.spec, &reply.spec);
        let strategy = (given(&sent.strategy), given(&kept.strategy));
        let preferred = (given(&sent.preferred_holder), given(&kept.preferred_holder));
        let dropped = |(sent, kept): (Option<&str>, Option<&str>)| sent.is_some() && kept.is_none();
        if dropped(strategy) || dropped(preferred) {
            return Some(Self::Annotations);
        }
        let created = written.metadata.resource_version.is_none();
        let proof = preferred.0.is_some() || (created && strategy.0.is_some());
        proof.then_some(Self::Fields)
    }

    /// Writes both signals into a Lease, the cleared ones too.
    pub(crate) fn write(
        self,
        lease: &mut Lease,
        strategy: Option<&StrategyName>,
        preferred: Option<&Identity>,
    ) {
        let strategy = strategy.map(StrategyName::as_str);
        let preferred = preferred.map(Identity::as_str);
        // The server refuses a preference beside no strategy, so that one travels in the annotation alone.
        let (fields, annotations) = match self {
            Self::Unknown => (true, true),
            Self::Fields => (true, preferred.is_some() && strategy.is_none()),
            Self::Annotations => (false, true),
        };
        let field = |value: Option<&str>| value.filter(|_| fields).map(str::to_owned);
        lease.spec.strategy = field(strategy);
        lease.spec.preferred_holder = field(preferred.filter(|_| strategy.is_some()));
        let map = lease.metadata.annotations.get_or_insert_default();
        put(map, annotation::STRATEGY, strategy.filter(|_| annotations));
        put(
            map,
            annotation::PREFERRED_HOLDER,
            preferred.filter(|_| annotations),
        );
    }
}

/// Sets an annotation, or removes it.
pub(crate) fn put(map: &mut BTreeMap<String, String>, name: &str, value: Option<&str>) {
    match value {
        Some(value) => map.insert(name.to_owned(), value.to_owned()),
        None => map.remove(name),
    };
}

/// The field where it says something.
pub(crate) fn given(field: &Option<String>) -> Option<&str> {
    field.as_deref().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field and annotation of the strategy, then of the preference.
    fn written(
        carrier: Carrier,
        strategy: Option<&str>,
        preferred: Option<&str>,
    ) -> [Option<String>; 4] {
        let mut lease = Lease::default();
        // Former values are replaced.
        lease.spec.strategy = Some("old/old".into());
        lease.spec.preferred_holder = Some("old".into());
        lease.metadata.annotations = Some(BTreeMap::from(
            [annotation::STRATEGY, annotation::PREFERRED_HOLDER]
                .map(|name| (name.into(), "old/old".into())),
        ));
        let strategy = strategy.map(|text| StrategyName::parse(text).unwrap());
        let preferred = preferred.and_then(Identity::new);
        carrier.write(&mut lease, strategy.as_ref(), preferred.as_ref());
        let annotation = |name: &str| {
            lease
                .metadata
                .annotations
                .as_ref()
                .and_then(|map| map.get(name))
                .cloned()
        };
        [
            lease.spec.strategy.clone(),
            annotation(annotation::STRATEGY),
            lease.spec.preferred_holder.clone(),
            annotation(annotation::PREFERRED_HOLDER),
        ]
    }

    #[test]
    fn each_carrier_writes_its_way_and_clears_both() {
        let (s, p) = (Some("a/s"), Some("p"));
        for (carrier, strategy, preferred, expected) in [
            (Carrier::Unknown, s, p, [s, s, p, p]),
            (Carrier::Fields, s, p, [s, None, p, None]),
            (Carrier::Annotations, s, p, [None, s, None, p]),
            (Carrier::Unknown, s, None, [s, s, None, None]),
            (Carrier::Fields, s, None, [s, None, None, None]),
            (Carrier::Annotations, s, None, [None, s, None, None]),
            // The field preferredHolder never stands beside no strategy.
            (Carrier::Unknown, None, p, [None, None, None, p]),
            (Carrier::Fields, None, p, [None, None, None, p]),
            (Carrier::Annotations, None, p, [None, None, None, p]),
            (Carrier::Unknown, None, None, [None; 4]),
            (Carrier::Fields, None, None, [None; 4]),
            (Carrier::Annotations, None, None, [None; 4]),
        ] {
            let expected = expected.map(|text| text.map(str::to_owned));
            assert_eq!(
                written(carrier, strategy, preferred),
                expected,
                "{carrier:?} {strategy:?} {preferred:?}"
            );
        }
    }

    #[test]
    fn a_reply_teaches_only_what_it_proves() {
        let lease = |strategy: &str, preferred: &str, version: Option<&str>| {
            let mut lease = Lease::default();
            lease.spec.strategy = Some(strategy.to_owned());
            lease.spec.preferred_holder = Some(preferred.to_owned());
            lease.metadata.resource_version = version.map(str::to_owned);
            lease
        };
        let create = |strategy: &str| lease(strategy, "", None);
        let update = |strategy: &str, preferred: &str| lease(strategy, preferred, Some("1"));
        let cases = [
            (create("s"), create("s"), Some(Carrier::Fields)),
            (create("s"), create(""), Some(Carrier::Annotations)),
            (create(""), create(""), None),
            (update("s", "p"), update("s", "p"), Some(Carrier::Fields)),
            (update("s", "p"), update("", ""), Some(Carrier::Annotations)),
            // The gate was on once: the strategy survives, a new preference does not.
            (
                update("s", "p"),
                update("s", ""),
                Some(Carrier::Annotations),
            ),
            (update("s", ""), update("s", ""), None),
            (update("s", ""), update("", ""), Some(Carrier::Annotations)),
            (update("", ""), update("", ""), None),
        ];
        for (written, reply, expected) in cases {
            assert_eq!(
                Carrier::learned_from(&written, &reply),
                expected,
                "{:?} {:?}",
                written.spec,
                reply.spec
            );
        }
    }
}
