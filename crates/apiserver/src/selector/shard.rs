//! The parameter `shardSelector` of Kubernetes 1.36: ranges of the hash of one field.

use serde_json::{Map, Value};

/// A disjunction of ranges of one field; without any it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSelector(Vec<HashRange>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct HashRange {
    field: &'static str,
    start: u128,
    end: u128,
}

/// The fields whose hash can be selected by.
const FIELDS: [(&str, &str); 2] = [
    ("object.metadata.uid", "uid"),
    ("object.metadata.namespace", "namespace"),
];

/// The number behind the largest hash, which alone has 17 digits.
const END: u128 = 1 << 64;

// === impl RangeSelector ===

impl RangeSelector {
    /// Reads the parameter. The errors are those of the API server, but for texts that are no expression.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(
                "empty shard selector is not allowed; omit the parameter for unfiltered lists"
                    .to_owned(),
            );
        }
        let ranges = text.split("||").map(|call| HashRange::parse(call.trim()));
        let ranges: Vec<_> = ranges.collect::<Result<_, _>>()?;
        let first = ranges.first().map(|range| range.field).unwrap_or_default();
        if let Some(other) = ranges.iter().find(|range| range.field != first) {
            let other = other.field;
            return Err(format!(
                "all shard ranges must use the same field, got {first:?} and {other:?}"
            ));
        }
        Ok(Self(ranges))
    }

    /// True if it selects this object.
    pub(super) fn matches(&self, object: &Map<String, Value>) -> bool {
        let Some(range) = self.0.first() else {
            return true;
        };
        let name = FIELDS.iter().find(|(path, _)| *path == range.field);
        let name = name.map(|(_, name)| *name).unwrap_or_default();
        let text = object["metadata"][name].as_str().unwrap_or_default();
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let hash = u128::from(hash);
        let mut ranges = self.0.iter();
        ranges.any(|range| range.start <= hash && hash < range.end)
    }

    /// The text that `metadata.shardInfo` of a list reports, `None` where nothing was selected.
    pub(crate) fn reported(&self) -> Option<String> {
        let number = |number| match number {
            END => format!("0x{END:x}"),
            number => format!("0x{number:016x}"),
        };
        let ranges = self.0.iter().map(|HashRange { field, start, end }| {
            let (start, end) = (number(*start), number(*end));
            format!("shardRange({field}, '{start}', '{end}')")
        });
        let text = ranges.collect::<Vec<_>>().join(" || ");
        (!text.is_empty()).then_some(text)
    }
}

// === impl HashRange ===

impl HashRange {
    fn parse(call: &str) -> Result<Self, String> {
        let only = "only shardRange() and || are allowed";
        let (function, rest) = call.split_once('(').ok_or_else(|| {
            "unexpected expression kind 3; expected shardRange() call or || operator".to_owned()
        })?;
        let function = function.trim();
        if function != "shardRange" {
            return Err(format!("unsupported function {function:?}; {only}"));
        }
        let arguments = rest.strip_suffix(')').unwrap_or(rest).split(',');
        let arguments = arguments.map(str::trim).filter(|it| !it.is_empty());
        let arguments: Vec<_> = arguments.collect();
        let [path, start, end] = arguments[..] else {
            let count = arguments.len();
            return Err(format!(
                "shardRange() requires exactly 3 arguments, got {count}"
            ));
        };
        let field = FIELDS.iter().find(|(known, _)| *known == path);
        let (field, _) = *field.ok_or_else(|| {
            let supported = FIELDS.map(|(path, _)| path).join(", ");
            format!("unsupported field path {path:?}; supported: {supported}")
        })?;
        let (from, to) = (number(start, "hexStart")?, number(end, "hexEnd")?);
        if from >= to {
            let (start, end) = (start.trim_matches('\''), end.trim_matches('\''));
            return Err(format!(
                "shard range start {start} must be less than end {end}"
            ));
        }
        Ok(Self {
            field,
            start: from,
            end: to,
        })
    }
}

/// The number of a string literal.
fn number(literal: &str, name: &str) -> Result<u128, String> {
    let text = literal
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .ok_or_else(|| format!("{name} must be a string literal, got {literal}"))?;
    let digits = text
        .strip_prefix("0x")
        .ok_or_else(|| format!("{name} must have '0x' prefix, got {text:?}"))?;
    let length = digits.len();
    if length == 0 {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if length > 17 {
        return Err(format!(
            "{name}: hex value too long ({length} chars, max 17): {digits:?}"
        ));
    }
    let is_digit = |letter: char| letter.is_ascii_digit() || ('a'..='f').contains(&letter);
    if let Some(wrong) = digits.chars().find(|letter| !is_digit(*letter)) {
        let wrong = wrong.to_string();
        return Err(format!(
            "{name}: invalid hex character {wrong:?} in {text:?}"
        ));
    }
    let number = u128::from_str_radix(digits, 16).unwrap_or_default();
    if length == 17 && number != END {
        return Err(format!(
            "{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got {text:?}"
        ));
    }
    if length < 16 {
        let padded = format!("0x{digits:0>16}");
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean {padded:?}?)"
        ));
    }
    Ok(number)
}
