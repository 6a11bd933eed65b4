//! The location of a store in Python: a path, or a URL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use junctura::{Code, Error, Result};
use junctura_store::{Store, StoreLayout};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::runtime::error::invalid;

/// See the module. In any process it identifies the same store.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// By its absolute path, which need not be valid Unicode.
    Folder(PathBuf),
    Url(String),
}

impl StorePlace {
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = given.py();
        let text = given.cast::<PyString>().ok().map(|text| text.to_str()).transpose()?;
        let Some((scheme, rest)) = text.and_then(|text| text.split_once(':')) else {
            return absolute(given.extract()?);
        };
        match (scheme, rest.strip_prefix("//")) {
            ("file", None) => local(py, rest),
            // With options, such as a cache.
            ("file", Some(rest)) if rest.contains('?') => Ok(Self::Url(format!("{scheme}://{rest}"))),
            ("file", Some(rest)) => {
                let at = rest.find('/').unwrap_or(rest.len());
                let (host, path) = rest.split_at(at);
                if !host.is_empty() && host != "localhost" {
                    let cause = format!(
                        "it is on {host}: a store is opened on the machine that has it, or by a path that it is mounted at"
                    );
                    return Err(invalid(py, "store", cause));
                }
                local(py, path)
            }
            (scheme, _) if scheme.contains('/') => absolute(given.extract()?),
            ("memory", _) | (_, Some(_)) => Ok(Self::Url(format!("{scheme}:{rest}"))),
            _ => absolute(given.extract()?),
        }
    }

    /// # Errors
    /// Those of [`Store::open_url`].
    pub(super) fn open(&self) -> Result<Store> {
        match self {
            Self::Folder(path) => Store::open(path),
            Self::Url(url) => Store::open_url(url),
        }
    }

    /// # Errors
    /// Those of [`Store::create_url`].
    pub(super) fn create(&self, schemas: &[Arc<junctura::Schema>], layout: StoreLayout) -> Result<Store> {
        match self {
            Self::Folder(path) => Store::create(path, schemas, layout),
            Self::Url(url) => Store::create_url(url, schemas, &layout),
        }
    }

    /// # Errors
    /// `Unsupported` if the location is not a folder.
    pub(super) fn folder(&self) -> Result<&Path> {
        match self {
            Self::Folder(path) => Ok(path),
            Self::Url(url) => Err(Error::new(Code::Unsupported, "path", format!("{url} is no folder"))),
        }
    }

    /// Returns its text, for a store's root, and for a pool.
    ///
    /// # Errors
    /// `InvalidArgument` for a path that is no text.
    pub(crate) fn text(&self) -> Result<&str> {
        let text = match self {
            Self::Folder(path) => path.to_str(),
            Self::Url(url) => Some(url.as_str()),
        };
        text.ok_or_else(|| Error::new(Code::InvalidArgument, "store", "its path is no text"))
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// A path is a `pathlib.Path`, a URL a `str`.
impl<'py> IntoPyObject<'py> for &StorePlace {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            StorePlace::Folder(path) => path.into_bound_py_any(py),
            StorePlace::Url(url) => url.into_bound_py_any(py),
        }
    }
}

fn local(py: Python<'_>, path: &str) -> PyResult<StorePlace> {
    if path.is_empty() {
        return Err(invalid(py, "store", "the URL names no folder"));
    }
    let path = py.import("urllib.request")?.call_method1("url2pathname", (path,))?;
    absolute(path.extract()?)
}

/// It is the same folder also when the working directory is another one.
fn absolute(path: PathBuf) -> PyResult<StorePlace> {
    std::path::absolute(path).map(StorePlace::Folder).map_err(PyErr::from)
}
