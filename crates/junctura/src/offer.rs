//! Handing an object over.

/// How an object is offered, where it is not the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferOptions<'a> {
    /// The schema that describes it; `None`: the pool's default.
    pub schema: Option<&'a str>,
    /// How long it stays; `None`: as its schema says.
    pub retention: Option<Retention>,
}

impl Pool {
    /// Offers a copy of `payload`; returns when the object is visible.
    pub fn offer<'a, V: IntoGiven<'a>>(&self, attributes: impl IntoIterator<Item = (&'a str, V)>, payload: &[u8]) -> Result<Version>;
    pub fn offer_with<'a, V: IntoGiven<'a>>(&self, options: OfferOptions<'_>, attributes: impl IntoIterator<Item = (&'a str, V)>, payload: &[u8]) -> Result<Version>;
    /// Offers many, pipelined
    pub fn offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Version>>
    where V: IntoGiven<'a>, A: IntoIterator<Item = (&'a str, V)>, P: AsRef<[u8]>;
}
