#[derive(Clone, Debug)] pub struct FollowOptions { pub window: u32 /*256*/, pub order_by: Option<String>, pub cursor: Option<String /* printed Cursor */>, pub only_new: bool, pub until_live: bool }
pub enum Item { Object(Object), Live, Gap(Gap) }
pub struct Gap { pub items: Vec<GapItem>, pub reason: String }
pub struct GapItem { described: Described, version }   // Deref to Described: key(), get(), attributes()
pub struct Follow {}   // Send; Iterator<Item = Result<Item>>
impl Pool {
    pub fn follow(&self, selector: &str) -> Result<Follow>;
    pub fn follow_with(&self, options: &FollowOptions, selector: &str) -> Result<Follow>;
}
impl Follow {
    /// None after until_live's end or close
    pub fn next(&mut self) -> Result<Option<Item>>   // named next_item (Iterator::next is the iterator's)
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Item>>;   // Timeout
    pub fn try_next(&mut self) -> Result<Option<Item>>;
    pub fn snapshot_sequence(&self) -> u64;
    pub fn cursor(&self) -> Option<Cursor>;     // of the last object that was given
    pub fn is_live(&self) -> bool;
    pub fn stop(self) -> Result<()>;
}
