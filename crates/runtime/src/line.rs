//! Texts of others, cut to what a log line bears.

/// The part of a server's message that is repeated, in characters.
const LONGEST_MESSAGE: usize = 400;

/// The first line of a text, cut to what a log line bears.
pub(crate) fn one_line(text: &str) -> String {
    cut(
        text.trim().lines().next().unwrap_or_default(),
        LONGEST_MESSAGE,
    )
}

/// The beginning of a text, of so many characters at most.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The beginning of a text, of so many bytes at most.
#[cfg(feature = "events")]
pub(crate) fn cut_bytes(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    // The standard library's `floor_char_boundary` is newer than what this crate asks for.
    let end = (0..=most.saturating_sub(MARK.len())).rfind(|&end| text.is_char_boundary(end));
    format!("{}{MARK}", &text[..end.unwrap_or(0)])
}
