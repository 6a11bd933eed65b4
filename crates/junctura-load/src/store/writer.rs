//! Writes a lane's objects into a store.

use junctura::Result;
use junctura_store::StoreWriter;

use super::objects::{RowObjects, SCHEMA};
use super::{LaneFigures, LaneStart, LoadLane, OpenedStore, StorePlan};
use crate::load::LoadNames;

pub(super) struct WritingLane {
    objects: RowObjects,
    lane: u64,
    versions: std::ops::Range<u64>,
    writer: StoreWriter,
    names: LoadNames,
    payload: Vec<u8>,
}

impl WritingLane {
    pub(super) fn new(plan: &StorePlan, lane: u64, opened: &OpenedStore) -> Result<Self> {
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

impl LoadLane for WritingLane {
    fn run(&mut self, start: &LaneStart) -> Result<LaneFigures> {
        let mut written = 0;
        for version in self.versions.clone() {
            for n in self.objects.of_lane(self.lane) {
                self.archive(n, version)?;
                written += 1;
                start.did_one()?;
            }
            self.writer.flush()?;
        }
        Ok(LaneFigures {
            written,
            write_ns: start.elapsed_ns(),
            ..LaneFigures::default()
        })
    }
}
