//! Memory in the pool, to be filled in place.
/// Deref<Target=[u8]> + DerefMut, Send. Dropped without an offer: freed.
pub struct Allocation {}
impl Allocation {
    pub fn offer<'a, V: IntoGiven<'a>>(self, attributes: impl IntoIterator<Item = (&'a str, V)>) -> Result<Version>;
    pub fn offer_with<'a, V: IntoGiven<'a>>(self, options: OfferOptions<'_>, attributes: impl IntoIterator<Item = (&'a str, V)>) -> Result<Version>;
}
impl Pool {
    /// Waits for memory as long as the pool's offer timeout says
    pub fn allocate(&self, bytes: usize) -> Result<Allocation>;
    pub fn allocate_within(&self, bytes: usize, timeout: Option<Duration>) -> Result<Allocation>;
}
