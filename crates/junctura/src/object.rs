/// How the payload came
pub enum Transport { Inline, Mapped }
/// Send + Sync; Deref<Target=[u8]>; dropped: released. Share it with Arc.
pub struct Object {}
impl Object {
    pub fn key(&self) -> &str;
    pub fn version(&self) -> Version;
    pub fn schema(&self) -> &Arc<Schema>;
    /// name and canonical text, key attributes first
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)>;
    /// by name or alias
    pub fn get(&self, name: &str) -> Option<&str>;
    pub fn payload(&self) -> &[u8];
    pub fn len(&self) -> usize; is_empty
    /// None for an object of a demand
    pub fn cursor(&self) -> Option<Cursor>;
    pub fn in_first_phase(&self) -> bool;
    pub fn producer(&self) -> u32;
    pub fn transport(&self) -> Transport;
    /// tells the server now
    pub fn release(self) -> Result<()>;
}
