//! Conversion of arguments and results: attributes, options, targets, payloads and buffers.

pub(crate) mod buffer;
pub(crate) mod data;
pub(crate) mod dtype;
pub(crate) mod exchange;
pub(crate) mod given;
pub(crate) mod keywords;
pub(crate) mod options;
pub(crate) mod payload_form;
pub(crate) mod target;
pub(crate) mod usage;
pub(crate) mod values;
