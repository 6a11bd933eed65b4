//! What a disk allows: the bytes of a lane's objects, appended to a plain file, and synced as often as a writer flushes.

use std::fs::File;
use std::io::{Error as IoError, Write};

use junctura::{Code, Error, Result};

use super::objects::Objects;
use super::{Figures, Lane, Plan, Start};

pub(super) struct Plain {
    objects: Objects,
    lane: u64,
    file: File,
    payload: Vec<u8>,
}

impl Plain {
    pub(super) fn new(plan: &Plan, lane: u64) -> Result<Self> {
        Ok(Self {
            objects: plan.objects.clone(),
            lane,
            file: File::create(plan.folder.join(lane.to_string())).map_err(|error| failed(&error))?,
            payload: plan.objects.payload(lane),
        })
    }
}

impl Lane for Plain {
    fn run(&mut self, start: &Start) -> Result<Figures> {
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
        Ok(Figures {
            written,
            write_ns: start.elapsed_ns(),
            ..Figures::default()
        })
    }
}

fn failed(error: &IoError) -> Error {
    Error::new(Code::Io, "a plain file", error.to_string())
}
