#[derive(Default)] pub struct WithdrawOptions { pub timeout: Option<Duration> /* None: for ever */, pub force: bool }
impl Pool {
    /// how many versions
    pub fn withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<u64>;
    pub fn retire(&self, selector: &str, options: WithdrawOptions) -> Result<u64>;
}
