//! A load whose objects become visible in bundles.

use std::sync::Arc;

use junctura::{Ack, Bundle, Completed, Pipeline, Pool, Result};

/// The bundles that a producer fills one after the other.
pub(crate) struct LoadBundles {
    pool: Pool,
    window: usize,
    size: u64,
    open: Option<FillingBundle>,
    on_ack: Arc<dyn Fn(&Ack) + Send + Sync>,
}

struct FillingBundle {
    bundle: Bundle,
    pipeline: Pipeline,
    /// The load's number of its first member, and how many there are.
    first: u64,
    members: u64,
}

/// The members of a sealed bundle: the load's number of the first, and their versions.
pub(crate) struct SealedBundle {
    pub(crate) first: u64,
    pub(crate) versions: Vec<Option<junctura::Version>>,
}

impl LoadBundles {
    /// Calls `on_ack` for each member, with its number in the load, when it is staged or refused.
    pub(crate) fn new(pool: &Pool, window: usize, size: u64, on_ack: impl Fn(&Ack) + Send + Sync + 'static) -> Self {
        Self {
            pool: pool.clone(),
            window,
            size,
            open: None,
            on_ack: Arc::new(on_ack),
        }
    }

    /// Returns the pipeline of the `n`-th offer of the load.
    pub(crate) fn pipeline(&mut self, n: u64) -> Result<&mut Pipeline> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin(n)?,
        };
        let open = self.open.insert(open);
        open.members += 1;
        Ok(&mut open.pipeline)
    }

    fn begin(&self, first: u64) -> Result<FillingBundle> {
        let bundle = self.pool.bundle()?;
        let on_ack = Arc::clone(&self.on_ack);
        let pipeline = bundle.pipeline(self.window)?.on_ack(move |mut ack| {
            ack.number += first;
            on_ack(&ack);
        });
        Ok(FillingBundle {
            bundle,
            pipeline,
            first,
            members: 0,
        })
    }

    /// Seals the bundle if it has all its members, or if this is the end.
    pub(crate) fn seal(&mut self, is_end: bool) -> Result<Option<SealedBundle>> {
        let is_due = |open: &mut FillingBundle| is_end || open.members >= self.size;
        let Some(mut open) = self.open.take_if(is_due) else {
            return Ok(None);
        };
        open.pipeline.flush()?;
        let completed: Completed = open.bundle.seal()?;
        let version = |number| {
            open.pipeline
                .staged(number)
                .and_then(|member| completed.version(member))
        };
        Ok(Some(SealedBundle {
            first: open.first,
            versions: (0..open.members).map(version).collect(),
        }))
    }

    /// Offers that are not acknowledged yet.
    pub(crate) fn outstanding(&mut self) -> Option<&mut Pipeline> {
        self.open.as_mut().map(|open| &mut open.pipeline)
    }
}
