//! The libraries that are preloaded: where they are, and which of them fits the MPI of a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use junctura::{Code, Error, Result};
use junctura_terminal::program::ProgramWords;

/// The variable of Open MPI that names which variables are forwarded to other hosts, separated by semicolons.
pub(super) const FORWARDED: &str = "OMPI_MCA_mca_base_env_list";

/// An implementation of MPI, whose handles are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MpiFamily {
    /// Open MPI
    Openmpi,
    /// MPICH, and what is compatible with it
    Mpich,
}

impl MpiFamily {
    pub(super) fn library(self) -> &'static str {
        match self {
            MpiFamily::Openmpi => "mpiio-openmpi",
            MpiFamily::Mpich => "mpiio-mpich",
        }
    }
}

/// Returns the folder of the libraries: beside this program or another `junctura` on PATH, in `lib` beside its folder, or in the
/// Python package.
pub(super) fn folder(program: &ProgramWords) -> Result<PathBuf> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize()).ok();
    let own = own.filter(|_| *program == ProgramWords::this());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("junctura"));
    let programs = own.into_iter().chain(on_path.filter(|path| path.exists()));
    let folders = programs.filter_map(|program| program.parent().map(Path::to_owned));
    let mut candidates: Vec<PathBuf> = Vec::new();
    for beside in folders {
        let above = beside.parent().map(|above| above.join("lib"));
        candidates.push(beside);
        candidates.extend(above);
    }
    if !candidates.iter().any(|folder| has_library(folder)) {
        candidates.extend(folder_of_package(program));
    }
    let found = candidates.iter().find(|folder| has_library(folder));
    found.cloned().ok_or_else(|| {
        let looked: Vec<String> = candidates.iter().map(|folder| folder.display().to_string()).collect();
        let cause = format!(
            "no preload library in {}; `make install-c`, `make build-ci` and the wheel have them",
            looked.join(", ")
        );
        Error::new(Code::NotFound, "libjunctura-netcdf.so", cause)
    })
}

fn has_library(folder: &Path) -> bool {
    ["netcdf", "mpiio-openmpi", "mpiio-mpich"]
        .iter()
        .any(|name| folder.join(file_name(name)).exists())
}

fn file_name(name: &str) -> String {
    format!("libjunctura-{name}.so")
}

fn folder_of_package(program: &ProgramWords) -> Option<PathBuf> {
    let output = program.module("junctura._config", None).arg("--prefix").output().ok()?;
    let prefix = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    Some(Path::new(prefix.trim_end()).join("lib"))
}

/// Returns the path of a library.
pub(super) fn find(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(file_name(name));
    if path.exists() {
        return Ok(path);
    }
    let cause = format!(
        "not in {}: it was not built, since the headers of that MPI were missing",
        folder.display()
    );
    Err(Error::new(Code::NotFound, file_name(name), cause))
}

/// Returns the MPI that the programs are linked with, or else that of the launcher.
pub(super) fn family_of(programs: &[PathBuf], launcher: &OsString) -> Result<MpiFamily> {
    if let Some(family) = programs.iter().rev().find_map(|program| linked_family(program)) {
        return Ok(family);
    }
    let output = Command::new(launcher).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().as_deref().and_then(family_in_version).ok_or_else(|| {
        let cause = "the command does not show whether its MPI is Open MPI or MPICH: name it by --mpi";
        Error::new(Code::InvalidArgument, "--mpi-io", cause)
    })
}

/// Returns the MPI among the shared libraries of a program.
pub(super) fn linked_family(program: &Path) -> Option<MpiFamily> {
    let output = Command::new("ldd").arg(program).output().ok()?;
    family_in_libraries(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the list of libraries of a program, as `ldd` prints it.
fn family_in_libraries(list: &str) -> Option<MpiFamily> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.into_iter().find_map(|name| match name {
        _ if name.starts_with("libmpich.so") || name == "libmpi.so.12" => Some(MpiFamily::Mpich),
        _ if name.starts_with("libmpi.so") => Some(MpiFamily::Openmpi),
        _ => None,
    })
}

/// Reads what a launcher prints as its version.
fn family_in_version(text: &str) -> Option<MpiFamily> {
    if text.contains("Open MPI") || text.contains("OpenRTE") {
        Some(MpiFamily::Openmpi)
    } else if text.contains("HYDRA") || text.contains("MPICH") || text.contains("Intel(R) MPI") {
        Some(MpiFamily::Mpich)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_is_that_of_the_libraries() {
        let openmpi = "\tlinux-vdso.so.1 (0x0)\n\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x0)\n";
        assert_eq!(family_in_libraries(openmpi), Some(MpiFamily::Openmpi));
        assert_eq!(
            family_in_libraries("\tlibmpich.so.12 => /usr/lib/libmpich.so.12\n"),
            Some(MpiFamily::Mpich)
        );
        assert_eq!(
            family_in_libraries("\tlibmpi.so.12 => not found\n"),
            Some(MpiFamily::Mpich)
        );
        assert_eq!(family_in_libraries("\tlibc.so.6 => /lib/libc.so.6\n"), None);
    }

    #[test]
    fn or_that_of_the_launcher() {
        assert_eq!(
            family_in_version("mpirun.openmpi (OpenRTE) 4.1.4\n"),
            Some(MpiFamily::Openmpi)
        );
        assert_eq!(family_in_version("HYDRA build details:\n"), Some(MpiFamily::Mpich));
        assert_eq!(family_in_version("slurm 22.05\n"), None);
    }

    #[test]
    fn a_library_that_was_not_built_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = find(folder.path(), "mpiio-mpich").unwrap_err();
        assert_eq!(
            (error.code(), error.subject()),
            (Code::NotFound, "libjunctura-mpiio-mpich.so")
        );
    }
}
