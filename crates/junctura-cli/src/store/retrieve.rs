//! `junctura retrieve`: payloads out of a store, all that a selector asks for.

use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Result};

use super::StoreArguments;
use crate::attributes::about_selector;
use crate::get::got::Retrieved;
use crate::get::taker::{IntoArguments, Taker};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::size;

/// Missing objects that are named one by one.
const NAMED_MAX: usize = 20;

const EXAMPLES: &str = "Examples:
  junctura retrieve --store /data/archive param=t/u/v levelist=500 step=0/to/24/by/6 -o winds.grib
  junctura retrieve --store /data/archive 'levelist>=500' -o fields/ --template '{step}/{param}{ext}'
  junctura retrieve --store /data/archive step=0/to/240/by/6 param=t --timeout 2h -o t.grib   when all are there
  junctura retrieve --store /data/archive --partial step=0/6/12 -o some.grib   those that are there
What a selector names value by value is expected in every combination.";

/// Get payloads from a store
///
/// The newest version of everything that matches, as it was at one moment. What is asked for and not there is an error that names
/// it (exit status 3), and then no file is written. Several selectors must all hold.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    /// What to retrieve: param=t, step=0/to/24/by/6, 'levelist>=500', a MARS request
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Retrieve what is there, and say what is missing
    #[arg(long)]
    partial: bool,
    /// Wait until nothing is missing
    #[arg(long, conflicts_with = "timeout")]
    wait: bool,
    /// Wait until nothing is missing, but no longer than this (exit status 4)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    into: IntoArguments,
}

impl Arguments {
    fn waits(&self) -> bool {
        self.wait || self.timeout.is_some()
    }
}

/// Retrieves.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let store = arguments.store.open()?;
    let selector = super::selector(&arguments.selectors, &store)?;
    let found = if arguments.waits() {
        store.retrieve_within(&selector, arguments.timeout, || interrupt.check())
    } else {
        store.snapshot()?.retrieve_partial(&selector)
    };
    let found = about_selector(found, &selector)?;
    let listing = if arguments.partial {
        for missing in found.missing.iter().take(NAMED_MAX) {
            say!("junctura: missing {missing}");
        }
        if found.missing.len() > NAMED_MAX {
            say!("junctura: {} more are missing", found.missing.len() - NAMED_MAX);
        }
        found.listing
    } else if arguments.waits() {
        found.complete_in_time(&selector)?
    } else {
        found.complete(&selector)?
    };
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, "nothing matches"));
    }
    let mut taker = Taker::open(&arguments.into, false)?;
    let mut progress = Progress::new();
    progress.expect(Some(listing.bytes()));
    listing.for_each_payload(|object, payload| {
        interrupt.check()?;
        taker.take(&Retrieved {
            object: object.describe(),
            commit: object.commit(),
            payload: payload?,
        })?;
        progress.show(taker.bytes(), taker.objects());
        Ok(())
    })?;
    progress.end();
    taker.finish()
}
