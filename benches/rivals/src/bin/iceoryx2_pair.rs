//! iceoryx2: publish-subscribe through shared memory, an event for each sample that wakes the subscriber.
//!
//! Awaited by the producer: nothing, but that no more than the window is on its way. Samples are loaned and written in
//! place; the attributes travel in the user header.

use std::collections::VecDeque;
use std::error::Error;
use std::mem::MaybeUninit;
use std::time::Duration;

use iceoryx2::prelude::*;
use rivals::{Plan, Role, Tally, attributes};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Samples = iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc::Service, [u8], Meaning>;
type Events = iceoryx2::service::port_factory::event::PortFactory<ipc::Service>;

/// The attributes of an object.
#[derive(Clone, Copy, Debug, ZeroCopySend)]
#[repr(C)]
struct Meaning {
    bytes: u32,
    text: [u8; 188],
}

impl Default for Meaning {
    fn default() -> Self {
        Self {
            bytes: 0,
            text: [0; 188],
        }
    }
}

fn main() -> Result<()> {
    set_log_level(LogLevel::Error);
    let plan = Plan::from_arguments()?;
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let place = plan.rendezvous.to_string_lossy().replace('/', "-");
    let samples = node
        .service_builder(&format!("junctura-bench{place}").as_str().try_into()?)
        .publish_subscribe::<[u8]>()
        .user_header::<Meaning>()
        .enable_safe_overflow(false)
        .subscriber_max_buffer_size(plan.window + 1)
        .subscriber_max_borrowed_samples(2)
        .max_publishers(1)
        .max_subscribers(1)
        .max_nodes(4)
        .open_or_create()?;
    let events = node
        .service_builder(&format!("junctura-bench{place}-events").as_str().try_into()?)
        .event()
        .max_nodes(4)
        .open_or_create()?;
    match plan.role {
        Role::Producer => produce(plan, &samples, &events),
        Role::Consumer => consume(plan, &samples, &events),
    }
}

fn produce(mut plan: Plan, samples: &Samples, events: &Events) -> Result<()> {
    let ahead = plan.slots.saturating_sub(plan.window).max(1);
    let publisher = samples
        .publisher_builder()
        .initial_max_slice_len(plan.bytes)
        .max_loaned_samples(ahead + 1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    let notifier = events.notifier_builder().create()?;
    // Loans are held so that the producer goes through as many payloads as it is told to.
    let mut loans = VecDeque::with_capacity(ahead);
    while loans.len() + 1 < ahead {
        let mut loan = publisher.loan_slice_uninit(plan.bytes)?;
        loan.payload_mut().fill(MaybeUninit::new(0));
        loans.push_back(loan);
    }
    let mut text = String::with_capacity(188);
    plan.begin()?;
    for number in plan.objects() {
        loans.push_back(publisher.loan_slice_uninit(plan.bytes)?);
        let Some(mut loan) = loans.pop_front() else { continue };
        attributes(number, &mut text);
        let meaning = loan.user_header_mut();
        meaning.bytes = text.len() as u32;
        meaning.text[..text.len()].copy_from_slice(text.as_bytes());
        plan.write(initialised(loan.payload_mut()), number);
        #[expect(unsafe_code, reason = "writing every byte is what `untouched` leaves out")]
        // SAFETY: bytes have no invalid values, and the segment's pages come zeroed from the system.
        let sample = unsafe { loan.assume_init() };
        sample.send()?;
        notifier.notify()?;
    }
    plan.linger()?;
    Ok(())
}

#[expect(unsafe_code, reason = "writing every byte is what `untouched` leaves out")]
fn initialised(payload: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    // SAFETY: bytes have no invalid values, and the segment's pages come zeroed from the system.
    unsafe { payload.assume_init_mut() }
}

fn consume(mut plan: Plan, samples: &Samples, events: &Events) -> Result<()> {
    let subscriber = samples.subscriber_builder().buffer_size(plan.window + 1).create()?;
    let listener = events.listener_builder().create()?;
    let mut tally = Tally::new();
    plan.begin()?;
    loop {
        while let Some(sample) = subscriber.receive()? {
            if !tally.take(&plan, sample.payload()) {
                tally.print(&plan);
                return Ok(());
            }
            drop(sample);
            tally.say(&plan);
        }
        listener.timed_wait(|_| {}, Duration::from_millis(100))?;
    }
}
