//! The parameter `shardSelector` of lists and watches.

use std::fmt;
use std::str::FromStr;

use super::field::ShardField;
use super::range::ShardRange;

/// The ranges of one field that a list or a watch is to bring, in order and joined where they touch.
///
/// `Display` writes the parameter as kube-apiserver 1.36 reads it: numbers of exactly 16 digits, but for the end of the
/// last range, which is 2^64. [`FromStr`] reads it as that server does, and so what it reports in `shardInfo.selector`.
/// Two that select the same are equal.
///
/// ```
/// use elector_protocol::shard::{ShardField, ShardLayout, ShardSelector};
///
/// let layout = ShardLayout::new(ShardField::Uid, 4).unwrap();
/// let led = [2, 3].into_iter().filter_map(|index| layout.range(index));
/// let selector = ShardSelector::new(ShardField::Uid, led).unwrap();
/// let text = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";
/// assert_eq!(selector.to_string(), text);
/// assert_eq!(text.parse(), Ok(selector));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardSelector {
    field: ShardField,
    ranges: Vec<ShardRange>,
}

/// The reason for which a text is no `shardSelector`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSelectorError {
    text: String,
    problem: &'static str,
}

/// The end of the last range, 2^64.
const END_OF_ALL: &str = "0x10000000000000000";

/// The digits of all other numbers.
const DIGITS: usize = 16;

/// The part of a refused text that is shown, in characters.
const SHOWN: usize = 100;

// === impl ShardSelector ===

impl ShardSelector {
    /// The selector of these ranges, in any order. `None` where there are none: no text says that nothing is wanted.
    pub fn new(field: ShardField, ranges: impl IntoIterator<Item = ShardRange>) -> Option<Self> {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut joined: Vec<ShardRange> = Vec::new();
        for range in ranges {
            match joined.last_mut().map(|last| (last.joined(range), last)) {
                Some((Some(both), last)) => *last = both,
                _ => joined.push(range),
            }
        }
        let ranges = joined;
        (!ranges.is_empty()).then_some(Self { field, ranges })
    }

    /// The field whose hash counts.
    pub const fn field(&self) -> ShardField {
        self.field
    }

    /// The ranges, in order, none touching the next.
    pub fn ranges(&self) -> &[ShardRange] {
        &self.ranges
    }

    /// True if an object whose field has this hash is selected.
    pub fn contains(&self, hash: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(hash))
    }
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().enumerate() {
            let (field, start) = (self.field, range.start());
            let or = if place == 0 { "" } else { " || " };
            write!(f, "{or}shardRange({field}, '0x{start:016x}', ")?;
            match range.last().checked_add(1) {
                Some(end) => write!(f, "'0x{end:016x}')")?,
                None => write!(f, "'{END_OF_ALL}')")?,
            }
        }
        Ok(())
    }
}

impl FromStr for ShardSelector {
    type Err = ShardSelectorError;

    fn from_str(text: &str) -> Result<Self, ShardSelectorError> {
        let error = |problem| ShardSelectorError {
            text: text.chars().take(SHOWN).collect(),
            problem,
        };
        let mut found: Option<(ShardField, Vec<ShardRange>)> = None;
        for call in text.split("||") {
            let (field, range) = parse_call(call.trim()).map_err(error)?;
            match &mut found {
                None => found = Some((field, vec![range])),
                Some((known, ranges)) if *known == field => ranges.push(range),
                Some(_) => return Err(error("all ranges must be of the same field")),
            }
        }
        let selector = found.and_then(|(field, ranges)| Self::new(field, ranges));
        selector.ok_or_else(|| error("it has no range"))
    }
}

// === impl ShardSelectorError ===

impl fmt::Display for ShardSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard selector {:?}: {}", self.text, self.problem)
    }
}

impl std::error::Error for ShardSelectorError {}

fn parse_call(call: &str) -> Result<(ShardField, ShardRange), &'static str> {
    let arguments = call
        .strip_prefix("shardRange")
        .and_then(|rest| rest.trim_start().strip_prefix('(')?.strip_suffix(')'))
        .ok_or("only shardRange(field, start, end) and || are allowed")?;
    let mut arguments = arguments.split(',').map(str::trim);
    let mut next = || arguments.next().ok_or("shardRange takes 3 arguments");
    let (field, start, end) = (next()?, next()?, next()?);
    if arguments.next().is_some() {
        return Err("shardRange takes 3 arguments");
    }
    let field = [ShardField::Uid, ShardField::Namespace]
        .into_iter()
        .find(|known| known.path() == field)
        .ok_or("the field must be object.metadata.uid or object.metadata.namespace")?;
    let start = parse_number(start)?;
    let end = parse_number(end)?;
    let range = end.checked_sub(1).and_then(|last| {
        let (start, last) = (u64::try_from(start).ok()?, u64::try_from(last).ok()?);
        ShardRange::new(start, last)
    });
    Ok((field, range.ok_or("start must be less than end")?))
}

fn parse_number(text: &str) -> Result<u128, &'static str> {
    let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let text = quoted('\'')
        .or_else(|| quoted('"'))
        .ok_or("start and end must be string literals")?;
    let digits = text
        .strip_prefix("0x")
        .ok_or("start and end must begin with 0x")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_number = digits.bytes().all(is_digit);
    if !is_number || digits.len() != DIGITS && text != END_OF_ALL {
        return Err("start and end must have 16 digits in lower case, but for 0x10000000000000000");
    }
    u128::from_str_radix(digits, 16).map_err(|_| "start and end must be numbers")
}
