pub struct Entry {}  // Deref<Target = Described>
impl Entry { version(), length() -> u64 }
pub struct Pages {}  // Iterator<Item = Result<Vec<Entry>>>
impl Pool {
    pub fn list(&self, selector: &str) -> Result<Vec<Entry>>;
    pub fn list_pages(&self, selector: &str, order_by: Option<&str>) -> Result<Pages>;
}
