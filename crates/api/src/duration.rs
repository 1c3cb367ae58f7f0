//! Durations as Go writes them, which is how Kubernetes' flags and annotations have them.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DurationError {
    /// The text is empty, has an unknown unit or is no number.
    #[error("must be a duration such as 15s, 1m30s or 250ms")]
    Syntax,
    /// The duration is below zero.
    #[error("must not be negative")]
    Negative,
    /// The duration does not fit into 64 bits of nanoseconds, the range of Go's durations (292 years).
    #[error("is too long")]
    TooLong,
}

/// Reads a Go duration: decimal numbers, each with a unit of `h`, `m`, `s`, `ms`, `us`, `µs` or `ns`; `0` alone is
/// zero.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(elector_api::parse_duration("1m30.5s"), Ok(Duration::from_millis(90_500)));
/// assert!(elector_api::parse_duration("15").is_err());
/// ```
///
/// # Errors
///
/// When the text is no duration, is negative, or longer than Go can say.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Syntax);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, tail) = one_part(rest)?;
        total = total.checked_add(nanos).ok_or(DurationError::TooLong)?;
        rest = tail;
    }
    if i64::try_from(total).is_err() {
        return Err(DurationError::TooLong);
    }
    if negative && total > 0 {
        return Err(DurationError::Negative);
    }
    Ok(Duration::from_nanos(total))
}

/// Reads a Go duration or a bare number of seconds, as people write annotations and kubectl's `--request-timeout`.
///
/// # Errors
///
/// As [`parse_duration`].
pub fn parse_duration_or_seconds(text: &str) -> Result<Duration, DurationError> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !bare {
        return parse_duration(text);
    }
    let seconds = text.parse().map_err(|_| DurationError::TooLong)?;
    Ok(Duration::from_secs(seconds))
}

/// One number with its unit, in nanoseconds, and what follows it.
fn one_part(text: &str) -> Result<(u64, &str), DurationError> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or(DurationError::Syntax)?;
    let (number, tail) = text.split_at(end);
    let end = tail
        .find(|c: char| c.is_ascii_digit() || c == '.')
        .unwrap_or(tail.len());
    let (unit, tail) = tail.split_at(end);
    let unit: u64 = match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look alike, and both are in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::Syntax),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(DurationError::Syntax);
    }
    let whole: u64 = match whole {
        "" => 0,
        digits => digits.parse().map_err(|_| DurationError::TooLong)?,
    };
    let mut nanos = whole.checked_mul(unit).ok_or(DurationError::TooLong)?;
    let mut scale = unit;
    for digit in fraction.bytes() {
        scale /= 10;
        nanos = nanos
            .checked_add(u64::from(digit - b'0') * scale)
            .ok_or(DurationError::TooLong)?;
    }
    Ok((nanos, tail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("-0s", 0),
            ("15s", 15_000_000_000),
            ("+1h2m3.5s", 3_723_500_000_000),
            ("300ms", 300_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1us1\u{b5}s1\u{3bc}s1ns", 3001),
            ("0.0000000001s", 0),
            ("1m1m", 120_000_000_000),
        ] {
            let expected = Ok(Duration::from_nanos(nanos));
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (text, error) in [
            ("", DurationError::Syntax),
            ("-", DurationError::Syntax),
            ("15", DurationError::Syntax),
            ("1d", DurationError::Syntax),
            ("s", DurationError::Syntax),
            (".s", DurationError::Syntax),
            ("1.2.3s", DurationError::Syntax),
            ("1s ", DurationError::Syntax),
            ("1 s", DurationError::Syntax),
            ("-1s", DurationError::Negative),
            ("9999999h", DurationError::TooLong),
            ("9223372037s", DurationError::TooLong),
            ("99999999999999999999s", DurationError::TooLong),
        ] {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn bare_numbers_are_seconds_where_asked_for() {
        assert_eq!(parse_duration_or_seconds("15"), Ok(Duration::from_secs(15)));
        let expected = Ok(Duration::from_secs(15));
        assert_eq!(parse_duration_or_seconds("15s"), expected);
        assert_eq!(parse_duration_or_seconds(""), Err(DurationError::Syntax));
        let expected = Err(DurationError::TooLong);
        assert_eq!(parse_duration_or_seconds("99999999999999999999"), expected);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), part in "[-+.0-9smhnuµ]{0,30}") {
            let _ = (parse_duration(&text), parse_duration(&part));
        }
    }
}
