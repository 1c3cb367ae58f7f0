//! Ranges against upstream's own vectors, and their properties.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use super::{
    LayoutVerdict, LayoutWatch, ShardField, ShardLayout, ShardRange, ShardSelector, shard_hash,
};
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::lease_watch::NewsSource;
use crate::names::{Identity, ResourceVersion, Uid};
use crate::operator_overrides::OperatorOverrides;
use crate::time::{Instant, Timestamp};

const LONGEST: Duration = Duration::from_secs(60);

fn layout(count: u16) -> ShardLayout {
    ShardLayout::new(ShardField::Uid, count).unwrap()
}

/// Values of `HashField` of k8s.io/apimachinery v0.36.3, pkg/sharding/hash.go, for the inputs of its hash_test.go and
/// selector_test.go.
#[test]
fn the_hash_is_that_of_upstream() {
    let golden = [
        ("", 0xcbf2_9ce4_8422_2325),
        ("abc", 0xe71f_a219_0541_574b),
        ("test-uid-12345", 0xd4c5_3b72_f928_7c28),
        (
            "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            0x9375_4b72_48a0_0eb9,
        ),
        ("test", 0xf9e6_e6ef_197c_2b25),
        ("different", 0x88f3_8c6c_3332_1162),
        ("test-uid-123", 0xd0ba_6798_3455_6c0b),
        ("test-namespace", 0x54e7_df36_f7aa_fbf7),
    ];
    for (text, hash) in golden {
        assert_eq!(shard_hash(text), hash, "{text:?}");
    }
}

/// The splits that the comment on `ListOptions.ShardSelector` shows, k8s.io/apimachinery v0.36.3,
/// pkg/apis/meta/v1/types.go.
#[test]
fn the_ranges_are_those_of_upstream() {
    let shown = |count, index| {
        let range = layout(count).range(index);
        let selector = ShardSelector::new(ShardField::Uid, range);
        selector.unwrap().to_string()
    };
    let of_upstream = [
        (2, 0, "'0x0000000000000000', '0x8000000000000000'"),
        (2, 1, "'0x8000000000000000', '0x10000000000000000'"),
        (4, 0, "'0x0000000000000000', '0x4000000000000000'"),
        (4, 1, "'0x4000000000000000', '0x8000000000000000'"),
        (4, 2, "'0x8000000000000000', '0xc000000000000000'"),
        (4, 3, "'0xc000000000000000', '0x10000000000000000'"),
    ];
    for (count, index, range) in of_upstream {
        let expected = format!("shardRange(object.metadata.uid, {range})");
        assert_eq!(shown(count, index), expected);
    }
    assert_eq!(layout(4).range(4), None);
}

/// The cases of `TestParse` of k8s.io/apiserver v0.36.3, pkg/sharding/parser_test.go.
#[test]
fn a_selector_is_read_as_upstream_reads_it() {
    let (uid, namespace) = ("object.metadata.uid", "object.metadata.namespace");
    let (zero, half, end) = (
        "'0x0000000000000000'",
        "'0x8000000000000000'",
        "'0x10000000000000000'",
    );
    let range =
        |field: &str, start: &str, end: &str| format!("shardRange({field}, {start}, {end})");
    let accepted = [
        (range(uid, zero, half), 1),
        (range(uid, zero, end), 1),
        (
            range(namespace, "'0x00000000000000aa'", "'0x00000000000000ff'"),
            1,
        ),
        // Two that touch are one here; upstream keeps them apart.
        (
            format!("{} || {}", range(uid, zero, half), range(uid, half, end)),
            1,
        ),
        (format!("shardRange({uid},{zero},{half})"), 1),
        (format!("  shardRange( {uid} ,  {zero} ,  {half} )  "), 1),
    ];
    for (text, ranges) in accepted {
        let selector: ShardSelector = text.parse().unwrap();
        assert_eq!(selector.ranges().len(), ranges, "{text}");
    }
    let refused = [
        String::new(),
        range(uid, "'0000000000000000'", half),
        range(uid, zero, "'8000000000000000'"),
        range(uid, "'0x'", half),
        range("object.metadata.name", zero, half),
        range("object.metadata.labels", zero, half),
        format!("invalidFunc({uid}, {zero}, {half})"),
        range(uid, "'0x000000000000000000'", half),
        range(uid, "'0x000000000000000g'", half),
        range(uid, "'0x000000000000000A'", half),
        format!("{} && {}", range(uid, zero, half), range(uid, half, end)),
        range(uid, "0", "8"),
        format!("{uid} > '0x0'"),
        format!("shardRange({uid}, {zero})"),
        format!("shardRange({uid}, hex(0), {half})"),
        format!(
            "{} || {}",
            range(uid, zero, half),
            range(namespace, half, end)
        ),
        range(uid, "'0x0'", half),
        range(uid, zero, "'0xff'"),
        range(uid, zero, "'0x20000000000000000'"),
        range(uid, half, half),
        range(uid, "'0xffffffffffffffff'", zero),
        range(uid, end, end),
    ];
    for text in refused {
        assert!(text.parse::<ShardSelector>().is_err(), "{text}");
    }
}

