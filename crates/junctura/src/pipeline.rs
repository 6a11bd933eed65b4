/// What became of the `number`th offer of a pipeline.
pub struct Ack { pub number: u64, pub outcome: Result<Version> }
/// Send. Without a callback the first failure is returned by a later offer or `flush`
pub struct Pipeline {}
impl Pool {
    /// window 0 counts as 1
    pub fn pipeline(&self, window: usize) -> Result<Pipeline>;
}
impl Pipeline {
    /// `call` gets every acknowledgement, in the order of the offers, on the thread that uses the pipeline
    pub fn on_ack(self, call: impl FnMut(Ack) + Send + 'static) -> Self;
    /// number of the offer in this pipeline, from 0
    pub fn offer<'a, V: IntoGiven<'a>>(&mut self, attributes: impl IntoIterator<Item = (&'a str, V)>, payload: &[u8]) -> Result<u64>;
    pub fn offer_with<'a, V: IntoGiven<'a>>(&mut self, options: OfferOptions<'_>, attributes, payload: &[u8]) -> Result<u64>;
    pub fn allocate(&mut self, bytes: usize) -> Result<Allocation>;
    pub fn offer_allocation<'a, V: IntoGiven<'a>>(&mut self, allocation: Allocation, attributes) -> Result<u64>;
    pub fn offer_allocation_with<'a, V: IntoGiven<'a>>(&mut self, options, allocation: Allocation, attributes) -> Result<u64>;
    /// sends what is buffered, without waiting
    pub fn push(&mut self) -> Result<()>;
    /// waits until at most `most` offers are not acknowledged
    pub fn wait_outstanding(&mut self, most: usize) -> Result<()>;
    pub fn outstanding(&self) -> usize;
    /// sends all and waits for all; Err = the first failure since the last flush
    pub fn flush(&mut self) -> Result<()>;
}
