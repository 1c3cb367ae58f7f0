//! The analysis of the register's log: overlaps of two clients at work, work of superseded clients, and lost work.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use crate::register::GuardedOperation;

/// The rule that finds the newer one of two periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their tokens, which grow from leader to leader.
    ByToken,
    /// By their first operations; for clients whose tokens are no good for it.
    ByFirstOperation,
}

/// The result of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Analysis {
    /// For how long two clients were at work, seconds. A client is at work between two operations of a period that
    /// are no more than [`AT_WORK`] apart, so that a single one that comes late is an instant and not a time.
    pub two_believers: f64,
    /// Operations that came after one of a newer period of another client.
    pub stale: usize,
    /// Those that a fence lets through all the same.
    pub past_the_fence: usize,
    /// Operations that a fence refuses although they were not stale.
    pub wrongly_refused: usize,
    /// The longest time without an operation that was not stale, seconds.
    pub worst_gap: f64,
    /// In how many of all quarters of a second there was an operation that was not stale, in percent. How busy the
    /// machine is does not enter.
    pub work: f64,
}

/// The greatest distance between operations of a client that is at work without a break.
pub const AT_WORK: Duration = Duration::from_secs(1);

/// The time for which one operation shows that work was done: five times the pause between two.
const SLOT: Duration = Duration::from_millis(250);

/// One client at work.
#[derive(Debug)]
struct WorkPeriod<'o> {
    client: &'o str,
    number: u64,
    token: u64,
    /// Times at work, in order.
    at_work: Vec<Range<Duration>>,
}

// === impl Analysis ===

impl Analysis {
    /// Reads a log. Work and gaps are those of the window.
    pub fn read(operations: &[GuardedOperation], order: Order, window: &Range<Duration>) -> Self {
        let mut periods: Vec<WorkPeriod<'_>> = Vec::new();
        let mut read = Self::default();
        let slot = |at: Duration| at.saturating_sub(window.start).as_millis() / SLOT.as_millis();
        let (mut slots, mut last) = (BTreeSet::new(), window.start);
        let gap = |from: Duration, to: Duration, read: &mut Self| {
            let gap = to.saturating_sub(from);
            read.worst_gap = read.worst_gap.max(gap.as_secs_f64());
        };
        for operation in operations.iter().filter(|one| one.at < window.end) {
            let index = WorkPeriod::note(&mut periods, operation);
            let period = &periods[index];
            let superseded = periods.iter().enumerate().any(|(other, newer)| {
                newer.client != period.client
                    && match order {
                        Order::ByToken => newer.token > period.token,
                        Order::ByFirstOperation => other > index,
                    }
            });
            if superseded {
                read.stale += 1;
                read.past_the_fence += usize::from(!operation.refused);
                continue;
            }
            read.wrongly_refused += usize::from(operation.refused);
            if operation.at >= window.start {
                gap(last, operation.at, &mut read);
                last = operation.at;
                slots.insert(slot(operation.at));
            }
        }
        gap(last, window.end, &mut read);
        let worked = SLOT * u32::try_from(slots.len()).unwrap_or(u32::MAX);
        read.work = 100.0 * worked.div_duration_f64(window.end - window.start);
        read.two_believers = two_at_work(&periods).as_secs_f64();
        read
    }

