//! Arguments other than attributes: times, sizes, retention, schemas.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use junctura::{Code, DemandOptions, Durability, Error, OfferOptions, PoolBuilder, Retention};
use junctura_model::Type;
use junctura_model::size::parse_bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyList, PyString, PyTuple};

use crate::conversion::given::type_name;
use crate::handles::require::refuse_staged;
use crate::model::schema::PySchema;
use crate::runtime::error::{OrRaise, invalid, raise};

/// A retention: the object is removed when this many consumers have released it.
///
/// Parameters
/// ----------
/// consumers : int
///     Number of consumers, at least 1.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"once", name="a", retention=junctura.Released(1))
/// ...     pool.demand(name="a").release()
/// ...     pool.list()
/// []
#[pyclass(module = "junctura", name = "Released", frozen, eq, hash, get_all)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyReleased {
    /// Number of consumers.
    consumers: u32,
}

#[pymethods]
impl PyReleased {
    #[new]
    fn new(py: Python<'_>, consumers: u32) -> PyResult<Self> {
        if consumers == 0 {
            return Err(invalid(
                py,
                "retention",
                "released by 0 consumers: no consumer could receive it",
            ));
        }
        Ok(Self { consumers })
    }

    fn __repr__(&self) -> String {
        format!("Released({})", self.consumers)
    }

    fn __getnewargs__(&self) -> (u32,) {
        (self.consumers,)
    }
}

/// Returns the options of an offer.
pub(crate) fn offer_options<'a>(
    schema: Option<&'a str>,
    retention: Option<&Bound<'_, PyAny>>,
    if_wanted: bool,
    durability: Option<&str>,
) -> PyResult<OfferOptions<'a>> {
    Ok(OfferOptions {
        schema,
        retention: retention.map(read_retention).transpose()?,
        if_wanted,
        durability: durability.map(read_durability).transpose()?,
    })
}

fn read_durability(name: &str) -> PyResult<Durability> {
    match name {
        "memory" => Ok(Durability::Memory),
        "durable" => Ok(Durability::Durable),
        other => {
            let cause = format!("\"memory\" or \"durable\", not {other:?}");
            Python::attach(|py| Err(invalid(py, "durability", cause)))
        }
    }
}

fn read_retention(given: &Bound<'_, PyAny>) -> PyResult<Retention> {
    let py = given.py();
    if let Ok(released) = given.cast::<PyReleased>() {
        return Ok(Retention::Released(released.get().consumers));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return text.to_str()?.parse().or_raise(py);
    }
    if given.is_instance_of::<PyDelta>()
        && let Ok(time) = given.extract()
    {
        return Retention::For(time).check().or_raise(py);
    }
    let expected = "\"withdrawn\", \"archived\", a time such as \"10min\" or timedelta(minutes=10), Released(n) or \"released_by:NAME\" is expected";
    Err(invalid(py, "retention", format!("{expected}, not {}", given.repr()?)))
}

/// Seconds; `None` means no limit.
pub(crate) fn timeout(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    // A timeout of centuries is no limit.
    const FOR_EVER_S: f64 = 1e10;
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds >= FOR_EVER_S => Ok(None),
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map(Some)
            .map_err(|_| invalid(py, "timeout", format!("{seconds} is no number of seconds"))),
    }
}

/// Returns the options of a demand.
pub(crate) fn demand_options<'a>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    requirement: Option<&'a str>,
    incomplete: bool,
) -> PyResult<DemandOptions<'a>> {
    if let Some(name) = requirement.filter(|_| incomplete) {
        return Err(raise(py, &refuse_staged(name)));
    }
    Ok(DemandOptions {
        timeout: timeout(py, timeout_s)?,
        requirement,
        incomplete,
        ..DemandOptions::default()
    })
}

/// Bytes, as a number or as a text such as `4GiB`.
pub(crate) fn size(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let refused = || {
        invalid(
            given.py(),
            "size",
            format!("{given:?} is not a size such as 4294967296 or \"4GiB\""),
        )
    };
    let Ok(text) = given.cast::<PyString>() else {
        return given.extract().map_err(|_| refused());
    };
    parse_bytes(text.to_str()?.trim()).map_err(|_| refused())
}

/// The source of a schema.
pub(crate) enum SchemaChoice {
    Builtin(String),
    Yaml(String),
    File(PathBuf),
}

impl SchemaChoice {
    fn add_to(self, builder: PoolBuilder) -> PoolBuilder {
        match self {
            Self::Builtin(name) => builder.schema(name),
            Self::Yaml(text) => builder.schema_yaml(text),
            Self::File(path) => builder.schema_file(path),
        }
    }

