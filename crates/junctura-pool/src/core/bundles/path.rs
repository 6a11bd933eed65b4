//! Paths of bundles: `forecast/20261120/step=6`.

use junctura_model::{Code, Error, Result};

use crate::PoolLimits;

/// Checks a path; the error names the fault.
pub(super) fn check_path(path: &str, limits: &PoolLimits) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+:-=,@".contains(c);
    let (bytes_max, depth_max) = (limits.bundle_path_bytes, limits.bundle_depth);
    let cause = if path.is_empty() || path.len() > bytes_max {
        format!("it has {} bytes; 1 to {bytes_max} are allowed", path.len())
    } else if path.split('/').count() > depth_max {
        format!("it is nested deeper than {depth_max}")
    } else if !path
        .split('/')
        .all(|part| !part.is_empty() && part.chars().all(is_plain))
    {
        "each part between / has at least one of: ASCII letters, digits and ._+:-=,@".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = path.chars().take(bytes_max).collect();
    Err(Error::new(Code::InvalidArgument, format!("path {shown:?}"), cause))
}

/// Returns the path of the enclosing bundle.
pub(super) fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent)
}

/// Whether a path equals another, or is nested in it at any depth.
pub(super) fn is_under(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_of_plain_parts() {
        let limits = PoolLimits::default();
        let long = "x".repeat(limits.bundle_path_bytes);
        let deep = vec!["d"; limits.bundle_depth].join("/");
        for good in ["a", "a/b", "date=20261120,time=0000/step=6", &long, &deep] {
            check_path(good, &limits).unwrap();
        }
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "a b",
            "ä",
            &format!("{long}x"),
            &format!("{deep}/d"),
        ] {
            assert_eq!(
                check_path(bad, &limits).unwrap_err().code(),
                Code::InvalidArgument,
                "{bad}"
            );
        }
    }

    #[test]
    fn what_is_nested_is_under() {
        assert_eq!((parent("a/b/c"), parent("a")), (Some("a/b"), None));
        assert!(is_under("a/b", "a") && is_under("a", "a") && is_under("a/b/c", "a"));
        assert!(!is_under("ab", "a") && !is_under("a", "a/b"));
    }
}
