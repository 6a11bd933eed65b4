pub enum EventKind { Offered, Withdrawn, Expired, Joined, Left, Superseded }  // name(), from_name(), ALL
pub struct Peer { pub client: u32, pub name: String, pub host: String, pub pid: u32 }
pub struct PoolEvent { pub kind: EventKind, pub object: Option<Described>, pub version: Option<Version>, pub length: u64, pub client: Option<Peer>, pub reason: String }
pub struct Subscription {}  // Iterator<Item = Result<PoolEvent>>; next_event() -> Result<Option<PoolEvent>>, next_within(Duration), try_next()
impl Pool { subscribe(&self, selector: &str, kinds: &[EventKind] /* empty: all */) -> Result<Subscription> }
