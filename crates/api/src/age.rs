//! Ages as kubectl prints them.

/// An age in seconds as kubectl prints it, in two units at most: `5m`, `3h12m`; `<invalid>` where it is less than
/// -1, as for a time that is still to come.
///
/// ```
/// assert_eq!(elector_api::age(185), "3m5s");
/// ```
pub fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |whole: i64, unit: &str, part: i64, of: &str| match part {
        0 => format!("{whole}{unit}"),
        part => format!("{whole}{unit}{part}{of}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..120 => format!("{}s", seconds.max(0)),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_as_kubectl_tells_them() {
        for (seconds, expected) in [
            (i64::MIN, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (3600, "60m"),
            (10_860, "3h1m"),
            (86_400, "24h"),
            (176_400, "2d1h"),
            (864_000, "10d"),
            (65_000_000, "2y22d"),
            (400_000_000, "12y"),
        ] {
            assert_eq!(age(seconds), expected);
        }
    }
}
