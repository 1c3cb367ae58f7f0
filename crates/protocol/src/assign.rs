//! Which member of a group leads which part: the leases of a group, spread over the processes that stand for them (R16).
//!
//! [`assign`] is a pure function of what is: which members may lead each part, which leads it now, and whether it may
//! move. Electors that see the same find the same, and none remembers what it wanted before.
//!
//! * *It keeps what is there.* A part stays with its holder, unless that may not lead it any more.
//! * *A vacant part* goes to the member with the fewest parts among those that may lead it. A place that it was given
//!   before is kept, and may be given up at no cost, since no member has begun to work there.
//! * *A part moves for balance* only from a member that has at least two parts more than the one it goes to, so no part
//!   moves among equals. The member with the most parts gives first, the one with the fewest takes first, ties are
//!   decided by part and then by member. It goes on until no such move is left, which it comes to, since each makes the
//!   sum of the squares of the loads smaller.
//!
//! It follows that members that may lead the same parts differ by at most one part once all of these may move; a member
//! that joins takes parts and moves no other; of a member that leaves, its own parts alone go elsewhere; and what was
//! assigned once stays assigned.

use std::collections::{BTreeMap, BTreeSet};

/// One part of a group. Members are numbers, in the order in which ties are decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignablePart {
    /// The members that may lead it, in ascending order.
    pub eligible: Vec<usize>,
    /// The member that leads it; of a vacant part, the one that it was last assigned to.
    pub holder: Option<usize>,
    /// Its freedom to go to another member.
    pub mobility: PartMobility,
}

/// The freedom of a part to go to another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartMobility {
    /// It has no holder, or one whose lease runs out: it goes to any member at once.
    Vacant,
    /// Its holder makes room for another member.
    Movable,
    /// It stays with its holder, also where that is no member.
    Fixed,
}

/// An assignment in the making: each part is where it is, or anywhere.
struct Spread<'a> {
    parts: &'a [AssignablePart],
    /// Members that take parts which others lead.
    takes: &'a [bool],
    placed: Vec<Option<usize>>,
    /// The number of parts of each member.
    loads: Vec<usize>,
}

/// One in which parts move for balance.
struct Levelling<'a> {
    spread: Spread<'a>,
    /// The members by the number of their parts, the smallest first.
    by_load: BTreeSet<(usize, usize)>,
    /// The class of each part: those of one class have the same eligible members.
    class_of: Vec<usize>,
    classes: Vec<PartClass>,
    /// The classes that each member is eligible for.
    classes_of: Vec<Vec<usize>>,
    /// The parts of each member that may go elsewhere, by class.
    loose: Vec<BTreeMap<usize, LooseParts>>,
    /// The number of members and classes looked at for a move: what the work consists of.
    looks: usize,
}

/// The members that are eligible for the same parts, the one with the fewest parts first.
#[derive(Default)]
struct PartClass {
    /// All of them.
    any: BTreeSet<(usize, usize)>,
    /// Those that take parts which others lead.
    takers: BTreeSet<(usize, usize)>,
}

/// The parts of one class that one member has and may give away.
#[derive(Default)]
struct LooseParts {
    /// Those that no member leads, for whichever member may lead them.
    vacant: BTreeSet<usize>,
    /// Those that another member leads: they go on to a third one at no further cost.
    moved: BTreeSet<usize>,
    /// Those that it leads.
    held: BTreeSet<usize>,
}

/// A part, and the member that it goes to. Ordered by what is done first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PartMove {
    /// True if another member has to make room.
    held: bool,
    /// The load of the member that takes it.
    load: usize,
    part: usize,
    to: usize,
}

/// Assigns each part to a member; `None` where none may lead it. `takes` says of each member whether it takes parts that
/// others lead, besides those that are vacant; a number of a member that is not in it counts for nothing.
///
/// The work grows as the members named in the parts do, and a logarithm, and for each move as the members and the sets of
/// members that are eligible together.
///
/// # Examples
///
/// Two members have four parts, and a third one joins. It gets one part of the member that has more than its share.
///
/// ```
/// use elector_protocol::{AssignablePart, PartMobility, assign};
///
/// let part = |holder| AssignablePart {
///     eligible: vec![0, 1, 2],
///     holder: Some(holder),
///     mobility: PartMobility::Movable,
/// };
/// let parts = [part(0), part(0), part(0), part(1)];
/// assert_eq!(assign(&parts, &[true; 3]), [Some(2), Some(0), Some(0), Some(1)]);
/// ```
pub fn assign(parts: &[AssignablePart], takes: &[bool]) -> Vec<Option<usize>> {
    assign_counted(parts, takes).0
}

