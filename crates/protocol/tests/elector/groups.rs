//! A group of leases: who is a member, who has settled, and what moves when (R16).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::{Effect, PreferenceField};
use elector_protocol::{
    GroupCounts, GroupPart, LeaseGroup, LeaseRecord, Membership, PartMobility, StrategyName,
    Timestamp,
};

use crate::fixture::{ElectionChange, ElectionFixture, id};

impl ElectionFixture {
    /// The candidate is of that member of the group.
    fn belong(&mut self, name: &str, member: &str) {
        let membership = Arc::new(Membership {
            group: "web".into(),
            member: id(member),
        });
        self.change_spec(name, |spec| spec.membership = Some(membership));
    }

    fn part(&self) -> GroupPart {
        self.election
            .part("web", self.now, self.wall(), &self.settings)
    }
}

/// The parts of one group, with one clock, whose holders renew while time passes.
struct GroupFixture {
    group: LeaseGroup,
    parts: BTreeMap<Arc<str>, ElectionFixture>,
    /// Members whose processes do nothing any more.
    dead: Vec<String>,
}

impl GroupFixture {
    /// Vacant parts `p0`, `p1` and so on, with the candidates of these members.
    fn new(parts: usize, members: &[&str]) -> Self {
        let mut group = Self {
            group: LeaseGroup::default(),
            parts: (0..parts)
                .map(|part| (format!("p{part}").into(), ElectionFixture::new()))
                .collect(),
            dead: Vec::new(),
        };
        for part in group.parts.values_mut() {
            part.lease(LeaseRecord::born(None));
        }
        for member in members {
            group.join(member, 1);
        }
        group
    }

    /// The same, once all parts are led and all members have settled.
    fn settled(parts: usize, members: &[&str]) -> Self {
        let mut group = Self::new(parts, members);
        group.run();
        group.pass(30);
        group.run();
        group
    }

    /// A process appears, of version 1.N.0.
    fn join(&mut self, member: &str, minor: u64) {
        for (part, fixture) in &mut self.parts {
            let name = format!("{member}.{part}");
            fixture.register(&name, minor);
            fixture.belong(&name, member);
        }
    }

    /// The same, and the elector sees it at once.
    fn arrive(&mut self, member: &str, minor: u64) {
        self.join(member, minor);
        self.look();
    }

    fn die(&mut self, member: &str) {
        self.dead.push(member.to_owned());
    }

    /// Looks at all parts, and hands the assignment on; says how many parts it changed for.
    fn look(&mut self) -> usize {
        let now = self.parts.values().next().unwrap().now;
        self.group.take_due(now);
        for (name, part) in &self.parts {
            self.group.handle_part(now, name, part.part());
        }
        let changes = self.group.assign(now);
        let count = changes.len();
        for change in changes {
            let part = self.parts.get_mut(&change.part).unwrap();
            part.election.handle_assigned(change.candidate.clone());
            assert_eq!(part.election.assigned(), change.candidate.as_ref());
        }
        count
    }

    /// Lets the elector and all processes do what they have to do now, until nothing is left.
    fn run(&mut self) {
        for _ in 0..200 {
            self.look();
            let mut idle = true;
            for part in self.parts.values_mut() {
                idle &= !Self::act(part, &self.dead);
            }
            if idle {
                return;
            }
        }
        panic!("it goes on and on");
    }

    /// Applies what the elector of one part writes, and what the candidates do then; false where there is nothing to do.
    fn act(part: &mut ElectionFixture, dead: &[String]) -> bool {
        let is_dead = |name: &str| dead.iter().any(|member| name.starts_with(member.as_str()));
        let decision = part.step();
        let pinged = part.ping();
        for name in pinged.iter().filter(|name| !is_dead(name)) {
            part.ack(name);
        }
        if !pinged.is_empty() {
            return true;
        }
        let writes = |effect: &Effect| matches!(effect, Effect::Write(_));
        if !decision.effects.iter().any(writes) {
            return false;
        }
        let record = part.write();
        if let Some(preferred) = &record.preferred_holder
            && !is_dead(record.holder.as_ref().unwrap().as_str())
        {
            part.grant(preferred.as_str());
        }
        let electee = part.record().holder;
        if electee.is_some_and(|electee| !is_dead(electee.as_str()))
            && part.record().duration_seconds == Some(5)
        {
            part.accept();
        }
        true
    }

