//! What reads for tasks: drivers, runtimes that end, loops of the program, threads.

use super::*;

#[test]
fn without_a_driver_nobody_waits_in_vain() {
    let pool = free().open().unwrap();
    let driver = pool.driver().unwrap();
    let mut demand = pin!(pool.begin_demand("name=a", DemandOptions::default()).unwrap());
    sleeps(demand.as_mut());
    drop(driver);
    assert_eq!(block_on(demand).unwrap_err().code(), Code::Unavailable);
    let synced = pool.begin_sync().unwrap();
    assert_eq!(block_on(synced).unwrap_err().code(), Code::Unavailable);
    // What blocks goes on, and a runtime of tokio's makes no driver where the program had one.
    pool.sync(None).unwrap();
    one_thread().block_on(async {
        let synced = pool.begin_sync().unwrap();
        assert_eq!(synced.await.unwrap_err().code(), Code::Unavailable);
    });
}

#[test]
fn an_answer_of_a_plain_pool_is_awaited() {
    // Within tokio a driver is made by the first task that waits.
    let pool = free().open().unwrap();
    one_thread().block_on(async {
        let late = pool.begin_demand("name=late", DemandOptions::default()).unwrap();
        let offered = tokio::spawn({
            let pool = pool.clone();
            async move {
                let mut memory = pool.begin_allocate(LARGE).unwrap().await.unwrap();
                memory.fill(7);
                let offered = memory.begin_offer([("name", "late")], OfferOptions::default());
                offered.unwrap().await.unwrap()
            }
        });
        assert_eq!(late.await.unwrap()[LARGE - 1], 7);
        assert_eq!(offered.await.unwrap().sequence, 1);
        let missing = pool.begin_demand("name=never", at_once()).unwrap();
        assert_eq!(missing.await.unwrap_err().code(), Code::NotFound);
    });
    // That runtime has ended: the next one makes its own.
    one_thread().block_on(async { pool.begin_sync().unwrap().await.unwrap() });

    // Elsewhere somebody has to read.
    let alone = free().open().unwrap();
    let demand = alone.begin_demand("name=a", DemandOptions::default()).unwrap();
    assert_eq!(block_on(demand).unwrap_err().code(), Code::Unavailable);
    // A loop of the program that watches the descriptor will do.
    let descriptor = alone.descriptor().unwrap();
    let looking = thread::spawn({
        let pool = alone.clone();
        move || {
            while poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).is_ok() && binding::look(&pool).is_ok() {}
        }
    });
    block_on(async {
        let demand = alone.begin_demand("name=a", DemandOptions::default()).unwrap();
        alone.offer([("name", "a")], b"payload").unwrap();
        assert_eq!(&demand.await.unwrap()[..], b"payload");
    });
    alone.close();
    looking.join().unwrap();
}

#[test]
fn a_task_is_woken_by_what_concerns_it_alone() {
    let pool = free().open().unwrap();
    let counts: Vec<Arc<Wakes>> = (0..3).map(|_| Arc::default()).collect();
    let mut demands: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            pool.begin_demand(Target::key([("name", *name)]), DemandOptions::default())
                .unwrap()
        })
        .collect();
    pool.descriptor().unwrap();
    for (demand, wakes) in demands.iter_mut().zip(&counts) {
        let waker = Waker::from(Arc::clone(wakes));
        let polled = Pin::new(demand).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    let woken = || -> Vec<usize> { counts.iter().map(|wakes| wakes.0.load(Ordering::Relaxed)).collect() };
    // A thread that waits reads for the tasks, too.
    pool.offer([("name", "b")], b"").unwrap();
    pool.sync(None).unwrap();
    assert_eq!(woken(), [0, 1, 0]);
    // One that was dropped is not woken any more; the end of the pool wakes all that wait.
    drop(demands.pop());
    pool.close();
    assert_eq!(woken(), [1, 1, 0]);
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_pool_outlives_the_runtime_of_its_driver() {
    let (first, second) = (one_thread(), one_thread());
    let pool = first.block_on(free().begin_open().unwrap()).unwrap();
    first.block_on(offer(&pool, "a", 10)).unwrap();
    let mut demand = Box::pin(pool.begin_demand("name=b", DemandOptions::default()).unwrap());
    sleeps(demand.as_mut());
    drop(first);
    second.block_on(async {
        offer(&pool, "b", LARGE).await.unwrap();
        assert_eq!(demand.await.unwrap().len(), LARGE);
    });
}

#[test]
fn threads_and_tasks_share_a_pool() {
    everywhere(async |pool| {
        let blocking = pool.clone();
        let thread = thread::spawn(move || {
            for number in 0..200 {
                let name = format!("from a thread {number}");
                blocking.offer([("name", name.as_str())], b"").unwrap();
                let object = blocking.demand(Target::key([("name", format!("from a task {number}").as_str())]), None);
                drop(object.unwrap());
            }
        });
        for number in 0..200 {
            offer(&pool, &format!("from a task {number}"), 10).await.unwrap();
            let name = format!("from a thread {number}");
            pool.begin_demand(Target::key([("name", name.as_str())]), DemandOptions::default())
                .unwrap()
                .await
                .unwrap();
        }
        thread.join().unwrap();
    });
}
