//! Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order.

use junctura::{DemandOptions, Pool};

fn main() -> junctura::Result<()> {
    // Private to this process and its children, or where the address says: unix:NAME.
    let pool = match std::env::args().nth(1) {
        Some(address) => Pool::connect(&address)?,
        None => Pool::embedded()?,
    };
    let wanted = pool.begin_demand("param=t, levelist=500, step=6", DemandOptions::default())?;
    println!("asked for: param=t, levelist=500, step=6");

    for step in ["0", "6"] {
        let key = [
            ("class", "od"),
            ("stream", "oper"),
            ("date", "2026-11-20"),
            ("time", "12"),
            ("type", "fc"),
            ("levtype", "pl"),
            ("step", step),
            ("levelist", "500"),
            ("param", "t"),
        ];
        pool.offer(key, format!("temperature of step {step}").as_bytes())?;
    }

    let field = wanted.wait()?;
    println!("got: {}", String::from_utf8_lossy(&field));
    Ok(())
}
