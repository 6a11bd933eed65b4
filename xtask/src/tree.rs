//! The tree as the rules see it: the files that belong to the project, and the packages that Cargo knows.
//!
//! What git ignores (`target`, `.venv`, output folders) is left out by name, so that the checks also run in an unpacked
//! archive. Nothing is written.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

const NOT_OURS: [&str; 14] = [
    "target",
    ".git",
    ".venv",
    ".tools",
    "demo-out",
    "bench-out",
    "dist",
    ".hypothesis",
    "site",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
];

/// The project's files and packages.
pub(crate) struct Tree {
    /// Every file, sorted.
    pub(crate) files: Vec<File>,
    /// Every package of the workspace.
    pub(crate) packages: Vec<Package>,
    /// Every package that a build may pull in, ours and foreign.
    pub(crate) licences: Vec<(String, String)>,
    root: PathBuf,
}

/// A file, by its path from the root with `/`.
pub(crate) struct File {
    /// For example `crates/junctura-model/src/lib.rs`.
    pub(crate) path: String,
    /// The text; `None` where it is not UTF-8.
    pub(crate) text: Option<String>,
}

/// A package of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, from the root.
    pub(crate) folder: String,
    /// What it uses, outside its tests.
    pub(crate) uses: Vec<String>,
}

impl Tree {
    /// Reads the tree around this crate.
    pub(crate) fn read() -> io::Result<Tree> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap_or(Path::new("."))
            .to_path_buf();
        let mut files = Vec::new();
        walk(&root, &root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let packages = packages(&metadata(&root, &["--no-deps"])?, &root);
        let licences = licences(&metadata(&root, &["--filter-platform", "x86_64-unknown-linux-gnu"])?);
        Ok(Tree {
            files,
            packages,
            licences,
            root,
        })
    }

    /// The text files with one of these endings.
    pub(crate) fn texts<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |file| endings.iter().any(|ending| file.path.ends_with(ending)))
            .filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text.as_deref()
    }

    /// Whether a path from the root is there, as a file or as a folder.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else if kind.is_file() {
            let text = String::from_utf8(fs::read(&path)?).ok();
            files.push(File {
                path: from_root(root, &path),
                text,
            });
        }
    }
    Ok(())
}

fn from_root(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn metadata(root: &Path, extra: &[&str]) -> io::Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(extra)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

fn packages(metadata: &Value, root: &Path) -> Vec<Package> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    list(&metadata["packages"])
        .map(|package| {
            let manifest = PathBuf::from(text(package, "manifest_path"));
            let uses = list(&package["dependencies"]).filter(|dependency| dependency["kind"] != "dev");
            Package {
                name: text(package, "name"),
                folder: manifest
                    .parent()
                    .map(|folder| from_root(root, folder))
                    .unwrap_or_default(),
                uses: uses.map(|dependency| text(dependency, "name")).collect(),
            }
        })
        .collect()
}

fn licences(metadata: &Value) -> Vec<(String, String)> {
    list(&metadata["packages"])
        .map(|package| {
            let name = package["name"].as_str().unwrap_or_default();
            (
                name.to_owned(),
                package["license"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
impl Tree {
    /// A tree of the tests' making.
    pub(crate) fn of(packages: Vec<Package>, files: &[(&str, &str)]) -> Tree {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.into(),
            text: Some(text.into()),
        };
        Tree {
            files: files.iter().map(file).collect(),
            packages,
            licences: Vec::new(),
            root: PathBuf::new(),
        }
    }
}
