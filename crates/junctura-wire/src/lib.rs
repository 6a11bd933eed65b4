//! The messages between clients and a pool server, as bytes.
