//! Times as the API server reads them: strictly by the layout of their field, refused in Go's words.
//!
//! Years reach from 0 to 10000 here: what an offset makes of the first and the last hour is stored and shown.

use elector_api::calendar::{DAY, civil, days_in_month, days_since_epoch};

/// A layout of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLayout {
    /// Exactly six digits of fraction: `renewTime` and its like.
    Micro,
    /// Whole seconds, a fraction is read and dropped: times of the metadata.
    Seconds,
}

/// A point in time, UTC, as it is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoTime {
    /// Since 1970.
    seconds: i64,
    micros: i64,
}

/// The rest of a text, and the whole of it.
struct TimeParser<'a> {
    whole: &'a str,
    rest: &'a str,
    layout: TimeLayout,
}

// === impl TimeLayout ===

impl TimeLayout {
    /// As Go writes it.
    const fn text(self) -> &'static str {
        match self {
            Self::Micro => "2006-01-02T15:04:05.000000Z07:00",
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
        }
    }
}

// === impl GoTime ===

impl GoTime {
    /// Reads a time. `None` is the zero time, which counts as absent.
    pub(crate) fn parse(text: &str, layout: TimeLayout) -> Result<Option<Self>, String> {
        let mut parser = TimeParser {
            whole: text,
            rest: text,
            layout,
        };
        let year = parser.digits(4, "2006")?;
        parser.literal("-")?;
        let month = parser.digits(2, "01")?;
        parser.within(month, 1..=12, "month")?;
        parser.literal("-")?;
        let day = parser.digits(2, "02")?;
        parser.literal("T")?;
        let hour = parser.digits(2, "15")?;
        parser.within(hour, 0..=23, "hour")?;
        parser.literal(":")?;
        let minute = parser.digits(2, "04")?;
        parser.within(minute, 0..=59, "minute")?;
        parser.literal(":")?;
        let second = parser.digits(2, "05")?;
        parser.within(second, 0..=59, "second")?;
        let micros = match layout {
            TimeLayout::Micro => parser.micros()?,
            TimeLayout::Seconds => {
                parser.skip_fraction();
                0
            }
        };
        let offset = parser.zone()?;
        if !parser.rest.is_empty() {
            return Err(format!(
                "parsing time {text:?}: extra text: {:?}",
                parser.rest
            ));
        }
        parser.within(day, 1..=days_in_month(year, month), "day")?;
        let days = days_since_epoch(year, month, day);
        let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
        let time = Self { seconds, micros };
        Ok(Some(time).filter(|time| *time != Self::ZERO))
    }

    /// As the API server writes it.
    pub(crate) fn format(self, layout: TimeLayout) -> String {
        let (year, month, day) = civil(self.seconds.div_euclid(DAY));
        let second = self.seconds.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let micros = self.micros;
        match layout {
            TimeLayout::Micro => {
                format!(
                    "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
                )
            }
            TimeLayout::Seconds => {
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
            }
        }
    }

    /// The first second of the year 1.
    const ZERO: Self = Self {
        seconds: -62_135_596_800,
        micros: 0,
    };
}

// === impl TimeParser ===

impl TimeParser<'_> {
    /// Exactly so many digits.
    fn digits(&mut self, count: usize, element: &str) -> Result<i64, String> {
        let head = self
            .rest
            .get(..count)
            .filter(|head| head.bytes().all(|byte| byte.is_ascii_digit()));
        let number = head
            .and_then(|head| head.parse().ok())
            .ok_or_else(|| self.bad(element))?;
        self.rest = &self.rest[count..];
        Ok(number)
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.bad(text))?;
        Ok(())
    }

    /// A point or a comma and six digits.
    fn micros(&mut self) -> Result<i64, String> {
        let head = self
            .rest
            .get(..7)
            .filter(|head| head.starts_with(['.', ',']));
        let digits = head
            .map(|head| &head[1..])
            .filter(|head| head.bytes().all(|byte| byte.is_ascii_digit()));
        let micros = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| self.bad(".000000"))?;
        self.rest = &self.rest[7..];
        Ok(micros)
    }

    fn skip_fraction(&mut self) {
        if let Some(fraction) = self.rest.strip_prefix(['.', ',']) {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                self.rest = &fraction[digits..];
            }
        }
    }

    /// The offset from UTC in seconds.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.bad("Z07:00");
        let sign = match self.rest.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(bad),
        };
        let Some((hours, minutes)) = self.rest.get(1..6).and_then(|zone| zone.split_once(':'))
        else {
            return Err(bad);
        };
        let number = |text: &str| {
            text.parse::<u16>()
                .ok()
                .filter(|_| text.len() == 2)
                .map(i64::from)
        };
        let (Some(hours), Some(minutes)) = (number(hours), number(minutes)) else {
            return Err(bad);
        };
        self.within(hours, 0..=24, "time zone offset hour")?;
        self.within(minutes, 0..=60, "time zone offset minute")?;
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3600 + minutes * 60))
    }

    fn within(
        &self,
        number: i64,
        range: std::ops::RangeInclusive<i64>,
        what: &str,
    ) -> Result<(), String> {
        if range.contains(&number) {
            return Ok(());
        }
        Err(format!(
            "parsing time {:?}: {what} out of range",
            self.whole
        ))
    }

    fn bad(&self, element: &str) -> String {
        let (whole, layout, rest) = (self.whole, self.layout.text(), self.rest);
        format!("parsing time {whole:?} as {layout:?}: cannot parse {rest:?} as {element:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases that no recorded answer shows.
    #[test]
    fn fractions_of_whole_seconds_are_dropped_and_refusals_are_those_of_go() {
        let time = GoTime::parse("2026-01-02T03:04:05.9Z", TimeLayout::Seconds);
        let time = time.unwrap().unwrap();
        assert_eq!(time.format(TimeLayout::Seconds), "2026-01-02T03:04:05Z");
        for (text, end) in [
            ("2026-02-20T00:60:00.000000Z", ": minute out of range"),
            ("2026-02-20T00:00:00.000000ZZ", ": extra text: \"Z\""),
            (
                "2026-01-02T03:04:05.123456+1:00",
                " as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+1:00\" as \"Z07:00\"",
            ),
        ] {
            let error = GoTime::parse(text, TimeLayout::Micro).unwrap_err();
            assert_eq!(error, format!("parsing time {text:?}{end}"));
        }
    }
}
