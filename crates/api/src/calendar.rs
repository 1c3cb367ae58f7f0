//! The Gregorian calendar in days since 1970-01-01, for times that no library reaches.
//!
//! ```
//! use elector_api::calendar::{civil, days_since_epoch};
//!
//! assert_eq!(days_since_epoch(2000, 2, 29), 11_016);
//! assert_eq!(civil(11_016), (2000, 2, 29));
//! ```

/// The seconds of a day.
pub const DAY: i64 = 86_400;

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years begin in March, so that leap days come last.
#[must_use]
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
#[must_use]
pub fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The number of days of a month.
#[must_use]
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_eight_hundred_years_follow_each_other() {
        let mut next = (1600, 1, 1);
        for days in days_since_epoch(1600, 1, 1)..days_since_epoch(2400, 1, 1) {
            assert_eq!(civil(days), next);
            let (year, month, day) = next;
            assert_eq!(days_since_epoch(year, month, day), days);
            next = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == days_in_month(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!(next, (2400, 1, 1));
    }
}
