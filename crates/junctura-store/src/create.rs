//! Creates a store: its root, and the mark at a separate location of its data files.

use std::sync::Arc;

use junctura_model::{Code, Error, Result, Schema};

use crate::data;
use crate::log::Commits;
use crate::maintenance::ownership::{self, OneCatalogue};
use crate::maintenance::tier;
use crate::root::{self, RootDraft, StoreLayout, StoreRoot};
use crate::storage::files_in;
use crate::store::Store;
use crate::url::StoreUrl;

/// See [`Store::create_url`].
pub(crate) fn create_in(place: &StoreUrl, schemas: &[Arc<Schema>], layout: &StoreLayout) -> Result<Store> {
    let commits = layout.commits.unwrap_or_else(|| place.commits());
    if commits == Commits::Appended && place.commits() != Commits::Appended {
        let cause = "an object store has no files to append to: its commits are exclusive";
        return Err(Error::new(Code::InvalidArgument, "commits", cause));
    }
    let data = layout.data.as_deref().map(StoreUrl::parse).transpose()?;
    if data.as_ref().is_some_and(|place| !place.is_absolute()) {
        let cause = "other clients, which open the store elsewhere, would search another place";
        return Err(Error::new(Code::InvalidArgument, "data", cause));
    }
    if data.as_ref() == Some(place) {
        return Err(Error::new(
            Code::InvalidArgument,
            "data",
            "is the place of the store itself: leave it out",
        ));
    }
    let disk = place.disk(true)?;
    disk.probe(commits == Commits::Exclusive)?;
    ownership::check_free(&*disk)?;
    let root = RootDraft::new(schemas, commits, layout)?;
    let id = root.id().to_owned();
    let data = data.map(|place| place.disk(true)).transpose()?;
    if let Some(data) = &data {
        data.probe(false)?;
        ownership::check_free(&**data)?;
        ownership::mark(&**data, tier::OWN, OneCatalogue { id: &id, disk: &*disk })?;
    }
    let made = root.make(&*disk);
    if let (Err(error), Some(data)) = (&made, &data) {
        let is_there =
            || StoreRoot::open(&*disk).map_or_else(|error| error.code() != Code::NotFound, |there| there.id == id);
        // It may be unknown whether the store was created.
        if error.code() != Code::Unavailable && !is_there() {
            ownership::unmark(&**data);
        }
    }
    made?;
    if let Some(data) = &data
        && disk.identity(root::NAME).is_some()
    {
        // Before its creation, no file distinguished it from copies. Without this remark the mark names only the
        // location.
        let _ = ownership::remark(&**data, tier::OWN, OneCatalogue { id: &id, disk: &*disk });
    }
    let store = Store::reached(place, disk)?;
    if data.is_some() {
        // Opened at once; the handle stays open.
        files_in(store.disk(), data::FOLDER)?;
    }
    Ok(store)
}
