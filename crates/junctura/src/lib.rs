//! Hand scientific data over by meaning: the client library.
