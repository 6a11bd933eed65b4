//! Reconnection after a fork: a child that inherits a pool opens a connection of its own at its first use.

use std::sync::{Arc, Mutex, PoisonError};

use junctura_model::Result;

use super::PoolConnection;

/// The connection of each process that has the pool: the one that opened it, and its forked children.
pub(crate) struct ProcessConnection {
    /// Of the process that opened the pool.
    opener: Arc<PoolConnection>,
    /// Of a forked child. The process that opened the pool never locks it, so a fork never finds it locked.
    child: Mutex<Option<Arc<PoolConnection>>>,
}

impl ProcessConnection {
    pub(crate) fn new(opener: Arc<PoolConnection>) -> Self {
        let child = Mutex::new(None);
        Self { opener, child }
    }

    /// Returns the connection of this process. A forked child connects at its first call.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(crate) fn get(&self, connect: impl FnOnce() -> Result<Arc<PoolConnection>>) -> Result<Arc<PoolConnection>> {
        if !self.opener.is_inherited() {
            return Ok(Arc::clone(&self.opener));
        }
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*child
            && !connection.is_inherited()
        {
            return Ok(Arc::clone(connection));
        }
        let connection = connect()?;
        *child = Some(Arc::clone(&connection));
        Ok(connection)
    }
}
