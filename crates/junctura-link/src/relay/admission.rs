//! Which clients share a link, and how many.
//!
//! A client that has connected and has not introduced itself takes a place until the server's time for that is over. Where all places are
//! taken, the oldest such client is evicted for a new one.

use junctura_model::{Code, Error, Result};
use junctura_transport::LocalCarrier;

use super::{StreamRelay, give_up};
use crate::record::LinkRecord;
use crate::relay::channel::{LinkSide, RelayChannel};
use crate::relay::channel_source::ChannelSource;

/// Clients that share one link.
pub(super) const CHANNELS_MAX: usize = 1024;

impl StreamRelay {
    /// New clients of this machine, where they are let in.
    pub(super) fn let_in(&mut self) -> Result<bool> {
        if !std::mem::take(&mut self.is_called) {
            return Ok(false);
        }
        let mut has_moved = false;
        while let Some(carrier) = self.door.as_mut().map_or(Ok(None), ChannelSource::next)? {
            has_moved = true;
            if self.channels.len() >= self.channels_max && !self.evict_silent() {
                let error = too_many(self.channels_max);
                if let Some(door) = &mut self.door {
                    door.refuse(carrier, &error);
                }
                continue;
            }
            self.newest += 1;
            let number = self.newest;
            // Channels begin in the order of their numbers: a lower number that arrives later is of a channel that has ended.
            self.common.speak_on(number);
            let local = LocalCarrier::new(carrier);
            self.channels
                .push(RelayChannel::numbered(number, self.common.side, local));
        }
        Ok(has_moved)
    }

    /// Ends the oldest channel whose client has not introduced itself. The other end receives that before it receives another
    /// channel. Whether there was one.
    fn evict_silent(&mut self) -> bool {
        let silent = self.channels.iter_mut().filter(|channel| !channel.is_introduced());
        let Some(oldest) = silent.min_by_key(|channel| channel.number()) else {
            return false;
        };
        let cause = "it has not sent its greeting, and another client needs its place";
        let error = Error::new(Code::LimitExceeded, "channel of a link", cause);
        give_up(oldest, &error, &mut self.common);
        self.close_ended()
    }

    /// The records that follow are of this channel. The client's end begins a channel in this way.
    pub(super) fn hear(&mut self, number: u32) {
        self.hears = number;
        let Some(door) = self.door.as_mut().filter(|_| number > self.newest) else {
            return;
        };
        if self.common.side == LinkSide::Client {
            return;
        }
        self.newest = number;
        // Channels that the other end has closed have yet to pass on their earlier frames.
        let open = self.channels.iter().filter(|channel| !channel.is_closed()).count();
        let opened = if open < self.channels_max {
            door.open()
        } else {
            Err(too_many(self.channels_max))
        };
        match opened {
            Ok(local) => self
                .channels
                .push(RelayChannel::numbered(number, LinkSide::Server, local)),
            Err(error) => {
                tracing::info!(%error, "a client of a link cannot be admitted");
                self.common.say_failure(number, &error);
                self.common.queue.record(LinkRecord::Close(number));
            }
        }
    }
}

fn too_many(channels_max: usize) -> Error {
    let cause = format!("{channels_max} clients share this link already");
    Error::new(Code::LimitExceeded, "channel of a link", cause)
}
