pub struct RequireOptions { pub newest_only: bool, pub name: Option<String> }
pub struct Requirement {}   // Drop retracts
impl Pool { require(&self, selector: &str) -> Result<Requirement>; require_with(&self, &RequireOptions, selector) }
impl Requirement {
    pub fn follow(&self) -> Result<Follow>;
    pub fn follow_with(&self, options: &FollowOptions, selector: Option<&str>) -> Result<Follow>;
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object>;
    pub fn selector(&self) -> &str;
    pub fn retract(self) -> Result<()>;
}
