//! Writes a lane's objects into a store.

use junctura::Result;
use junctura_store::Writer;

use super::objects::{Objects, SCHEMA};
use super::{Figures, Lane, Opened, Plan, Start};
use crate::hammer::load::Names;

pub(super) struct Archiver {
    objects: Objects,
    lane: u64,
    versions: std::ops::Range<u64>,
    writer: Writer,
    names: Names,
    payload: Vec<u8>,
}

impl Archiver {
    pub(super) fn new(plan: &Plan, lane: u64, opened: &Opened) -> Result<Self> {
        Ok(Self {
            objects: plan.objects.clone(),
            lane,
            versions: plan.versions.clone(),
            writer: opened.get()?.writer()?,
            names: plan.objects.names(lane),
            payload: plan.objects.payload(lane),
        })
    }

    fn archive(&mut self, n: u64, version: u64) -> Result<()> {
        self.objects.stamp(n, version, &mut self.payload);
        let attributes = self.objects.attributes(n, &mut self.names);
        self.writer.archive_in(SCHEMA, attributes, &self.payload)?;
        if self.writer.pending() >= self.objects.every {
            self.writer.flush()?;
        }
        Ok(())
    }
}

impl Lane for Archiver {
    fn run(&mut self, start: &Start) -> Result<Figures> {
        let mut written = 0;
        for version in self.versions.clone() {
            for n in self.objects.of_lane(self.lane) {
                self.archive(n, version)?;
                written += 1;
                start.did_one()?;
            }
            self.writer.flush()?;
        }
        Ok(Figures {
            written,
            write_ns: start.elapsed_ns(),
            ..Figures::default()
        })
    }
}