    /// Seconds pass, in which living holders renew and the elector acts.
    fn pass(&mut self, seconds: u32) {
        for _ in 0..seconds {
            for part in self.parts.values_mut() {
                part.pass(1.0);
                let holder = part.record().holder;
                let lives =
                    |holder: &str| !self.dead.iter().any(|it| holder.starts_with(it.as_str()));
                if holder.is_some_and(|holder| lives(holder.as_str())) {
                    part.renew();
                }
            }
            self.run();
        }
    }

    fn holder(&self, part: usize) -> String {
        let part = &self.parts[&*format!("p{part}")];
        let holder = part.record().holder.unwrap();
        holder.as_str().split_once('.').unwrap().0.to_owned()
    }

    /// The number of parts of each member.
    fn loads(&self) -> Vec<(String, usize)> {
        let mut loads: BTreeMap<String, usize> = BTreeMap::new();
        for part in 0..self.parts.len() {
            *loads.entry(self.holder(part)).or_default() += 1;
        }
        loads.into_iter().collect()
    }

    fn moved(&self) -> u64 {
        self.group.counts().moved
    }
}

fn loads(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    let own = |(member, load): &(&str, usize)| ((*member).to_owned(), *load);
    expected.iter().map(own).collect()
}

#[test]
fn vacant_parts_are_spread_at_once_and_nothing_moves_then() {
    let mut group = GroupFixture::new(8, &["a", "b", "c"]);
    group.run();
    assert_eq!(group.loads(), loads(&[("a", 3), ("b", 3), ("c", 2)]));
    group.pass(60);
    assert_eq!(group.loads(), loads(&[("a", 3), ("b", 3), ("c", 2)]));
    let counts = GroupCounts {
        parts: 8,
        vacant: 0,
        to_move: 0,
        members: 3,
        moved: 0,
    };
    assert_eq!(group.group.counts(), counts);
}

/// A newcomer waits for 30 s, and takes no more than its share, one part after the other.
#[test]
fn a_newcomer_gets_its_share_once_it_has_settled() {
    let mut group = GroupFixture::settled(8, &["a", "b"]);
    assert_eq!(group.loads(), loads(&[("a", 4), ("b", 4)]));
    group.arrive("c", 1);
    group.pass(29);
    assert_eq!(group.moved(), 0);
    for part in group.parts.values_mut() {
        part.pass(1.0);
        part.renew();
    }
    assert_eq!(group.look(), 1, "one at a time for each member");
    assert_eq!(group.group.counts().to_move, 1);
    group.run();
    assert_eq!(group.loads(), loads(&[("a", 3), ("b", 3), ("c", 2)]));
    assert_eq!(group.moved(), 2);
}

/// A vacant part goes to a newcomer without a wait.
#[test]
fn a_newcomer_gets_vacant_parts_at_once() {
    let mut group = GroupFixture::settled(2, &["a", "b"]);
    group.join("c", 1);
    group.run();
    group.parts.get_mut("p1").unwrap().release();
    group.run();
    assert_eq!(group.holder(1), "c");
    assert_eq!(group.moved(), 0);
}

