//! `cargo xtask surface`: everything that operators and other programs hold on to, as it was at a revision and as it is.
//!
//! Flags with their help are those of the built programs, and the public API is that of the libraries. Log lines, metrics,
//! Events and exit codes are read from the tokens of the code that ships.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::cargo_tool::{CargoTool, TYPES_OF_KUBERNETES};
use crate::commands::{self, cargo, show_and_run};
use crate::{lines, paths, revision};

const API: CargoTool = CargoTool {
    name: "cargo-public-api",
    version: "0.52.0",
};

/// The libraries that other programs link.
const LIBRARIES: [&str; 8] = [
    "elector-api",
    "elector-apiserver",
    "elector-candidate",
    "elector-protocol",
    "elector-runtime",
    "elector-testing",
    "elector-verify",
    "elector-workqueue",
];

/// Macros that write a line into the log.
const LOG_MACROS: [&str; 6] = ["debug", "error", "event", "info", "trace", "warn"];

/// The texts of one tree, by the file that each is written to.
type Surface = BTreeMap<String, BTreeSet<String>>;

/// Writes the surface at that revision and the present one into files below target/surface, and prints what differs.
///
/// # Errors
/// When one of the trees cannot be built or read.
pub(crate) fn compare(since: &str) -> Result<()> {
    API.ensure()?;
    let folder = paths::workspace().join("target/surface");
    let sides = [since, "HEAD"].map(|revision| record(&folder, revision));
    let [before, after] = sides;
    let mut difference = Command::new("git");
    difference
        .args(["diff", "--no-index", "--no-color", "--unified=0"])
        .args([before?, after?]);
    // Its exit status says that something differs.
    difference.status().context("failed to run git diff")?;
    Ok(())
}

/// The folder of the files of one revision.
fn record(folder: &Path, revision: &str) -> Result<PathBuf> {
    let (tree, commit) = revision::checkout(folder, revision)?;
    let into = folder.join(commit);
    if into.is_dir() {
        return Ok(into);
    }
    let mut surface = Surface::new();
    for file in lines::sources(&tree)? {
        if file.is_test || !file.path.starts_with("crates/") {
            continue;
        }
        let Ok(tokens) = file.text.parse::<TokenStream>() else {
            bail!("{} of {revision} is no Rust", file.path);
        };
        read_tokens(&file.path, tokens, &mut surface);
    }
    let help = help(folder, &tree)?;
    let partial = folder.join("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial)?;
    fs::write(partial.join("help.txt"), help)?;
    for (name, texts) in surface {
        let texts: Vec<_> = texts.into_iter().collect();
        fs::write(partial.join(name), texts.join("\n") + "\n")?;
    }
    for library in LIBRARIES {
        let mut api = built(folder, &tree);
        api.args(["public-api", "-sss", "--all-features", "--package", library]);
        api.envs([TYPES_OF_KUBERNETES]);
        let api = commands::read(&mut api)?.stdout;
        fs::write(partial.join(format!("api-{library}.txt")), api)?;
    }
    fs::rename(&partial, &into)?;
    Ok(into)
}

/// Cargo in that tree, with a target folder that all of them share.
fn built(folder: &Path, tree: &Path) -> Command {
    let mut command = cargo();
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", folder.join("built"));
    command
}

/// The help of every command of both programs.
fn help(folder: &Path, tree: &Path) -> Result<String> {
    let mut build = built(folder, tree);
    build.args(["build", "--quiet", "--package", "elector-cli", "--bins"]);
    show_and_run(&mut build)?;
    let mut text = String::new();
    for program in ["elector", "kubectl-elector"] {
        let path = folder.join("built/debug").join(program);
        let mut open = vec![Vec::new()];
        while let Some(command) = open.pop() {
            let mut help = Command::new(&path);
            let help = commands::read(help.args(&command).arg("--help"))?.stdout;
            let listed = help
                .split_once("\nCommands:\n")
                .map_or("", |(_, rest)| rest);
            let listed = listed.split("\n\n").next().unwrap_or_default();
            for name in listed.lines().filter_map(|line| {
                let name = line.strip_prefix("  ")?;
                name.starts_with(char::is_alphabetic)
                    .then(|| name.split(' ').next())?
            }) {
                if name != "help" {
                    open.push([&command[..], &[name.to_owned()]].concat());
                }
            }
            text.push_str(&format!("== {program} {}\n{help}\n", command.join(" ")));
        }
    }
    Ok(text)
}

/// Adds the log lines, metrics, Events, exit codes and messages of these tokens.
fn read_tokens(file: &str, tokens: TokenStream, surface: &mut Surface) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let word = token.to_string();
        if word == "#" && text(at + 1) == "[cfg (test)]" {
            // The item that it stands before ends with its body, or with a semicolon.
            at += tokens[at..]
                .iter()
                .position(|token| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    other => other.to_string() == ";",
                })
                .unwrap_or(tokens.len());
        } else if word == "#" && text(at + 1).starts_with("[doc") {
            at += 1;
        } else if LOG_MACROS.contains(&word.as_str()) && text(at + 1) == "!" {
            if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
                note(surface, "log-lines.txt", log_line(&word, group.stream()));
                at += 2;
            }
        } else if word == "const" && text(at + 2) == ":" && text(at + 3) == "u8" {
            note(
                surface,
                "exit-codes.txt",
                format!("{} {}", text(at + 1), text(at + 5)),
            );
        } else if let TokenTree::Group(group) = token {
            read_tokens(file, group.stream(), surface);
        } else if matches!(token, TokenTree::Literal(_)) && word.starts_with('"') {
            let literal = word.trim_matches('"');
            let is_made_of = |allowed: fn(char) -> bool| literal.chars().all(allowed);
            if file.contains("metric") && is_made_of(|c| c == '_' || c.is_ascii_lowercase()) {
                note(surface, "metrics.txt", literal.to_owned());
            } else if file.contains("event") && is_made_of(|c| c.is_ascii_alphabetic()) {
                note(surface, "events.txt", literal.to_owned());
            }
            note(surface, "texts.txt", word);
        }
        at += 1;
    }
}

fn note(surface: &mut Surface, file: &str, text: String) {
    surface.entry(file.to_owned()).or_default().insert(text);
}

/// The level, the text and the names of the fields of a line of the log.
fn log_line(level: &str, arguments: TokenStream) -> String {
    let mut fields = Vec::new();
    let mut message = String::new();
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    for argument in arguments.split(|token| token.to_string() == ",") {
        match argument {
            [TokenTree::Literal(text), ..] => message = text.to_string(),
            argument => {
                let name = argument.split(|token| token.to_string() == "=").next();
                let name = name.unwrap_or_default().iter().map(ToString::to_string);
                fields.push(name.collect::<String>().replace(['%', '?'], ""));
            }
        }
    }
    format!("{level} {message} {}", fields.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_others_hold_on_to_are_read_from_the_code() {
        let text = r#"
            const USAGE: u8 = 2;
            /// Says "nothing".
            fn f() { tracing::warn!(lease = %name, ?error, "lost the lease"); g("elector_leases"); }
            #[cfg(test)]
            mod tests { fn h() { g("elector_tests"); } }
        "#;
        let mut surface = Surface::new();
        read_tokens("src/metrics.rs", text.parse().unwrap(), &mut surface);
        let found: Vec<_> = surface.values().flatten().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "USAGE 2",
                "warn \"lost the lease\" lease error",
                "elector_leases",
                "\"elector_leases\"",
            ]
        );
    }
}