/// The same, and the number of looks that it took.
fn assign_counted(parts: &[AssignablePart], takes: &[bool]) -> (Vec<Option<usize>>, usize) {
    let mut spread = Spread {
        parts,
        takes,
        placed: vec![None; parts.len()],
        loads: vec![0; takes.len()],
    };
    spread.keep();
    spread.place();
    // That is so nearly always.
    if spread.is_level() {
        return (spread.placed, 0);
    }
    let mut levelling = Levelling::of(spread);
    levelling.level();
    (levelling.spread.placed, levelling.looks)
}

// === impl AssignablePart ===

impl AssignablePart {
    /// True if that member may lead it.
    fn is_for(&self, member: usize) -> bool {
        self.eligible.binary_search(&member).is_ok()
    }
}

// === impl Spread ===

impl Spread<'_> {
    /// Parts stay where they are, and where they were to be.
    fn keep(&mut self) {
        for (index, part) in self.parts.iter().enumerate() {
            let holder = part.holder.filter(|holder| *holder < self.takes.len());
            if let Some(holder) = holder
                && (part.mobility == PartMobility::Fixed || part.is_for(holder))
            {
                self.put(index, holder);
            }
        }
    }

    /// Those without a place go to the members with the fewest parts.
    fn place(&mut self) {
        for (index, part) in self.parts.iter().enumerate() {
            if self.placed[index].is_some() || part.mobility == PartMobility::Fixed {
                continue;
            }
            let eligible = part.eligible.iter().copied();
            let loads = eligible.filter_map(|member| Some((*self.loads.get(member)?, member)));
            if let Some((_, member)) = loads.min() {
                self.put(index, member);
            }
        }
    }

    fn put(&mut self, part: usize, member: usize) {
        self.placed[part] = Some(member);
        self.loads[member] += 1;
    }

    /// True if no member has two parts more than another, so that none moves for balance.
    fn is_level(&self) -> bool {
        let fewest = self.loads.iter().min();
        let most = self.loads.iter().max();
        fewest
            .zip(most)
            .is_none_or(|(fewest, most)| most - fewest < 2)
    }
}

// === impl Levelling ===

impl<'a> Levelling<'a> {
    fn of(spread: Spread<'a>) -> Self {
        let loads = spread.loads.iter().enumerate();
        let mut levelling = Self {
            by_load: loads.map(|(member, load)| (*load, member)).collect(),
            class_of: Vec::with_capacity(spread.parts.len()),
            classes: Vec::new(),
            classes_of: vec![Vec::new(); spread.takes.len()],
            loose: spread.takes.iter().map(|_| BTreeMap::new()).collect(),
            looks: 0,
            spread,
        };
        levelling.classify();
        for part in 0..levelling.class_of.len() {
            if let Some(member) = levelling.spread.placed[part]
                && let Some(loose) = levelling.loose_parts(part, member)
            {
                loose.insert(part);
            }
        }
        levelling
    }

    /// Finds the sets of members that are eligible together.
    fn classify(&mut self) {
        let Spread {
            parts,
            takes,
            loads,
            ..
        } = &self.spread;
        let mut known: BTreeMap<&[usize], usize> = BTreeMap::new();
        for part in *parts {
            let next = known.len();
            let class = *known.entry(&part.eligible).or_insert(next);
            self.class_of.push(class);
            if class < next {
                continue;
            }
            let members = part.eligible.iter().copied();
            let members: BTreeSet<usize> = members.filter(|it| *it < takes.len()).collect();
            let load_of = |member: &usize| (loads[*member], *member);
            let takers = members.iter().filter(|member| takes[**member]);
            self.classes.push(PartClass {
                takers: takers.map(load_of).collect(),
                any: members.iter().map(load_of).collect(),
            });
            for member in members {
                self.classes_of[member].push(class);
            }
        }
    }

    /// Moves parts for balance.
    fn level(&mut self) {
        while let Some(next) = self.next_move() {
            self.take_away(next.part);
            self.put(next.part, next.to);
        }
    }