#[test]
fn a_refused_selector_is_shown_with_the_rule() {
    let text = "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')";
    let error = text.parse::<ShardSelector>().unwrap_err().to_string();
    let rule = "start and end must have 16 digits in lower case, but for 0x10000000000000000";
    assert_eq!(error, format!("shard selector {text:?}: {rule}"));
}

#[test]
fn the_name_of_a_lease_shows_its_layout() {
    let by_namespace = ShardLayout::new(ShardField::Namespace, 128).unwrap();
    assert_eq!(layout(16).lease_name("web", 3), "web-03-of-16");
    assert_eq!(layout(1).lease_name("web", 0), "web-0-of-1");
    let expected = "web-007-of-128-namespaces";
    assert_eq!(by_namespace.lease_name("web", 7), expected);
    assert_eq!(layout(16).to_string(), "16 ranges of object.metadata.uid");
    let strange = "web web- web-3-of-16 web-+3-of-16 web-16-of-16 web-03-of-016 web-03-of-0 \
        web-003-of-16 web-03-of-16-x web-a-of-b other-03-of-16 web03-of-16 web-03-of-70000";
    for strange in strange.split(' ') {
        assert_eq!(ShardLayout::of_lease("web", strange), None, "{strange}");
    }
    // Its group has another name.
    assert_eq!(ShardLayout::of_lease("web", "web-api-03-of-16"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_hash_has_exactly_one_range(hash in any::<u64>(), count in 1_u16..) {
        let layout = layout(count);
        let index = layout.index_of(hash);
        prop_assert!(layout.range(index).unwrap().contains(hash));
        let next_to = [index.checked_sub(1), index.checked_add(1)];
        for range in next_to.into_iter().flatten().filter_map(|index| layout.range(index)) {
            prop_assert!(!range.contains(hash));
        }
    }

    #[test]
    fn ranges_are_disjoint_of_like_size_and_cover_all(count in 1_u16..3_000) {
        let layout = layout(count);
        let ranges: Vec<_> = (0..count).map(|index| layout.range(index).unwrap()).collect();
        prop_assert_eq!((ranges[0].start(), ranges[ranges.len() - 1].last()), (0, u64::MAX));
        for pair in ranges.windows(2) {
            prop_assert_eq!(pair[0].last() + 1, pair[1].start());
        }
        let sizes = ranges.iter().map(|range| range.last() - range.start());
        let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
        prop_assert!(most - least <= 1);
        prop_assert_eq!(layout.range(count), None);
        let all = ShardSelector::new(ShardField::Uid, ranges).unwrap();
        prop_assert_eq!(all.ranges(), &[ShardRange::new(0, u64::MAX).unwrap()]);
    }

    #[test]
    fn a_selector_selects_its_parts_and_reads_back(
        led in vec(any::<bool>(), 1..40),
        hashes in vec(any::<u64>(), 20),
        by_uid in any::<bool>(),
    ) {
        let field = if by_uid { ShardField::Uid } else { ShardField::Namespace };
        let layout = ShardLayout::new(field, u16::try_from(led.len()).unwrap()).unwrap();
        let chosen = (0..layout.count()).rev().filter(|index| led[usize::from(*index)]);
        let selector = ShardSelector::new(field, chosen.filter_map(|index| layout.range(index)));
        prop_assert_eq!(selector.is_none(), !led.contains(&true));
        let Some(selector) = selector else { return Ok(()) };
        for hash in hashes {
            prop_assert_eq!(selector.contains(hash), led[usize::from(layout.index_of(hash))]);
        }
        let text = selector.to_string();
        prop_assert_eq!(text.matches("shardRange").count(), selector.ranges().len());
        prop_assert_eq!(text.parse(), Ok(selector));
    }

    #[test]
    fn a_name_reads_back_and_two_layouts_share_none(count in 1_u16.., index in any::<u16>(), by_uid in any::<bool>()) {
        let field = if by_uid { ShardField::Uid } else { ShardField::Namespace };
        let layout = ShardLayout::new(field, count).unwrap();
        let index = index % count;
        let name = layout.lease_name("a-group", index);
        prop_assert_eq!(ShardLayout::of_lease("a-group", &name), Some((layout, index)));
    }

    #[test]
    fn strange_texts_are_no_trouble(text in ".{0,80}") {
        let _ = text.parse::<ShardSelector>();
        let _ = ShardLayout::of_lease("web", &format!("web-{text}"));
    }
}

fn at(seconds: u64) -> Instant {
    Instant::from_epoch(Duration::from_secs(1_000 + seconds))
}

fn snapshot(version: u64, holder: Option<&str>, renewed: i64) -> LeaseSnapshot {
    let record = LeaseRecord {
        holder: holder.and_then(Identity::new),
        duration_seconds: Some(if holder.is_some() { 15 } else { 1 }),
        renew_time: Timestamp::from_micros(renewed),
        ..LeaseRecord::default()
    };
    LeaseSnapshot {
        uid: Uid::new("lease"),
        version: ResourceVersion(version),
        record,
        overrides: OperatorOverrides::default(),
    }
}

fn taken(lease: &str, count: u16, until: Instant) -> LayoutVerdict {
    LayoutVerdict::Taken {
        lease: lease.to_owned(),
        layout: layout(count),
        until,
    }
}

#[test]
fn a_living_lease_of_another_layout_keeps_a_member_from_leading() {
    let mut watch = LayoutWatch::new("web", layout(16));
    assert_eq!(watch.verdict(at(0), LONGEST), LayoutVerdict::Unknown);
    let lease = "web-3-of-8";
    // Renewed an hour ago, by the text of the record: it lives all the same for as long as it is seen unchanged.
    let old = |version, renewals| snapshot(version, Some("old"), renewals);
    watch.handle_lease(at(0), lease, old(5, 1), NewsSource::List);
    assert_eq!(watch.verdict(at(0), LONGEST), taken(lease, 8, at(15)));
    watch.handle_listed();
    // Each renewal starts the stop-watch again, an old revision does not.
    watch.handle_lease(at(10), lease, old(6, 2), NewsSource::Watch);
    watch.handle_lease(at(20), lease, old(5, 1), NewsSource::Watch);
    assert_eq!(watch.verdict(at(20), LONGEST), taken(lease, 8, at(25)));
    assert_eq!(watch.verdict(at(25), LONGEST), LayoutVerdict::Free);
    // The same record in a later list is no news; a member that comes back is.
    watch.handle_lease(at(30), lease, old(6, 2), NewsSource::List);
    assert_eq!(watch.verdict(at(30), LONGEST), LayoutVerdict::Free);
    watch.handle_lease(at(31), lease, old(7, 3), NewsSource::Watch);
    assert_eq!(watch.verdict(at(31), LONGEST), taken(lease, 8, at(46)));
    // One that was released does not live.
    watch.handle_lease(at(32), lease, snapshot(8, None, 4), NewsSource::Watch);
    assert_eq!(watch.verdict(at(32), LONGEST), LayoutVerdict::Free);
}

#[test]
fn a_lease_of_ones_own_layout_or_of_another_group_keeps_nothing() {
    let mut watch = LayoutWatch::new("web", layout(16));
    watch.handle_listed();
    for lease in ["web-03-of-16", "webs-3-of-8", "web", "web-certs"] {
        watch.handle_lease(at(0), lease, snapshot(5, Some("it"), 1), NewsSource::List);
    }
    assert_eq!(watch.verdict(at(0), LONGEST), LayoutVerdict::Free);
    // The same number of ranges of namespaces is another layout.
    let lease = "web-03-of-16-namespaces";
    watch.handle_lease(at(0), lease, snapshot(5, Some("it"), 1), NewsSource::List);
    assert_ne!(watch.verdict(at(0), LONGEST), LayoutVerdict::Free);
}

#[test]
fn a_record_without_a_duration_lives_as_long_as_any() {
    let mut watch = LayoutWatch::new("web", layout(2));
    watch.handle_listed();
    let mut strange = snapshot(5, Some("it"), 1);
    strange.record.duration_seconds = None;
    watch.handle_lease(at(0), "web-0-of-1", strange, NewsSource::Watch);
    let expected = taken("web-0-of-1", 1, at(60));
    assert_eq!(watch.verdict(at(59), LONGEST), expected);
    assert_eq!(watch.verdict(at(60), LONGEST), LayoutVerdict::Free);
}
