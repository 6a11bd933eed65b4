//! The numbers that functions return, and the kinds of a follow's items.

use std::ffi::c_int;

/// Success.
pub const JCT_OK: c_int = 0;
/// Nothing has this name, key or selector.
pub const JCT_NOT_FOUND: c_int = 1;
/// The key or name is taken, and a second one is refused.
pub const JCT_ALREADY_EXISTS: c_int = 2;
/// The object existed; the cause states why it was removed.
pub const JCT_GONE: c_int = 3;
/// The selector cannot be read, or does not fit its attributes.
pub const JCT_INVALID_SELECTOR: c_int = 4;
/// The schema does not allow the attributes, or two schemas differ.
pub const JCT_SCHEMA_MISMATCH: c_int = 5;
/// A value cannot be read as the type of its attribute.
pub const JCT_TYPE_MISMATCH: c_int = 6;
/// An argument that is no attribute is invalid.
pub const JCT_INVALID_ARGUMENT: c_int = 7;
/// The timeout of the caller expired.
pub const JCT_TIMEOUT: c_int = 8;
/// Memory and spill are full, and no object was released in time.
pub const JCT_POOL_FULL: c_int = 9;
/// The bundle has its declared number of members.
pub const JCT_BUNDLE_FULL: c_int = 10;
/// The bundle is complete or aborted.
pub const JCT_BUNDLE_CLOSED: c_int = 11;
/// Two callers disagree about one thing.
pub const JCT_CONFLICT: c_int = 12;
/// No reader wants the object, and it was offered on that condition.
pub const JCT_NOT_WANTED: c_int = 13;
/// The lease, membership or cursor has ended.
pub const JCT_EXPIRED: c_int = 14;
/// The pool, connection or handle was closed by its owner.
pub const JCT_CLOSED: c_int = 15;
/// The connection to the server was lost.
pub const JCT_DISCONNECTED: c_int = 16;
/// The server cannot be reached or accepts no work.
pub const JCT_UNAVAILABLE: c_int = 17;
/// The caller is not permitted to do that.
pub const JCT_DENIED: c_int = 18;
/// Bytes are not what they must be.
pub const JCT_CORRUPT: c_int = 19;
/// One thing exceeds its limit in size.
pub const JCT_TOO_LARGE: c_int = 20;
/// There are more things than a limit allows.
pub const JCT_LIMIT_EXCEEDED: c_int = 21;
/// This build, server or machine does not support that.
pub const JCT_UNSUPPORTED: c_int = 22;
/// The peer violated the protocol.
pub const JCT_PROTOCOL: c_int = 23;
/// The wait was interrupted.
pub const JCT_INTERRUPTED: c_int = 24;
/// The operating system refused a read, write or map.
pub const JCT_IO: c_int = 25;
/// The library panicked: a defect. The place is printed on standard error. The handles of the call must only
/// be freed.
pub const JCT_PANIC: c_int = 255;

/// Advice: the same call may succeed later.
pub const JCT_RETRY: c_int = 0;
/// Advice: the call succeeds when its arguments are corrected.
pub const JCT_FIX: c_int = 1;
/// Advice: neither waiting nor other arguments help.
pub const JCT_GIVE_UP: c_int = 2;

#[cfg(test)]
mod tests {
    use junctura::Code;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_codes() {
        let numbers = [
            (JCT_NOT_FOUND, Code::NotFound),
            (JCT_ALREADY_EXISTS, Code::AlreadyExists),
            (JCT_GONE, Code::Gone),
            (JCT_INVALID_SELECTOR, Code::InvalidSelector),
            (JCT_SCHEMA_MISMATCH, Code::SchemaMismatch),
            (JCT_TYPE_MISMATCH, Code::TypeMismatch),
            (JCT_INVALID_ARGUMENT, Code::InvalidArgument),
            (JCT_TIMEOUT, Code::Timeout),
            (JCT_POOL_FULL, Code::PoolFull),
            (JCT_BUNDLE_FULL, Code::BundleFull),
            (JCT_BUNDLE_CLOSED, Code::BundleClosed),
            (JCT_CONFLICT, Code::Conflict),
            (JCT_NOT_WANTED, Code::NotWanted),
            (JCT_EXPIRED, Code::Expired),
            (JCT_CLOSED, Code::Closed),
            (JCT_DISCONNECTED, Code::Disconnected),
            (JCT_UNAVAILABLE, Code::Unavailable),
            (JCT_DENIED, Code::Denied),
            (JCT_CORRUPT, Code::Corrupt),
            (JCT_TOO_LARGE, Code::TooLarge),
            (JCT_LIMIT_EXCEEDED, Code::LimitExceeded),
            (JCT_UNSUPPORTED, Code::Unsupported),
            (JCT_PROTOCOL, Code::Protocol),
            (JCT_INTERRUPTED, Code::Interrupted),
            (JCT_IO, Code::Io),
        ];
        assert_eq!(numbers.len(), Code::ALL.len());
        for (number, code) in numbers {
            assert_eq!(number, c_int::from(code.number()), "{code}");
        }
    }
}
