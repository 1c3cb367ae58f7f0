//! The flags of a group.

use clap::Args;
use elector_candidate::Parts;

/// The parts of a group that this process stands for.
#[derive(Args, Debug)]
pub(super) struct GroupArgs {
    /// Name of a group, in the place of a lease: this process stands for each of its parts, whose leases are called
    /// NAME-PART, and runs the command once for each part that it leads. A command whose part is lost is stopped alone;
    /// one that exits gives its part back, and this process pauses for that part, from 1s doubling up to 1m
    #[arg(
        long,
        value_name = "NAME",
        requires = "part",
        conflicts_with_all = ["lease", "http", "endpoint_slice", "label_pod"],
        env = "ELECTOR_GROUP"
    )]
    group: Option<String>,

    /// Name of a part of the group, to be given for each part, and the same in all processes
    #[arg(
        long,
        value_name = "PART",
        requires = "group",
        value_delimiter = ',',
        env = "ELECTOR_PARTS"
    )]
    part: Vec<String>,
}

// === impl GroupArgs ===

impl GroupArgs {
    /// The name of the group, if there is one.
    pub(super) fn name(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Its parts.
    pub(super) fn parts(&self) -> Parts {
        Parts::named(self.part.iter().map(String::as_str))
    }
}
