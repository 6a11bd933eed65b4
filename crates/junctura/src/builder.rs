//! What can be set before a pool is opened.
#[derive(Debug, Default)]
pub struct PoolBuilder {}
impl PoolBuilder {
    /// The defaults: an embedded pool with the built-in schemas.
    #[must_use]
    pub fn new() -> Self;
    /// Where the pool is; without one it is embedded in this process.
    pub fn url(self, url: impl Into<String>) -> Self;
    /// What this client calls itself; others see it in events and counters. By default the name of the program.
    pub fn name(self, name: impl Into<String>) -> Self;
    /// Adds a built-in schema by its name.
    /// An embedded pool knows the schemas that were added; a served one must agree with them. The first is the default.
    pub fn schema(self, builtin_name: &str) -> Self;
    /// Adds a schema from the text of a schema file
    pub fn schema_yaml(self, yaml: impl Into<String>) -> Self;
    /// Adds a schema from a file
    pub fn schema_file(self, path: impl Into<PathBuf>) -> Self;
    /// Starts a server for `unix:NAME` where none runs; it ends when idle
    pub fn start(self, start: bool) -> Self;
    /// Memory for payloads, in bytes (embedded pools and servers that `start` starts).
    pub fn budget_bytes(self, bytes: u64) -> Self;
    /// Mode `checked` (embedded pools and servers that `start` starts).
    pub fn checked(self, checked: bool) -> Self;
    /// Payloads of at most this many bytes travel inside the message (embedded..).
    pub fn inline_bytes_max(self, bytes: u64) -> Self;
    /// How long an offer may wait for memory before PoolFull; `None` (default): for ever.
    pub fn offer_timeout(self, timeout: Option<Duration>) -> Self;
    /// Called whenever a wait was interrupted by a signal ... an error ends the wait with it.
    pub fn on_interrupt(self, hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self;
    /// Opens the pool.
    pub fn open(self) -> Result<Pool>;
}
