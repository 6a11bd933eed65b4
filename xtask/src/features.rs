//! Checks of cargo features, run as `cargo xtask features`.
//!
//! - Each feature of each library crate compiles alone, and each library crate compiles without any feature. A build of the
//!   workspace unifies features, so it cannot show that a feature lacks one of its dependencies. A crate with a program is not
//!   a library, nor is one without features that only programs use: it is never compiled without them.
//! - A pure client, the crate `junctura` without its default features, stays small: at most [`CLIENT_CRATES_MAX`] third-party
//!   crates, and none of [`NOT_IN_A_CLIENT`].
//! - Third-party crates have the same features with dev-dependencies as without. If they differ, cargo compiles the crate, and
//!   all crates above it, once for the tests and once more for the programs.
//!
//! The crates and their features come from `cargo metadata`, the dependencies from `cargo tree`. The options are
//! `--profile NAME`, which is passed to `cargo check`, and `--trees`, which leaves out the compilations.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode};
use std::{env, io};

use serde_json::Value;

/// The maximum number of third-party crates that a pure client compiles.
const CLIENT_CRATES_MAX: usize = 50;
/// Crates that a pure client does not compile.
const NOT_IN_A_CLIENT: [&str; 6] = [
    "junctura-pool",
    "junctura-store",
    "junctura-link",
    "parquet",
    "ring",
    "rustls",
];
const CLIENT: &str = "junctura";
/// A library for tests and the fuzzer alone.
const OF_TESTS: &str = "junctura-fuzz";
const DEFAULT: &str = "default";

/// The options of the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    profile: Option<String>,
    trees_only: bool,
}

/// A library crate with one of its features, or with none.
#[derive(Debug, PartialEq, Eq)]
struct Alone {
    package: String,
    feature: Option<String>,
}

/// A crate in the output of `cargo tree`, in its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CrateVersion {
    name: String,
    version: String,
}

/// For each crate the sets of features that it is compiled with: for the target, and for build scripts and macros.
type FeatureSets = BTreeMap<CrateVersion, BTreeSet<String>>;

/// Runs all checks, prints each result, and the counts in the last line.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some(options) = Options::parse(arguments) else {
        eprintln!("usage: cargo xtask features [--profile NAME] [--trees]");
        return ExitCode::from(2);
    };
    match check(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("features: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(options: &Options) -> io::Result<usize> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"])?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(io::Error::other)?;
    let (mut passed, mut failed) = (0, 0);
    let mut report = |promise: &str, wrong: &[String]| {
        println!(
            "features: {} {promise}",
            if wrong.is_empty() { "ok    " } else { "BROKEN" }
        );
        for line in wrong {
            println!("    {line}");
        }
        *(if wrong.is_empty() { &mut passed } else { &mut failed }) += 1;
    };

    let tree = cargo(&[
        "tree",
        "-p",
        CLIENT,
        "--no-default-features",
        "-e",
        "normal,build",
        "--prefix=none",
        "-f={p}|",
    ])?;
    let (count, wrong) = client(&tree);
    let promise = format!(
        "a pure client compiles {count} third-party crates, at most {CLIENT_CRATES_MAX}, and no server, Parquet or TLS"
    );
    report(&promise, &wrong);

    let tree = |edges: &str| cargo(&["tree", "--workspace", "-e", edges, "--prefix=none", "-f={p}|{f}"]);
    let wrong = differences(
        &feature_sets(&tree("normal,build")?),
        &feature_sets(&tree("normal,build,dev")?),
    );
    report(
        "third-party crates have the same features with dev-dependencies as without",
        &wrong,
    );

    if !options.trees_only {
        for alone in alone(&metadata) {
            report(&alone.to_string(), &alone.compile(options.profile.as_deref())?);
        }
    }
    println!("features: {passed} passed, {failed} failed");
    Ok(failed)
}

impl Options {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--trees" => options.trees_only = true,
                "--profile" => options.profile = Some(arguments.next()?.clone()),
                other => options.profile = Some(other.strip_prefix("--profile=")?.to_owned()),
            }
        }
        Some(options)
    }
}

impl Alone {
    /// Returns what the compiler reports: errors, and warnings too.
    fn compile(&self, profile: Option<&str>) -> io::Result<Vec<String>> {
        let mut command = Command::new(program());
        command.args(["check", "--lib", "--no-default-features", "-p", &self.package]);
        command.args(self.feature.iter().flat_map(|feature| ["--features", feature]));
        command.args(profile.iter().flat_map(|profile| ["--profile", profile]));
        let output = command.output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        let (progress, rest): (Vec<_>, Vec<_>) = told.lines().partition(|line| is_progress(line));
        // `tests/run.py` counts what is compiled.
        for line in progress {
            eprintln!("{line}");
        }
        if output.status.success() && !has_warnings(&told) {
            return Ok(Vec::new());
        }
        Ok(rest.into_iter().map(str::to_owned).collect())
    }
}

