//! All runs: those that must be safe, and one for each mutant.

mod acquisition;
mod base;
mod broken;
mod gaps;
mod live;
mod safe;
mod strangers;
mod sweep;

use super::run::Run;

/// Every run, in the order of the table.
pub fn runs() -> Vec<Run> {
    [
        safe::runs(),
        sweep::runs(),
        strangers::runs(),
        gaps::runs(),
        live::runs(),
        broken::runs(),
        acquisition::runs(),
    ]
    .concat()
}

#[cfg(test)]
mod tests;