    /// The client at work from each of these seconds on, counted from `from`: by its number, in the order in which they came;
    /// empty for none. A pause that no quarter of a second misses is none.
    pub(crate) fn changes(operations: &[GuardedOperation], from: Duration) -> Vec<(f64, String)> {
        let mut periods: Vec<WorkPeriod<'_>> = Vec::new();
        for operation in operations {
            WorkPeriod::note(&mut periods, operation);
        }
        let mut clients: Vec<(&str, Vec<&Range<Duration>>)> = Vec::new();
        for WorkPeriod {
            client, at_work, ..
        } in &periods
        {
            match clients.iter_mut().find(|(known, _)| known == client) {
                Some((_, times)) => times.extend(at_work),
                None => clients.push((client, at_work.iter().collect())),
            }
        }
        let ends = periods.iter().flat_map(|period| &period.at_work);
        let ends = ends.flat_map(|time| [time.start, time.end]);
        let moments: BTreeSet<Duration> = ends.filter(|at| *at > from).chain([from]).collect();
        let mut changes: Vec<(f64, String)> = Vec::new();
        for moment in moments {
            let working = (1..).zip(&clients).filter(|(_, (_, times))| {
                let mut times = times.iter();
                times.any(|time| time.contains(&moment))
            });
            let working: Vec<u32> = working.map(|(number, _)| number).collect();
            let worker = match working.as_slice() {
                [] => String::new(),
                [number] => format!("leader {number}"),
                _ => "two at once".to_owned(),
            };
            let at = (moment - from).as_secs_f64();
            changes.pop_if(|(since, worker)| worker.is_empty() && at - *since < SLOT.as_secs_f64());
            if changes.last().is_none_or(|(_, before)| *before != worker) {
                changes.push((at, worker));
            }
        }
        changes
    }

    /// The violation, if less work was done than this.
    pub(crate) fn below(&self, floor: f64) -> Option<String> {
        let work = self.work;
        (work < floor)
            .then(|| format!("work was done for {work:.0} % of the time, not for {floor:.0} %"))
    }

    /// The worse of each, for work the median, over several runs.
    pub fn worst<'t>(all: impl IntoIterator<Item = &'t Self>) -> Self {
        let (mut worst, mut work) = (Self::default(), Vec::new());
        for one in all {
            worst = Self {
                two_believers: worst.two_believers.max(one.two_believers),
                stale: worst.stale.max(one.stale),
                past_the_fence: worst.past_the_fence.max(one.past_the_fence),
                wrongly_refused: worst.wrongly_refused.max(one.wrongly_refused),
                worst_gap: worst.worst_gap.max(one.worst_gap),
                work: 0.0,
            };
            work.push(one.work);
        }
        work.sort_by(f64::total_cmp);
        let at = |place: usize| work.get(place).copied().unwrap_or_default();
        let low = work.len().saturating_sub(1) / 2;
        worst.work = f64::midpoint(at(low), at(work.len() / 2));
        worst
    }
}

// === impl WorkPeriod ===

impl<'o> WorkPeriod<'o> {
    /// Adds an operation to its period; which one that is.
    fn note(periods: &mut Vec<Self>, operation: &'o GuardedOperation) -> usize {
        let (client, number) = (operation.client.as_str(), operation.period);
        let same = |period: &Self| period.client == client && period.number == number;
        let index = periods.iter().position(same).unwrap_or_else(|| {
            periods.push(Self {
                client,
                number,
                token: operation.token,
                at_work: Vec::new(),
            });
            periods.len() - 1
        });
        let at_work = &mut periods[index].at_work;
        match at_work.last_mut() {
            Some(time) if operation.at <= time.end + AT_WORK => time.end = operation.at,
            _ => at_work.push(operation.at..operation.at),
        }
        index
    }
}