    /// The first move from the members with the most parts, one that costs nothing if there is one.
    fn next_move(&mut self) -> Option<PartMove> {
        let mut best: Option<(usize, PartMove)> = None;
        let mut looks = 0;
        for (load, member) in self.by_load.iter().rev() {
            looks += 1;
            // Below this load there is none that has two parts less, and members with more go first.
            if *load < 2 || best.is_some_and(|(most, _)| *load < most) {
                break;
            }
            for (class, loose) in &self.loose[*member] {
                looks += 1;
                let PartClass { any, takers } = &self.classes[*class];
                let moves = [
                    PartMove::of(false, &loose.vacant, any),
                    PartMove::of(false, &loose.moved, takers),
                    PartMove::of(true, &loose.held, takers),
                ];
                for next in moves.into_iter().flatten() {
                    if next.load + 2 <= *load && best.is_none_or(|(_, best)| next < best) {
                        best = Some((*load, next));
                    }
                }
            }
        }
        self.looks += looks;
        best.map(|(_, next)| next)
    }

    fn put(&mut self, part: usize, member: usize) {
        self.spread.placed[part] = Some(member);
        self.set_load(member, self.spread.loads[member] + 1);
        if let Some(loose) = self.loose_parts(part, member) {
            loose.insert(part);
        }
    }

    fn take_away(&mut self, part: usize) {
        let Some(member) = self.spread.placed[part].take() else {
            return;
        };
        self.set_load(member, self.spread.loads[member] - 1);
        if let Some(loose) = self.loose_parts(part, member) {
            loose.remove(&part);
        }
        let class = self.class_of[part];
        let is_empty = |loose: &LooseParts| {
            let LooseParts {
                vacant,
                moved,
                held,
            } = loose;
            vacant.is_empty() && moved.is_empty() && held.is_empty()
        };
        if self.loose[member].get(&class).is_some_and(is_empty) {
            self.loose[member].remove(&class);
        }
    }

    /// Where a part of a member stands that may go elsewhere.
    fn loose_parts(&mut self, part: usize, member: usize) -> Option<&mut BTreeSet<usize>> {
        let assigned = &self.spread.parts[part];
        let AssignablePart {
            holder, mobility, ..
        } = *assigned;
        let may_stay = holder.is_some_and(|holder| assigned.is_for(holder));
        let loose = self.loose[member].entry(self.class_of[part]).or_default();
        match mobility {
            PartMobility::Fixed => None,
            PartMobility::Movable if holder == Some(member) => Some(&mut loose.held),
            PartMobility::Movable if may_stay => Some(&mut loose.moved),
            PartMobility::Movable | PartMobility::Vacant => Some(&mut loose.vacant),
        }
    }

    fn set_load(&mut self, member: usize, load: usize) {
        let before = std::mem::replace(&mut self.spread.loads[member], load);
        let move_in = |set: &mut BTreeSet<(usize, usize)>| {
            if set.remove(&(before, member)) {
                set.insert((load, member));
            }
        };
        move_in(&mut self.by_load);
        for class in &self.classes_of[member] {
            move_in(&mut self.classes[*class].any);
            move_in(&mut self.classes[*class].takers);
        }
    }
}

// === impl PartMove ===

