//! A table of which some rows have been removed.

use std::sync::Arc;

use junctura_model::Result;
use junctura_model::selector::Question;

use super::select::Rows;
use super::{Place, Table};
use crate::removal::Run;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    table: Arc<Table>,
    gone: Option<Arc<Rows>>,
}

impl From<Table> for Live {
    fn from(table: Table) -> Self {
        Self {
            table: Arc::new(table),
            gone: None,
        }
    }
}

impl Live {
    /// All rows, those that have been removed, too.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether nothing has been removed from it.
    pub(crate) fn is_whole(&self) -> bool {
        self.gone.is_none()
    }

    pub(crate) fn into_table(self) -> Arc<Table> {
        self.table
    }

    /// Whether both are the same rows.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let gone = |one: &Self| one.gone.as_ref().map(Arc::as_ptr);
        Arc::ptr_eq(&self.table, &other.table) && gone(self) == gone(other)
    }

    /// The rows that are left and that it asks for; see [`Table::select`].
    pub(crate) fn select(&self, question: &Question<'_>) -> Rows {
        self.left_of(self.table.select(question))
    }

    /// The rows that are left and that it may ask for; see [`Table::select_keys`].
    pub(crate) fn select_keys(&self, question: &Question<'_>, key_len: usize) -> Rows {
        self.left_of(self.table.select_keys(question, key_len))
    }

    fn left_of(&self, mut rows: Rows) -> Rows {
        if let Some(gone) = &self.gone {
            rows.leave_out(gone);
        }
        rows
    }

    /// The files in which objects lie that are left.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        let mut used = vec![self.gone.is_none(); self.table.files().len()];
        if self.gone.is_some() {
            for row in self.left_of(Rows::all(self.table.len())).iter() {
                used[self.table.place(row).file as usize] = true;
            }
        }
        let files = self.table.files().iter().zip(used);
        files.filter(|(_, used)| *used).map(|(file, _)| file)
    }

    /// Takes rows out, by their numbers; tells the places of those that were there.
    pub(crate) fn remove(&mut self, runs: &[Run], mut tell: impl FnMut(Place)) {
        let mut gone = None;
        for row in runs.iter().flat_map(|run| self.table.rows_numbered(run)) {
            let gone = gone.get_or_insert_with(|| match &self.gone {
                Some(gone) => Rows::clone(gone),
                None => Rows::none(self.table.len()),
            });
            if !gone.contains(row) {
                gone.insert(row);
                tell(self.table.place(row));
            }
        }
        if let Some(gone) = gone {
            self.gone = Some(Arc::new(gone));
        }
    }

    /// The rows that are left, in a table of their own; none when none is.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub(crate) fn condensed(&self) -> Result<Option<Live>> {
        if self.gone.is_none() {
            return Ok(Some(self.clone()));
        }
        let rows: Vec<u32> = self.left_of(Rows::all(self.table.len())).iter().collect();
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.table.only(&rows)?.into()))
    }
}
