impl Pool {
    /// One object; waits for it. `None`: for ever; zero: not at all (NotFound)
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object>;
}