impl std::fmt::Display for Alone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.feature {
            Some(feature) => write!(f, "{} compiles with `{feature}` alone", self.package),
            None => write!(f, "{} compiles without features", self.package),
        }
    }
}

fn program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the standard output of cargo.
fn cargo(arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program()).args(arguments).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

/// Whether cargo reports what it is doing.
fn is_progress(line: &str) -> bool {
    let word = line.split_whitespace().next();
    matches!(
        word,
        Some("Checking" | "Compiling" | "Finished" | "Blocking" | "Downloaded")
    )
}

/// Whether cargo has printed warnings of the compiler; those of cargo itself do not count.
fn has_warnings(stderr: &str) -> bool {
    stderr.lines().any(|line| line.trim_start().starts_with("--> "))
}

/// Whether a crate has a target of this kind.
fn has_target(package: &Value, wanted: &str) -> bool {
    let mut kinds = list(&package["targets"]).flat_map(|target| list(&target["kind"]));
    kinds.any(|kind| kind == wanted)
}

/// Whether a crate is a program, or a library without features that only programs use.
fn is_of_programs(package: &Value, packages: &Value) -> bool {
    if has_target(package, "bin") || package["name"] == OF_TESTS {
        return true;
    }
    let has_features = package["features"]
        .as_object()
        .is_some_and(|features| !features.is_empty());
    let needs_it = |user: &&Value| {
        list(&user["dependencies"]).any(|needed| needed["name"] == package["name"] && needed["kind"].is_null())
    };
    let mut users = list(packages).filter(needs_it).peekable();
    !has_features && users.peek().is_some() && users.all(|user| is_of_programs(user, packages))
}

/// All library crates: each without features, then with each of its features.
fn alone(metadata: &Value) -> Vec<Alone> {
    let packages = &metadata["packages"];
    let libraries = list(packages).filter(|package| has_target(package, "lib") && !is_of_programs(package, packages));
    let checks = libraries.flat_map(|package| {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object();
        let features = features
            .into_iter()
            .flat_map(|features| features.keys())
            .filter(|name| *name != DEFAULT);
        let of = |feature| Alone {
            package: name.to_owned(),
            feature,
        };
        std::iter::once(None)
            .chain(features.cloned().map(Some))
            .map(of)
            .collect::<Vec<_>>()
    });
    checks.collect()
}

/// Counts the third-party crates of a pure client, and names what it must not have.
fn client(tree: &str) -> (usize, Vec<String>) {
    let crates: BTreeSet<_> = tree
        .lines()
        .filter_map(line)
        .map(|(found, is_ours, _)| (found, is_ours))
        .collect();
    let third_party: Vec<_> = crates.iter().filter(|(_, is_ours)| !is_ours).collect();
    let forbidden = crates
        .iter()
        .filter(|(found, _)| NOT_IN_A_CLIENT.contains(&found.name.as_str()));
    let mut wrong: Vec<String> = forbidden
        .map(|(found, _)| format!("it compiles {}", found.name))
        .collect();
    if third_party.len() > CLIENT_CRATES_MAX {
        let names: Vec<_> = third_party.iter().map(|(found, _)| found.name.as_str()).collect();
        wrong.push(format!("they are {}", names.join(", ")));
    }
    (third_party.len(), wrong)
}

fn feature_sets(tree: &str) -> FeatureSets {
    let mut sets = FeatureSets::new();
    for (found, _, features) in tree.lines().filter_map(line).filter(|(_, is_ours, _)| !is_ours) {
        sets.entry(found).or_default().insert(features);
    }
    sets
}

/// Where dev-dependencies change the features of a crate that is compiled without them, too.
fn differences(without: &FeatureSets, with: &FeatureSets) -> Vec<String> {
    let differing = without.iter().filter_map(|(found, before)| {
        let after = with.get(found)?;
        let list = |sets: &BTreeSet<String>| {
            sets.iter()
                .map(|set| format!("[{set}]"))
                .collect::<Vec<_>>()
                .join(" and ")
        };
        let CrateVersion { name, version } = found;
        (before != after).then(|| {
            format!(
                "{name} {version}: {}, with dev-dependencies {}",
                list(before),
                list(after)
            )
        })
    });
    differing.collect()
}