/// A part that moved stays for ten minutes, by whichever elector it was moved.
#[test]
fn a_part_moves_for_balance_once_in_ten_minutes() {
    let mut group = GroupFixture::settled(4, &["a", "b"]);
    group.arrive("c", 1);
    group.pass(30);
    assert_eq!(group.loads(), loads(&[("a", 1), ("b", 2), ("c", 1)]));
    group.arrive("d", 1);
    group.pass(30);
    let expected = loads(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(group.loads(), expected);
    assert_eq!(group.moved(), 2);
    // Two members end, and their parts go to the others; two come, and would get two of those back.
    for part in group.parts.values_mut() {
        for member in ["a", "b"] {
            let own = part
                .record()
                .holder
                .is_some_and(|it| it.as_str().starts_with(member));
            if own {
                part.release();
            }
            let gone: Vec<String> = part
                .election
                .candidates()
                .map(|known| known.name.as_str().to_owned())
                .filter(|name| name.starts_with(member))
                .collect();
            for name in gone {
                part.remove(&name);
            }
        }
    }
    group.run();
    assert_eq!(group.loads(), loads(&[("c", 2), ("d", 2)]));
    group.arrive("e", 1);
    group.pass(30);
    assert_eq!(
        group.loads(),
        loads(&[("c", 1), ("d", 2), ("e", 1)]),
        "one of c's parts was vacant, not moved"
    );
    assert_eq!(group.moved(), 3);
}

/// The parts of a process that dies go to all others alike, and the elector asks none of them to make room for it.
#[test]
fn the_parts_of_a_dead_member_are_spread_and_it_gets_none() {
    let mut group = GroupFixture::settled(9, &["a", "b", "c"]);
    assert_eq!(group.loads(), loads(&[("a", 3), ("b", 3), ("c", 3)]));
    group.die("a");
    group.pass(20);
    assert_eq!(group.loads(), loads(&[("b", 5), ("c", 4)]));
    assert_eq!(group.moved(), 0);
    // It is a newcomer for as long as what it let expire asks for, and then asked for an ack, which does not come.
    group.pass(120);
    assert_eq!(group.loads(), loads(&[("b", 5), ("c", 4)]));
    assert_eq!(group.group.counts().members, 2);
    let present = group.group.members().filter(|(_, is_member, _)| *is_member);
    let present: Vec<_> = present.map(|(name, ..)| name.to_string()).collect();
    assert_eq!(present, ["b", "c"]);
    // One ack, for any part, and it is a member again, and a newcomer.
    group.dead.clear();
    group.parts.get_mut("p0").unwrap().ack("a.p0");
    group.look();
    assert_eq!(group.group.counts().members, 3);
    group.pass(59);
    assert_eq!(group.moved(), 0, "30 s, doubled");
    group.pass(2);
    assert_eq!(group.loads(), loads(&[("a", 3), ("b", 3), ("c", 3)]));
}

/// One whose leases run out one after the other may be dead, and nobody makes room for it meanwhile.
#[test]
fn a_member_whose_lease_runs_out_gets_no_part_for_balance() {
    let mut group = GroupFixture::settled(8, &["a", "b"]);
    assert_eq!(group.loads(), loads(&[("a", 4), ("b", 4)]));
    group.die("a");
    group.pass(8);
    let mut parts = (0..8).filter(|part| group.holder(*part) == "a");
    let last = format!("p{}", parts.next().unwrap());
    group.parts.get_mut(&*last).unwrap().renew();
    for second in 9..30 {
        group.pass(1);
        assert_eq!(group.group.counts().to_move, 0, "after {second} s");
    }
    assert_eq!(group.loads(), loads(&[("b", 8)]));
}

/// The processes of one Pod share what they let expire: each time doubles the wait of the next, up to 15 min.
#[test]
fn a_replica_that_crashes_in_a_loop_waits_ever_longer() {
    let mut group = GroupFixture::settled(2, &["a-0-0000000000000000"]);
    group.arrive("b-0-0000000000000000", 1);
    group.pass(30);
    for (life, wait) in [(1, 60), (2, 120), (3, 240), (4, 480), (5, 900), (6, 900)] {
        group.die(&format!("b-0-{:016x}", life - 1));
        group.pass(40);
        assert_eq!(group.loads().len(), 1, "it is dead");
        let next = format!("b-0-{life:016x}");
        group.arrive(&next, 1);
        let now = group.parts.values().next().unwrap().now;
        let member = group
            .group
            .members()
            .find(|(name, _, _)| **name == id(&next));
        let (_, _, settles_at) = member.unwrap();
        assert_eq!(settles_at.since(now).as_secs(), wait, "life {life}");
        // A part that is vacant is its own at once, so that it has something to let expire.
        group.parts.get_mut("p1").unwrap().release();
        group.run();
        assert_eq!(group.holder(1), next);
    }
}

/// The strategy comes first: those that it ranks best share the parts.
#[test]
fn members_of_the_best_version_share_the_parts() {
    let mut group = GroupFixture::settled(6, &["a", "b"]);
    group.join("c", 0);
    group.run();
    assert_eq!(group.loads(), loads(&[("c", 6)]), "the older version leads");
    group.arrive("d", 0);
    group.pass(30);
    assert_eq!(group.loads(), loads(&[("c", 3), ("d", 3)]));
    assert_eq!(group.moved(), 3);
}

/// Candidates that the strategy holds equal have one rank, and the next worse one the next.
#[test]
fn a_part_ranks_its_members_by_the_strategy_alone() {
    let mut group = GroupFixture::new(1, &["b", "c"]);
    group.join("a", 2);
    group.join("d", 3);
    let part = group.parts.get_mut("p0").unwrap();
    part.change("c.p0", |candidate| candidate.created = Timestamp::MIN);
    let seen = part.part().candidates;
    let ranks: Vec<_> = seen
        .iter()
        .map(|it| (it.member.as_str(), it.rank))
        .collect();
    assert_eq!(ranks, [("a", 1), ("b", 0), ("c", 0), ("d", 2)]);
    // The group that is named is that of the oldest one.
    assert_eq!(part.election.membership().unwrap().member, id("c"));
}

/// A part moves where its holder is a member that has accepted and can read that it is to make room.
#[test]
fn a_part_stays_whose_holder_cannot_be_asked_to_make_room() {
    use PartMobility::{Fixed, Movable};
    let unmark: ElectionChange = |part| part.change("a", |candidate| candidate.marked = false);
    let forget_token: ElectionChange = |part| part.edit(|record| record.token = None);
    let drop_field: ElectionChange =
        |part| part.settings.preference_field = PreferenceField::Dropped;
    let leave: ElectionChange = |part| part.change_spec("a", |spec| spec.membership = None);
    let grant: ElectionChange = |part| {
        part.edit(|record| (record.acquire_time, record.token) = (record.renew_time, None));
    };
    let cases: [(&[ElectionChange], PartMobility); 7] = [
        (&[], Movable),
        (&[leave], Fixed),
        (&[grant], Fixed),
        (&[unmark, forget_token], Movable),
        (&[unmark, drop_field], Movable),
        (&[forget_token, drop_field], Movable),
        (&[unmark, forget_token, drop_field], Fixed),
    ];
    for (index, (changes, expected)) in cases.into_iter().enumerate() {
        let mut part = ElectionFixture::led(&[("a", 1), ("b", 1)]);
        part.belong("a", "m0");
        part.belong("b", "m1");
        changes.iter().for_each(|change| change(&mut part));
        assert_eq!(part.part().mobility, expected, "case {index}");
    }
}

/// (R23) A part that moved for balance stays where it is for ten minutes, and says so.
#[test]
fn a_part_that_moved_for_balance_stays_for_ten_minutes() {
    let mut part = ElectionFixture::led(&[("b", 1), ("a", 1)]);
    part.belong("a", "m0");
    part.belong("b", "m1");
    part.edit(|record| record.strategy = Some(StrategyName::oldest_emulation_version()));
    let strategy = part.record().strategy;
    part.lease(part.record().preferring(Some(id("a")), strategy));
    part.grant("a");
    part.accept();
    let until = part.now.after(Duration::from_secs(600));
    part.keep(599);
    assert_eq!(part.part().mobility, PartMobility::Fixed);
    assert_eq!(part.part().due, Some(until));
    part.keep(1);
    assert_eq!(part.part().mobility, PartMobility::Movable);
    assert_eq!(part.part().due, None);
}

/// (R5) A candidate that is passed over gets no part, and the part says until when.
#[test]
fn a_member_that_did_not_accept_is_not_ready_until_it_counts_again() {
    let mut part = ElectionFixture::open(&[("a", 1)]);
    part.belong("a", "m0");
    part.grant("a");
    part.release();
    let until = part.part().due.unwrap();
    for (now, is_ready) in [(part.now, false), (until, true)] {
        part.now = now;
        let seen = part.part();
        assert_eq!(seen.candidates[0].is_ready, is_ready);
        assert_eq!(seen.due, (!is_ready).then_some(until));
    }
}

/// Under `elector.dev/sticky` vacant parts are spread and no leader makes room.
#[test]
fn sticky_parts_are_spread_while_they_are_vacant() {
    let mut group = GroupFixture::new(4, &["a", "b"]);
    let sticky = |group: &mut GroupFixture| {
        for part in group.parts.values_mut() {
            let names: Vec<_> = part
                .election
                .candidates()
                .map(|it| it.name.clone())
                .collect();
            for name in names {
                part.change_spec(name.as_str(), |spec| {
                    spec.strategy = StrategyName::parse(StrategyName::STICKY).unwrap();
                });
            }
        }
    };
    sticky(&mut group);
    group.run();
    assert_eq!(group.loads(), loads(&[("a", 2), ("b", 2)]));
    group.join("c", 1);
    sticky(&mut group);
    group.pass(60);
    assert_eq!(group.loads(), loads(&[("a", 2), ("b", 2)]));
    group.parts.get_mut("p0").unwrap().release();
    group.run();
    assert_eq!(group.holder(0), "c");
}

/// A part that does not move for a while says when it is to be looked at again.
#[test]
fn a_group_wakes_when_a_member_settles_and_when_a_part_may_move_again() {
    let mut group = GroupFixture::settled(4, &["a", "b"]);
    group.join("c", 1);
    group.look();
    let now = group.parts.values().next().unwrap().now;
    let after = |group: &GroupFixture| group.group.wake_at().map(|at| at.since(now).as_secs());
    assert_eq!(after(&group), Some(30));
    group.pass(30);
    group.look();
    // The move was at 30 s.
    assert_eq!(after(&group), Some(630));
    group.group.handle_part_gone("p0");
    assert_eq!(group.group.counts().parts, 3);
}
