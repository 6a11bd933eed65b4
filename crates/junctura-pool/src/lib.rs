//! The pool: one state machine that decides, and the server around it.
