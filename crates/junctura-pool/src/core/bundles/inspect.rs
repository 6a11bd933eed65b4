//! Lists of bundles, and look-ups in incomplete ones.

use std::collections::BTreeSet;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, RecordRef, Result};
use junctura_wire::Reply;
use junctura_wire::body::{self, BundleAttributes, BundleStatus, BundlesPage};

use super::{BundleRow, BundleTable, path, subject};
use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::stat::BundlesStat;
use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::table::ObjectTable;

/// The approximate size of a page of a list of bundles.
const PAGE_BYTES: usize = 128 << 10;

/// Whether a bundle's attributes match. One without attributes matches a selector that requires none.
fn is_about(bundle: &BundleRow, selectors: &SelectorSet, schemas: usize) -> bool {
    match &bundle.terms.attributes {
        Some(about) => selectors
            .of(usize::from(about.schema))
            .is_some_and(|selector| selector.matches(RecordRef::trusted(&about.record))),
        None => (0..schemas)
            .filter_map(|schema| selectors.of(schema))
            .any(|selector| selector.matches(RecordRef::trusted(&[]))),
    }
}

impl BundleRow {
    /// Returns the status of a bundle for a list of bundles.
    fn status(&self, number: u64, now: Nanoseconds) -> BundleStatus<'_> {
        BundleStatus {
            number,
            path: self.path.as_deref().map(Into::into),
            state: self.phase as u8,
            declared: self.terms.declared,
            members: self.there(),
            bytes: self.bytes,
            openers: self.openers_below,
            orphaned_for_ms: self.orphaned.map(|at| at.saturating_sub(now) / 1_000_000),
            attributes: self.terms.attributes.as_ref().map(|about| BundleAttributes {
                schema: about.schema,
                record: about.record.as_slice().into(),
            }),
            first: self.first,
            visible: self.visible,
            parent: self.parent,
        }
    }
}

impl BundleTable {
    pub(in crate::core) fn bundle_name(&self, number: u64) -> Option<body::BundlePeer<'_>> {
        self.get(number).map(BundleRow::name)
    }

    /// Returns the numbers of the bundle of a path and of the bundles nested in it.
    pub(in crate::core) fn bundles_under(&self, path: &str) -> Result<BTreeSet<u64>> {
        if let Some(&number) = self.paths.get(path) {
            return Ok(self.tree(number).into_iter().collect());
        }
        path::check_path(path, &self.config.limits)?;
        let cause = "no bundle has this path, or it ended long ago; `junctura pool bundle list` lists them";
        Err(Error::new(Code::NotFound, subject(Some(path)), cause))
    }

    /// Returns the staged objects that match, in no order. Scans all staged objects.
    pub(in crate::core) fn staged_matches(&self, objects: &ObjectTable, selectors: &SelectorSet) -> Vec<u32> {
        let members = self.table.values().flat_map(|bundle| bundle.members.values());
        let matches = |id: &u32| {
            let object = &objects[*id];
            let selector = selectors.of(usize::from(object.schema));
            selector.is_some_and(|selector| selector.matches(object.record()))
        };
        members.map(|member| member.object).filter(matches).collect()
    }

    /// Returns the staged object of a key in the bundle that was opened last.
    pub(in crate::core) fn staged_of(&self, key: u128) -> Option<u32> {
        let mut latest_first = self.table.values().rev();
        latest_first.find_map(|bundle| Some(bundle.members.get(key)?.object))
    }

    pub(in crate::core) fn bundles_stat(&self) -> BundlesStat {
        let bundles = self;
        BundlesStat {
            open: bundles.open as u64,
            remembered: (bundles.table.len() - bundles.open) as u64,
            staged: bundles.pinned.objects - bundles.dropped.objects,
            staged_bytes: bundles.pinned.payload_bytes - bundles.dropped.bytes,
            completed: bundles.completed,
            aborted: bundles.aborted,
        }
    }

    /// Returns a page of the bundles whose attributes match.
    pub(in crate::core) fn list_bundles(
        &mut self,
        asked: &ClientRequests,
        client: u32,
        request: u64,
        page: &body::BundlesRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let selectors = asked.interests.selectors(&page.selector)?;
        let is_asked = |bundle: &BundleRow| {
            let top = page.path.as_deref();
            let is_there = top.is_none_or(|top| bundle.path.as_deref().is_some_and(|path| path::is_under(path, top)));
            is_there && is_about(bundle, &selectors, self.config.schemas.len())
        };
        let behind = self.table.range(page.after.saturating_add(1)..);
        let mut found = behind.filter(|(_, bundle)| is_asked(bundle)).peekable();
        let (mut bytes, mut items) = (0, Vec::new());
        while bytes < PAGE_BYTES
            && let Some((&number, bundle)) = found.next()
        {
            let status = bundle.status(number, asked.timers.now);
            bytes += 64 + status.path.as_ref().map_or(0, |path| path.len());
            bytes += status.attributes.as_ref().map_or(0, |about| about.record.len());
            items.push(status);
        }
        let last = found.peek().is_none();
        fx.reply(client, request, &Reply::Bundled(BundlesPage { last, items }));
        Ok(())
    }
}
