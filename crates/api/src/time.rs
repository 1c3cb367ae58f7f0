//! MicroTime: how a wire time is written, and every form of it that is read.
//!
//! The calendar is computed here, not with `jiff::Timestamp`, whose range ends two hours before the last day of 9999
//! does: one candidate that writes the largest time must not make a whole list unreadable.

use std::fmt;

use elector_protocol::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::calendar::{DAY, civil, days_in_month, days_since_epoch};

/// Shows a [`Timestamp`] as the API server wants it: RFC 3339, exactly six digits of fraction, `Z`.
///
/// ```
/// use elector_api::Rfc3339;
/// use elector_protocol::Timestamp;
///
/// let time = Timestamp::from_micros(1_700_000_000_000_001).unwrap();
/// assert_eq!(Rfc3339(time).to_string(), "2023-11-14T22:13:20.000001Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rfc3339(pub Timestamp);

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TimeError {
    /// The text is not `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`, or names a day or an hour that does not exist.
    #[error("must be an RFC 3339 time")]
    Syntax,
    /// The time, brought to UTC, is not within the years 1 to 9999.
    #[error("must be within the years 1 to 9999")]
    Range,
}

/// Reads an RFC 3339 time with any number of fraction digits, which are cut to microseconds, and any offset.
///
/// # Errors
///
/// When the text is no such time, or outside of the years 1 to 9999.
pub fn parse_time(text: &str) -> Result<Timestamp, TimeError> {
    let mut rest = Scanner(text.as_bytes());
    let (year, month, day) = (
        rest.number(4)?,
        rest.after(b"-")?.number(2)?,
        rest.after(b"-")?.number(2)?,
    );
    let hour = rest.after(b"Tt ")?.number(2)?;
    let (minute, second) = (rest.after(b":")?.number(2)?, rest.after(b":")?.number(2)?);
    let micros = rest.fraction()?;
    let offset = rest.offset()?;
    let day_exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    // Second 60 is a leap second; it reads as the one before, as it does in other clients.
    if !day_exists || hour > 23 || minute > 59 || second > 60 || !rest.0.is_empty() {
        return Err(TimeError::Syntax);
    }
    let seconds =
        days_since_epoch(year, month, day) * DAY + hour * 3600 + minute * 60 + second.min(59);
    Timestamp::from_micros((seconds - offset) * 1_000_000 + micros).ok_or(TimeError::Range)
}

/// When an object was created, by the server's clock, which has whole seconds; `None` where the object does not say.
pub fn creation_time(metadata: &ObjectMeta) -> Option<Timestamp> {
    let time = metadata.creation_timestamp.as_ref()?;
    Timestamp::from_micros(time.0.as_microsecond())
}

/// The rest of a text.
struct Scanner<'a>(&'a [u8]);

// === impl Rfc3339 ===

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        let seconds = micros.div_euclid(1_000_000);
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        let second = seconds.rem_euclid(DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
            second / 3600,
            second / 60 % 60,
            second % 60,
            micros.rem_euclid(1_000_000)
        )
    }
}

// === impl Scanner ===

impl Scanner<'_> {
    /// Exactly this number of digits.
    fn number(&mut self, digits: usize) -> Result<i64, TimeError> {
        let (head, tail) = self.0.split_at_checked(digits).ok_or(TimeError::Syntax)?;
        self.0 = tail;
        head.iter().try_fold(0, |value, byte| match byte {
            b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
            _ => Err(TimeError::Syntax),
        })
    }

    /// Steps over one of these separators.
    fn after(&mut self, separators: &[u8]) -> Result<&mut Self, TimeError> {
        match self.0 {
            [first, tail @ ..] if separators.contains(first) => {
                self.0 = tail;
                Ok(self)
            }
            _ => Err(TimeError::Syntax),
        }
    }

    /// A fraction of a second in microseconds, zero where there is none. Digits past the sixth are dropped.
    fn fraction(&mut self) -> Result<i64, TimeError> {
        if self.after(b".,").is_err() {
            return Ok(0);
        }
        let digits = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return Err(TimeError::Syntax);
        }
        let kept = digits.min(6);
        let micros = self.number(kept)?;
        self.0 = &self.0[digits - kept..];
        Ok((kept..6).fold(micros, |value, _| value * 10))
    }

    /// The offset from UTC in seconds.
    fn offset(&mut self) -> Result<i64, TimeError> {
        if self.after(b"Zz").is_ok() {
            return Ok(0);
        }
        let sign = match self.after(b"+") {
            Ok(_) => 1,
            Err(_) => self.after(b"-").map(|_| -1)?,
        };
        let (hours, minutes) = (self.number(2)?, self.after(b":")?.number(2)?);
        // The bounds of Go, which reads what the API server lets in.
        if hours > 24 || minutes > 60 {
            return Err(TimeError::Syntax);
        }
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    fn micros(text: &str) -> Result<i64, TimeError> {
        parse_time(text).map(Timestamp::as_micros)
    }

    #[test]
    fn every_form_that_servers_and_people_write_is_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1970-01-01T00:00:00.0000019Z", 1),
            ("1970-01-01T00:00:00,5Z", 500_000),
            ("1970-01-01 01:00:00+01:00", 0),
            ("1969-12-31t19:30:00.25-04:30", 250_000),
            ("1970-01-02T01:00:00+24:60", 0),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000),
            ("0001-01-01T00:00:00Z", Timestamp::MIN.as_micros()),
            ("9999-12-31T23:59:59.999999Z", Timestamp::MAX.as_micros()),
        ] {
            assert_eq!(micros(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "now",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00Z ",
            "1970-01-01T00:00:00+1:00",
            "1970-01-01T00:00:00+25:00",
            "1970-01-01T00:00:00+00:61",
            "1970-04-31T00:00:00Z",
            "1970-13-01T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "+970-01-01T00:00:00Z",
            "1970-01-01T00:00:00Ž",
        ] {
            assert_eq!(micros(text), Err(TimeError::Syntax), "{text}");
        }
        for text in [
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(micros(text), Err(TimeError::Range), "{text}");
        }
    }

    #[test]
    fn the_ends_of_time_are_written_in_full() {
        let ends = [Timestamp::MIN, Timestamp::MAX].map(|time| Rfc3339(time).to_string());
        let expected = ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"];
        assert_eq!(ends, expected);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros()) {
            let time = Timestamp::from_micros(micros).unwrap();
            assert_eq!(parse_time(&Rfc3339(time).to_string()), Ok(time));
        }

        #[test]
        fn the_calendar_agrees_with_another_one(seconds in -62_135_596_800..253_402_207_200i64) {
            let other = k8s_openapi::jiff::Timestamp::from_second(seconds).unwrap();
            let time = Timestamp::from_micros(seconds * 1_000_000).unwrap();
            assert_eq!(Rfc3339(time).to_string(), format!("{other:.6}"));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = parse_time(&text);
        }
    }
}