/// Reads a line of `cargo tree`, `NAME vVERSION (WHERE)|FEATURES (*)`: the crate, whether it is ours, its features.
fn line(line: &str) -> Option<(CrateVersion, bool, String)> {
    let (package, features) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    let found = CrateVersion {
        name: words.next()?.to_owned(),
        version: words.next()?.strip_prefix('v')?.to_owned(),
    };
    let is_ours = words.any(|word| word.starts_with("(/"));
    Some((found, is_ours, features.trim_end_matches("(*)").trim().to_owned()))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_feature_of_each_library_is_checked_alone() {
        let package = |name: &str, kind: &str, other: &str, features: Value| json!({"name": name, "targets": [{"kind": [kind]}, {"kind": [other]}], "features": features});
        let metadata = json!({"packages": [
            package("a", "lib", "test", json!({"default": ["x"], "x": [], "y": ["x"]})),
            package("b", "lib", "test", json!({})),
            package("c", "bin", "test", json!({"z": []})),
            package("d", "cdylib", "test", json!({"z": []})),
            package("e", "lib", "bin", json!({"z": []})),
        ]});
        let checks: Vec<String> = alone(&metadata).iter().map(Alone::to_string).collect();
        let expected = [
            "a compiles without features",
            "a compiles with `x` alone",
            "a compiles with `y` alone",
            "b compiles without features",
        ];
        assert_eq!(checks, expected);
    }

    #[test]
    fn a_library_that_only_programs_use_is_no_library() {
        let package = |name: &str, kind: &str, features: Value, uses: &[&str]| {
            let uses: Vec<_> = uses.iter().map(|name| json!({"name": name, "kind": null})).collect();
            json!({"name": name, "targets": [{"kind": [kind]}], "features": features, "dependencies": uses})
        };
        let metadata = json!({"packages": [
            package("program", "bin", json!({}), &["part", "library", "base"]),
            package("part", "lib", json!({}), &["inner"]),
            package("inner", "lib", json!({}), &[]),
            package("library", "lib", json!({"x": []}), &["base"]),
            package("base", "lib", json!({}), &[]),
            package("unused", "lib", json!({}), &[]),
        ]});
        let checks: Vec<String> = alone(&metadata).iter().map(Alone::to_string).collect();
        let expected = [
            "library compiles without features",
            "library compiles with `x` alone",
            "base compiles without features",
            "unused compiles without features",
        ];
        assert_eq!(checks, expected);
    }

    #[test]
    fn lines_of_a_tree_are_read() {
        let read =
            |text: &str| line(text).map(|(found, is_ours, features)| (found.name, found.version, is_ours, features));
        let is = |name: &str, version: &str, is_ours, features: &str| {
            Some((name.to_owned(), version.to_owned(), is_ours, features.to_owned()))
        };
        assert_eq!(
            read("ring v0.17.14|alloc,default"),
            is("ring", "0.17.14", false, "alloc,default")
        );
        assert_eq!(read("syn v3.0.9|full (*)"), is("syn", "3.0.9", false, "full"));
        assert_eq!(
            read("x-derive v1.0.0+y (proc-macro)| (*)"),
            is("x-derive", "1.0.0+y", false, "")
        );
        assert_eq!(
            read("junctura v0.1.0 (/a b/c)|net"),
            is("junctura", "0.1.0", true, "net")
        );
        for text in ["", "[dev-dependencies]", "ring|", "ring 1.0|"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_client_is_counted_and_what_it_must_not_have_is_named() {
        let small = "junctura v0.1.0 (/j)|\nsyn v2.0.1|\nsyn v3.0.0|\nsyn v3.0.0| (*)\n\n";
        assert_eq!(client(small), (2, Vec::new()));
        let (count, wrong) = client("junctura v0.1.0 (/j)|\njunctura-pool v0.1.0 (/p)|\nring v0.17.0|\n");
        assert_eq!(
            (count, wrong),
            (
                1,
                vec!["it compiles junctura-pool".to_owned(), "it compiles ring".to_owned()]
            )
        );
        let many: Vec<String> = (0..=CLIENT_CRATES_MAX)
            .map(|number| format!("c{number} v1.0.0|"))
            .collect();
        let (count, wrong) = client(&many.join("\n"));
        assert_eq!((count, wrong.len()), (CLIENT_CRATES_MAX + 1, 1));
    }

    #[test]
    fn features_that_only_tests_have_are_found() {
        let without = feature_sets("a v1.0.0|std\na v1.0.0|alloc,std\nb v1.0.0|\nours v1.0.0 (/o)|\n");
        let with = feature_sets("a v1.0.0|alloc,std (*)\na v1.0.0|std\nb v1.0.0|x\nc v1.0.0|y\nours v1.0.0 (/o)|z\n");
        assert_eq!(differences(&without, &without), Vec::<String>::new());
        assert_eq!(differences(&without, &with), ["b 1.0.0: [], with dev-dependencies [x]"]);
    }

    #[test]
    fn only_warnings_of_the_compiler_count() {
        assert!(has_warnings("warning: unused import\n --> src/lib.rs:1:5\n"));
        assert!(!has_warnings(
            "warning: the following packages contain code that will be rejected\n"
        ));
    }

    #[test]
    fn options_are_read() {
        let parse = |words: &[&str]| Options::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let of = |profile: Option<&str>, trees_only| {
            Some(Options {
                profile: profile.map(str::to_owned),
                trees_only,
            })
        };
        assert_eq!(parse(&[]), of(None, false));
        assert_eq!(parse(&["--profile", "ci"]), of(Some("ci"), false));
        assert_eq!(parse(&["--trees", "--profile=ci"]), of(Some("ci"), true));
        for bad in [&["--profile"][..], &["ci"], &["--profiles=ci"]] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
