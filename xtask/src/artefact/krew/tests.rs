//! What krew asks of a manifest, after its `internal/index/validation` and `cmd/validate-krew-manifest`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use tar::Archive;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KrewPlugin {
    api_version: String,
    kind: String,
    metadata: KrewMetadata,
    spec: KrewSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KrewMetadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KrewSpec {
    version: String,
    short_description: String,
    description: String,
    homepage: Option<String>,
    platforms: Vec<KrewPlatform>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KrewPlatform {
    selector: PlatformSelector,
    uri: String,
    sha256: String,
    files: Vec<FileOperation>,
    bin: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PlatformSelector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOperation {
    from: String,
    to: String,
}

/// The first of krew's rules that it breaks, for a file of that name.
fn broken_rule(file: &str, plugin: &KrewPlugin) -> Option<String> {
    let KrewPlugin { spec, metadata, .. } = plugin;
    let name = metadata.name.as_str();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let longest = |text: &str| text.lines().map(str::len).max().unwrap_or_default();
    let mut rules = vec![
        (plugin.api_version == API_VERSION, "apiVersion"),
        (plugin.kind == "Plugin", "kind"),
        (!name.is_empty() && name.chars().all(is_word), "name"),
        (file == format!("{name}.yaml"), "the name of the file"),
        (
            (1..=70).contains(&longest(&spec.short_description)),
            "shortDescription",
        ),
        (spec.short_description.lines().count() == 1, "a line"),
        (longest(&spec.description) <= 80, "description"),
        (!spec.platforms.is_empty(), "platforms"),
        (
            spec.version
                .strip_prefix('v')
                .is_some_and(|version| version.parse::<semver::Version>().is_ok()),
            "version",
        ),
    ];
    let mut selected = BTreeSet::new();
    for platform in &spec.platforms {
        let labels = &platform.selector.match_labels;
        let keys: Vec<&str> = labels.keys().map(String::as_str).collect();
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        rules.extend([
            (keys == ["arch", "os"], "selector"),
            (
                matches!(labels["arch"].as_str(), "amd64" | "arm64") && labels["os"] == "linux",
                "a platform of krew",
            ),
            (selected.insert(labels.clone()), "overlapping selectors"),
            // By the end of the name krew knows how to unpack it.
            (platform.uri.ends_with(".tar.gz"), "uri"),
            (
                platform.sha256.len() == 64 && platform.sha256.chars().all(is_hex),
                "sha256",
            ),
            (!platform.files.is_empty(), "files"),
            (
                platform.files.iter().any(|file| file.from == platform.bin),
                "bin",
            ),
        ]);
        // A target that is a folder keeps the name, and must be written the shortest way.
        for file in &platform.files {
            rules.push((!file.from.is_empty() && file.to == ".", "a file operation"));
        }
    }
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map(|(_, rule)| rule.to_owned())
}

fn published() -> Published {
    Published {
        url: "https://example.com/download/v0.1.0/".to_owned(),
        homepage: None,
    }
}

fn archive(arch: &str) -> PlatformArchive {
    PlatformArchive {
        arch: arch.to_owned(),
        file: format!("kubectl-elector-linux-{arch}.tar.gz"),
        sha256: "0123456789abcdef".repeat(4),
    }
}

fn parse(text: &str) -> KrewPlugin {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_manifest_keeps_the_rules_of_krew() {
    let text = manifest(&published(), &[archive("amd64"), archive("arm64")]).unwrap();
    let plugin = parse(&text);
    assert_eq!(broken_rule("elector.yaml", &plugin), None, "{text}");
    let first = &plugin.spec.platforms[0];
    assert_eq!(
        first.uri,
        "https://example.com/download/v0.1.0/kubectl-elector-linux-amd64.tar.gz"
    );
    assert_eq!(first.selector.match_labels["arch"], "amd64");
    assert_eq!(first.sha256, archive("amd64").sha256);
    assert_eq!(plugin.spec.homepage, None);
    assert_eq!(plugin.spec.description, DESCRIPTION);
}

#[test]
fn what_breaks_a_rule_is_found() {
    let twice = manifest(&published(), &[archive("amd64"), archive("amd64")]).unwrap();
    let odd = manifest(&published(), &[archive("riscv64")]).unwrap();
    let good = manifest(&published(), &[archive("amd64")]).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    for (file, text, expected) in [
        ("elector.yaml", twice, "overlapping selectors"),
        ("elector.yaml", odd, "a platform of krew"),
        ("plugin.yaml", good.clone(), "the name of the file"),
        ("elector.yaml", changed(": v", ": w"), "version"),
        ("elector.yaml", changed("'0123", "'012G"), "sha256"),
        ("elector.yaml", changed("bin: kubectl", "bin: x"), "bin"),
    ] {
        let broken = broken_rule(file, &parse(&text));
        assert_eq!(broken.as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn addresses_are_not_made_up() {
    let homepage = Some("https://example.com".to_owned());
    let with = Published {
        homepage: homepage.clone(),
        ..published()
    };
    let text = manifest(&with, &[archive("amd64")]).unwrap();
    assert_eq!(parse(&text).spec.homepage, homepage);
    for url in ["", "example.com", "http://example.com"] {
        let bad = Published {
            url: url.to_owned(),
            ..published()
        };
        let error = manifest(&bad, &[archive("amd64")]).unwrap_err();
        assert!(error.to_string().contains("https://"), "{error}");
    }
}

#[test]
fn the_archives_are_those_of_the_plugin_and_hold_what_the_manifest_takes_from_them() {
    let folder = tempfile::tempdir().unwrap();
    let error = archives(folder.path()).err().unwrap().to_string();
    assert!(error.contains("cargo xtask release"), "{error}");
    let name = PLUGIN.archive("amd64");
    fs::write(folder.path().join(&name), PLUGIN.pack(b"program").unwrap()).unwrap();
    fs::write(folder.path().join("elector-linux-amd64"), b"another").unwrap();
    let found = archives(folder.path()).unwrap();
    let [archive] = found.as_slice() else {
        panic!("{} archives", found.len());
    };
    assert_eq!(
        (archive.arch.as_str(), archive.file.as_str()),
        ("amd64", name.as_str())
    );
    let plugin = parse(&manifest(&published(), &found).unwrap());
    assert_eq!(broken_rule("elector.yaml", &plugin), None);
    let taken: Vec<&str> = plugin.spec.platforms[0]
        .files
        .iter()
        .map(|file| file.from.as_str())
        .collect();
    let packed = fs::read(folder.path().join(&name)).unwrap();
    let mut unpacked = Archive::new(GzDecoder::new(packed.as_slice()));
    let mut held = Vec::new();
    for entry in unpacked.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let mode = entry.header().mode().unwrap();
        held.push((entry.path().unwrap().display().to_string(), mode, content));
    }
    let names: Vec<&str> = held.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, taken);
    assert_eq!((held[0].1, held[0].2.as_slice()), (0o755, &b"program"[..]));
    let license = fs::read(paths::workspace().join("LICENSE")).unwrap();
    assert_eq!((held[1].1, &held[1].2), (0o644, &license));
}