    /// Reads it: one schema, or one for each rule of an FDB file.
    pub(crate) fn read(self) -> junctura::Result<Vec<Arc<junctura::Schema>>> {
        let (text, file) = match self {
            Self::Builtin(name) => {
                let schema = junctura::Schema::builtin(&name).ok_or_else(|| unknown(&name))?;
                return Ok(vec![schema]);
            }
            Self::Yaml(text) => (text, String::new()),
            Self::File(path) => {
                let file = path.display().to_string();
                (junctura::binding::read_text(&path)?, file)
            }
        };
        let schemas = junctura::Schema::parse_file(&text, &file)?;
        Ok(schemas.into_iter().map(Arc::new).collect())
    }
}

fn unknown(name: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("schema {name}"),
        "there is none of this name built in",
    )
}

/// One schema, or several.
pub(crate) fn sources(given: &Bound<'_, PyAny>) -> PyResult<Vec<SchemaChoice>> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return given.try_iter()?.map(|one| source(&one?)).collect();
    }
    Ok(vec![source(given)?])
}

/// A name of a built-in schema, the text of a schema file, the path of one, or a `Schema`.
fn source(given: &Bound<'_, PyAny>) -> PyResult<SchemaChoice> {
    if let Ok(schema) = given.cast::<PySchema>() {
        return Ok(SchemaChoice::Yaml(schema.get().0.to_yaml()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str()?.to_owned();
        return Ok(match text {
            name if junctura::Schema::BUILTIN_NAMES.contains(&&*name) => SchemaChoice::Builtin(name),
            yaml if yaml.contains('\n') => SchemaChoice::Yaml(yaml),
            path => SchemaChoice::File(path.into()),
        });
    }
    let path = given
        .py()
        .import("os")?
        .call_method1("fspath", (given,))
        .and_then(|path| path.extract::<String>());
    match path {
        Ok(path) => Ok(SchemaChoice::File(path.into())),
        Err(_) => Err(invalid(
            given.py(),
            "schema",
            format!("a name, a text or a path is expected, not {}", type_name(given)),
        )),
    }
}

/// A length of time: seconds, a text such as `1h30m`, or a `timedelta`.
pub(crate) fn length_of_time(given: &Bound<'_, PyAny>, subject: &str) -> PyResult<Duration> {
    let py = given.py();
    let refused = || {
        let expected = "seconds, a text such as \"1h30m\", or a timedelta";
        invalid(py, subject, format!("{expected} is expected, not {given}"))
    };
    if given.is_instance_of::<PyDelta>() {
        return given.extract().map_err(|_| refused());
    }
    let Ok(text) = given.cast::<PyString>() else {
        let seconds = given.extract().map_err(|_| refused())?;
        return Duration::try_from_secs_f64(seconds).map_err(|_| refused());
    };
    let nanoseconds = Type::Duration.order(text.to_str()?);
    let nanoseconds = nanoseconds.and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    nanoseconds.map(Duration::from_nanos).ok_or_else(refused)
}

/// The schema of this name, or the pool's default.
pub(crate) fn schema_of(py: Python<'_>, pool: &junctura::Pool, name: Option<&str>) -> PyResult<Arc<junctura::Schema>> {
    pool.schema(name).or_raise(py)
}

/// Checks and applies the options of a pool that this call creates.
pub(crate) fn settle(
    mut builder: PoolBuilder,
    schema: Option<&Bound<'_, PyAny>>,
    budget: Option<&Bound<'_, PyAny>>,
    (spill, spill_size): (Option<PathBuf>, Option<&Bound<'_, PyAny>>),
    inline_max: Option<&Bound<'_, PyAny>>,
) -> PyResult<PoolBuilder> {
    if let Some(schema) = schema {
        builder = sources(schema)?
            .into_iter()
            .fold(builder, |builder, source| source.add_to(builder));
    }
    if let Some(budget) = budget {
        builder = builder.budget_bytes(size(budget)?);
    }
    match (spill, spill_size) {
        (Some(directory), limit) => builder = builder.spill(directory, limit.map(size).transpose()?),
        (None, Some(limit)) => return Err(invalid(limit.py(), "spill_size", "spill, the directory, is missing")),
        (None, None) => {}
    }
    if let Some(bytes) = inline_max {
        builder = builder.inline_bytes_max(size(bytes)?);
    }
    Ok(builder)
}

/// Returns the client name from the environment, or the script's name, which is more specific than the interpreter's.
pub(crate) fn own_name(py: Python<'_>) -> PyResult<String> {
    if let Some(name) = std::env::var("JUNCTURA_NAME").ok().filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    let script: Option<String> = py
        .import("sys")?
        .getattr("argv")?
        .get_item(0)
        .and_then(|name| name.extract())
        .ok();
    let name = script
        .as_deref()
        .and_then(|path| path.rsplit('/').next())
        .filter(|name| !name.is_empty() && *name != "-c");
    Ok(name.unwrap_or("python").to_owned())
}

/// Returns how to start the command: as this package's, if the interpreter knows its own program.
pub(crate) fn command_words(py: Python<'_>) -> PyResult<Vec<String>> {
    let python: Option<String> = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(python
        .filter(|python| !python.is_empty())
        .map_or_else(Vec::new, |python| vec![python, "-m".to_owned(), "junctura".to_owned()]))
}
