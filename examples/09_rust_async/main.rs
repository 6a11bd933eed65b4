//! A service on one runtime: tasks that offer, follow and demand, and one that gives up.

use std::time::Duration;

use futures_util::StreamExt as _;
use junctura::{DemandOptions, FollowOptions, Item, OfferOptions, Pool, WithdrawOptions};
use tokio::task::JoinSet;

const FIELDS: u32 = 20;
const VALUES: usize = 100 * 100;

/// Offers one field after the other, as they are computed: in the pool's memory, so that nothing is copied.
async fn produce(pool: Pool) -> junctura::Result<()> {
    let free = OfferOptions {
        schema: Some("free"),
        ..OfferOptions::default()
    };
    for step in 0..FIELDS {
        let mut field = pool.begin_allocate(VALUES * 8)?.await?;
        for value in field.chunks_exact_mut(8) {
            value.copy_from_slice(&f64::from(step).to_le_bytes());
        }
        let name = format!("t/{step}");
        let attributes = [("space", "service"), ("name", name.as_str()), ("unit", "K")];
        field.begin_offer(attributes, free.clone())?.await?;
    }
    Ok(())
}

/// The mean of each field, in the order in which they come.
async fn view(pool: Pool) -> junctura::Result<Vec<f64>> {
    let mut means = Vec::new();
    let mut fields = pool.begin_follow("space=service", FollowOptions::default())?.await?;
    while means.len() < FIELDS as usize {
        let Some(item) = fields.next().await else { break };
        if let Item::Object(field) = item? {
            let values = field.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value));
            means.push(values.sum::<f64>() / VALUES as f64);
        }
    }
    Ok(means)
}

#[tokio::main]
async fn main() -> junctura::Result<()> {
    let mut builder = Pool::builder().name("service");
    if let Some(address) = std::env::args().nth(1) {
        builder = builder.url(address);
    }
    let pool = builder.begin_open()?.await?;
    let viewer = tokio::spawn(view(pool.clone()));
    let mut waiting = JoinSet::new();
    for step in 0..FIELDS {
        let pool = pool.clone();
        waiting.spawn(async move {
            let selector = format!("name=\"t/{step}\"");
            let field = pool.begin_demand(selector.as_str(), DemandOptions::default())?.await?;
            junctura::Result::Ok(field.len())
        });
    }
    // A time limit is the runtime's own. Nothing of what was waited for stays behind.
    let impatient = pool.begin_demand("space=nobody", DemandOptions::default())?;
    assert!(
        tokio::time::timeout(Duration::from_millis(20), impatient)
            .await
            .is_err()
    );

    produce(pool.clone()).await?;
    let means = viewer.await.expect("no panic")?;
    let sizes = waiting
        .join_all()
        .await
        .into_iter()
        .collect::<junctura::Result<Vec<usize>>>()?;
    assert!(means.iter().copied().eq((0..FIELDS).map(f64::from)));
    println!(
        "{FIELDS} fields of {} bytes seen by one runtime",
        sizes.iter().sum::<usize>()
    );

    pool.begin_withdraw_all("space=service", WithdrawOptions::default())?
        .await?;
    pool.begin_sync()?.await // what was released is known, whatever becomes of this program now
}
