//! One process of a load: reads its plan, waits for the start, does its part, reports.

pub(crate) mod bundled;
pub(crate) mod consumer;
pub(crate) mod observer;
pub(crate) mod producer;
pub(crate) mod subscriber;

use std::io::BufRead;
use std::time::{Duration, Instant};

use junctura::{Code, Pool, Result};

use crate::messages::{Word, begin, listen, or_tell, read, say};
use crate::pool::plan::{WorkerPlan, WorkerRole};
use crate::pool::report::WorkerFigures;
use crate::process::ProcessTask;
use crate::store;

/// Reads the plan from standard input and does it; a failure is reported to the coordinator too.
pub(crate) fn work() -> Result<()> {
    let mut lines = std::io::BufReader::new(std::io::stdin()).lines();
    match read(lines.next())? {
        ProcessTask::Pool(plan) => or_tell::<_, WorkerFigures>(connect_and_work(&plan, lines)),
        ProcessTask::Store(plan) => or_tell::<_, store::LaneFigures>(store::work(&plan, lines)),
    }
}

/// Connects; a replacement waits until a cut network is back.
fn connect(plan: &WorkerPlan) -> Result<Pool> {
    const PATIENCE: Duration = Duration::from_secs(30);
    const PAUSE: Duration = Duration::from_millis(50);
    let until = Instant::now() + PATIENCE;
    loop {
        match Pool::builder().url(&plan.url).name(plan.name()).open() {
            Err(error)
                if plan.life > 0
                    && matches!(error.code(), Code::Unavailable | Code::Disconnected)
                    && Instant::now() < until =>
            {
                #[expect(clippy::disallowed_methods, reason = "no event reports that a network is back")]
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}

fn connect_and_work(
    plan: &WorkerPlan,
    mut lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> Result<()> {
    let pool = connect(plan)?;
    let figures = match plan.role {
        WorkerRole::Producer => {
            let mut producer = producer::LoadProducer::new(plan, &pool)?;
            let at_ns = begin::<WorkerFigures>(&mut lines)?;
            producer.run(at_ns)?
        }
        WorkerRole::Consumer => {
            let mut consumer = consumer::LoadConsumer::new(plan, &pool)?;
            let at_ns = begin::<WorkerFigures>(&mut lines)?;
            consumer.run(at_ns, &listen(lines))?
        }
        WorkerRole::Observer => {
            let mut observer = observer::LoadObserver::new(plan, &pool)?;
            begin::<WorkerFigures>(&mut lines)?;
            observer.run(&listen(lines))?
        }
        WorkerRole::Subscriber => {
            let mut subscriber = subscriber::LoadSubscriber::new(plan, &pool)?;
            begin::<WorkerFigures>(&mut lines)?;
            subscriber.run(&listen(lines))?
        }
    };
    say(&Word::Report(Box::new(figures)))
}