/// For how long two clients or more were at work at the same time.
fn two_at_work(periods: &[WorkPeriod<'_>]) -> Duration {
    let mut overlaps: Vec<Range<Duration>> = Vec::new();
    for (index, one) in periods.iter().enumerate() {
        for other in periods[index + 1..]
            .iter()
            .filter(|other| other.client != one.client)
        {
            for (a, b) in one
                .at_work
                .iter()
                .flat_map(|a| other.at_work.iter().map(move |b| (a, b)))
            {
                let both = a.start.max(b.start)..a.end.min(b.end);
                if both.start < both.end {
                    overlaps.push(both);
                }
            }
        }
    }
    // Three at once are counted once.
    overlaps.sort_by_key(|both| both.start);
    let (mut sum, mut until) = (Duration::ZERO, Duration::ZERO);
    for both in overlaps {
        sum += both.end.saturating_sub(both.start.max(until));
        until = until.max(both.end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Operations of a client every 100 ms.
    fn works(client: &str, token: u64, from: f64, to: f64) -> Vec<GuardedOperation> {
        let mut operations = Vec::new();
        let mut at = from;
        while at <= to + 1e-9 {
            operations.push(GuardedOperation {
                at: Duration::from_secs_f64(at),
                client: client.to_owned(),
                period: 1,
                token,
                refused: false,
            });
            at += 0.1;
        }
        operations
    }

    fn log(parts: &[Vec<GuardedOperation>]) -> Vec<GuardedOperation> {
        let mut all = parts.concat();
        all.sort_by_key(|one| one.at);
        let mut highest = 0;
        for one in &mut all {
            one.refused = one.token < highest;
            highest = highest.max(one.token);
        }
        all
    }

    fn read(operations: &[GuardedOperation], order: Order) -> Analysis {
        Analysis::read(operations, order, &(Duration::ZERO..10 * SECOND))
    }

    #[test]
    fn one_after_the_other_is_no_overlap() {
        let log = log(&[works("a", 1, 0.0, 4.0), works("b", 2, 6.0, 10.0)]);
        let read = read(&log, Order::ByToken);
        assert_eq!((read.two_believers, read.stale), (0.0, 0));
        assert!((read.worst_gap - 2.0).abs() < 1e-6);
        // Of forty quarters, the seven between 4.25 and 6 s have no operation.
        assert!((read.work - 82.5).abs() < 1e-6, "{}", read.work);
    }

    #[test]
    fn two_at_work_are_timed_and_the_older_one_is_stale() {
        let log = log(&[works("a", 1, 0.0, 5.05), works("b", 2, 3.0, 9.9)]);
        for order in [Order::ByToken, Order::ByFirstOperation] {
            let read = read(&log, order);
            assert!((read.two_believers - 2.0).abs() < 0.15, "{read:?}");
            assert!((20..=21).contains(&read.stale), "{read:?}");
            assert_eq!((read.past_the_fence, read.wrongly_refused), (0, 0));
        }
    }

    #[test]
    fn changes_name_the_client_at_work_and_leave_out_a_short_pause() {
        let mut shifted = works("a", 2, 4.2, 6.0);
        shifted.iter_mut().for_each(|one| one.period = 2);
        let all = [
            works("a", 1, 0.0, 4.0),
            shifted,
            works("b", 3, 8.0, 10.0),
            works("c", 4, 9.0, 12.0),
        ];
        let told = Analysis::changes(&log(&all), 3 * SECOND);
        let told: Vec<_> = told
            .iter()
            .map(|(at, who)| format!("{at:.0} {who}"))
            .collect();
        let changes = [
            "0 leader 1",
            "3 ",
            "5 leader 2",
            "6 two at once",
            "7 leader 3",
            "9 ",
        ];
        assert_eq!(told, changes);
    }

    #[test]
    fn a_single_late_operation_is_stale_and_takes_no_time() {
        let late = works("a", 1, 8.0, 8.0);
        let log = log(&[works("a", 1, 0.0, 3.0), works("b", 2, 4.0, 9.9), late]);
        let read = read(&log, Order::ByToken);
        assert_eq!((read.two_believers, read.stale), (0.0, 1));
    }

    #[test]
    fn tokens_that_fall_refuse_the_wrong_one() {
        let log = log(&[works("a", 5, 0.0, 3.0), works("b", 0, 4.0, 4.4)]);
        let read = read(&log, Order::ByFirstOperation);
        assert_eq!((read.stale, read.wrongly_refused), (0, 5));
    }

    #[test]
    fn tokens_that_do_not_grow_let_stale_operations_through() {
        let log = log(&[works("a", 0, 0.0, 5.0), works("b", 0, 4.0, 9.0)]);
        let read = read(&log, Order::ByFirstOperation);
        assert!(read.past_the_fence > 5 && read.past_the_fence == read.stale);
    }

    #[test]
    fn the_worst_of_several_runs_and_their_mean_work() {
        let one = Analysis {
            stale: 3,
            work: 50.0,
            ..Analysis::default()
        };
        let other = Analysis {
            worst_gap: 2.0,
            work: 100.0,
            ..Analysis::default()
        };
        let worst = Analysis::worst([&one, &other]);
        assert_eq!((worst.stale, worst.worst_gap, worst.work), (3, 2.0, 75.0));
    }
}