impl PartMove {
    /// The first of these parts goes to the member of these with the fewest.
    fn of(held: bool, parts: &BTreeSet<usize>, members: &BTreeSet<(usize, usize)>) -> Option<Self> {
        let ((load, to), part) = (*members.first()?, *parts.first()?);
        Some(Self {
            held,
            load,
            part,
            to,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(eligible: &[usize], holder: Option<usize>, mobility: PartMobility) -> AssignablePart {
        AssignablePart {
            eligible: eligible.to_vec(),
            holder,
            mobility,
        }
    }

    #[track_caller]
    fn check(name: &str, parts: &[AssignablePart], takes: &[bool], expected: &[Option<usize>]) {
        assert_eq!(assign(parts, takes), expected, "{name}");
    }

    /// A thousand parts over a hundred members: all on one of them, and each part with another set of eligible members.
    #[test]
    fn a_thousand_parts_over_a_hundred_members_take_bounded_work() {
        let all: Vec<usize> = (0..100).collect();
        let one = part(&all, Some(0), PartMobility::Movable);
        let (placed, looks) = assign_counted(&vec![one; 1_000], &[true; 100]);
        for member in all {
            assert_eq!(placed.iter().filter(|it| **it == Some(member)).count(), 10);
        }
        assert!(looks < 5_000, "{looks} looks for 990 moves from one member");

        let mut mixed = Vec::new();
        for index in 0..1_000 {
            // Each leaves out its own choice of members, and never the first one, which has it.
            let may_lead = |member: &usize| *member == 0 || (index >> (member % 10)) & 1 == 0;
            let eligible: Vec<usize> = (0..100).filter(may_lead).collect();
            mixed.push(part(&eligible, Some(0), PartMobility::Movable));
        }
        let (placed, looks) = assign_counted(&mixed, &[true; 100]);
        assert!(placed.iter().all(Option::is_some));
        assert!(
            looks < 1_000_000,
            "{looks} looks, where a move looks at each class at most"
        );
    }

    #[test]
    fn a_level_spread_costs_no_look_and_a_move_those_at_members_and_their_classes() {
        let held = |holder| part(&[0, 1], Some(holder), PartMobility::Movable);
        let looks = |parts: &[AssignablePart]| assign_counted(parts, &[true; 2]).1;
        assert_eq!(looks(&[held(0), held(1)]), 0);
        // Both members and a class for the move, and a member that has no two parts more.
        assert_eq!(looks(&[held(0), held(0)]), 4);
    }

    #[test]
    fn a_member_that_is_not_there_counts_for_nothing() {
        let of_three = |holder, mobility| part(&[0, 1, 2], Some(holder), mobility);
        let fixed = of_three(2, PartMobility::Fixed);
        check("a holder", &[fixed], &[true; 2], &[None]);
        let held = of_three(0, PartMobility::Movable);
        let apart = [Some(1), Some(0)];
        check("an eligible one", &[held.clone(), held], &[true; 2], &apart);
    }

    #[test]
    fn a_part_stays_where_it_must_and_goes_only_where_it_may() {
        use PartMobility::{Fixed, Movable, Vacant};
        let both = &[0, 1][..];
        check("no member", &[part(&[], None, Vacant)], &[], &[None]);
        check(
            "vacant ones go to the member with the fewest, a newcomer too",
            &[
                part(both, Some(0), Fixed),
                part(both, None, Vacant),
                part(both, None, Vacant),
            ],
            &[true, false],
            &[Some(0), Some(1), Some(0)],
        );
        check(
            "a place that was given is kept",
            &[part(both, Some(1), Vacant)],
            &[true, true],
            &[Some(1)],
        );
        check(
            "a place that was given goes first where there is a better one",
            &[
                part(both, Some(0), Movable),
                part(both, Some(0), Movable),
                part(both, Some(0), Vacant),
            ],
            &[true, true],
            &[Some(0), Some(0), Some(1)],
        );
        let (all, led_by_0) = (&[0, 1, 2][..], part(both, Some(0), Movable));
        check(
            "a part that makes room already goes on, and none that its member leads",
            &[
                part(all, Some(1), Movable),
                part(all, Some(0), Movable),
                led_by_0.clone(),
                led_by_0.clone(),
                led_by_0.clone(),
                led_by_0.clone(),
                led_by_0,
                part(&[2], Some(2), Movable),
            ],
            &[true; 3],
            &[1, 2, 1, 1, 0, 0, 0, 2].map(Some),
        );
        check(
            "no part moves among equals",
            &[part(both, Some(0), Movable)],
            &[true, true],
            &[Some(0)],
        );
        check(
            "a newcomer takes no part that is led",
            &[part(both, Some(0), Movable), part(both, Some(0), Movable)],
            &[true, false],
            &[Some(0), Some(0)],
        );
        check(
            "a fixed part counts and stays, also where its holder may not lead it, or is no member",
            &[
                part(&[1], Some(0), Fixed),
                part(&[1], None, Fixed),
                part(both, Some(0), Movable),
                part(both, Some(0), Movable),
            ],
            &[true, true],
            &[Some(0), None, Some(1), Some(0)],
        );
        check(
            "a holder that may not lead a part any more loses it",
            &[part(&[1], Some(0), Movable), part(both, Some(1), Movable)],
            &[true, true],
            &[Some(1), Some(0)],
        );
        check(
            "such a part is vacant, and goes to a newcomer too",
            &[
                part(both, Some(2), Movable),
                part(&[0], None, Vacant),
                part(&[0], None, Vacant),
            ],
            &[true, false, true],
            &[Some(1), Some(0), Some(0)],
        );
        check(
            "a number of no member counts for nothing",
            &[part(&[0, 7], Some(7), Movable), part(&[7], None, Vacant)],
            &[true],
            &[Some(0), None],
        );
    }
}
