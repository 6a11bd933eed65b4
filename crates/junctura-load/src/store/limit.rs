//! The limit of a disk: the bytes of a lane's objects, appended to a plain file, and synced as often as a writer
//! flushes.

use std::fs::File;
use std::io::{Error as IoError, Write};

use junctura::{Code, Error, Result};

use super::objects::RowObjects;
use super::{LaneFigures, LaneStart, LoadLane, StorePlan};

pub(super) struct PlainFile {
    objects: RowObjects,
    lane: u64,
    file: File,
    payload: Vec<u8>,
}

impl PlainFile {
    pub(super) fn new(plan: &StorePlan, lane: u64) -> Result<Self> {
        Ok(Self {
            objects: plan.objects.clone(),
            lane,
            file: File::create(plan.folder.join(lane.to_string())).map_err(|error| failed(&error))?,
            payload: plan.objects.payload(lane),
        })
    }
}

impl LoadLane for PlainFile {
    fn run(&mut self, start: &LaneStart) -> Result<LaneFigures> {
        let mut written = 0;
        for n in self.objects.of_lane(self.lane) {
            self.objects.stamp(n, 0, &mut self.payload);
            self.file.write_all(&self.payload).map_err(|error| failed(&error))?;
            written += 1;
            if written % self.objects.every == 0 {
                self.file.sync_data().map_err(|error| failed(&error))?;
            }
            start.did_one()?;
        }
        self.file.sync_data().map_err(|error| failed(&error))?;
        Ok(LaneFigures {
            written,
            write_ns: start.elapsed_ns(),
            ..LaneFigures::default()
        })
    }
}

fn failed(error: &IoError) -> Error {
    Error::new(Code::Io, "a plain file", error.to_string())
}
