//! Rows with removals and relocations, in memory or in their file.

use std::sync::Arc;

use junctura_model::selector::SelectorQuestion;
use junctura_model::{AttrId, Code, Error, Result, Selector};

use crate::catalogue::segment::RowGroup;
use crate::catalogue::table::{ObjectLocation, RowSet, RowTable, SoughtKey, select, select_keys};
use crate::catalogue::unreadable::UnreadableRows;
use crate::log::leb128::Run;
use crate::log::relocation::RelocatedRows;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct RowOverlay {
    rows: RowSource,
    gone: Option<Arc<RowSet>>,
    /// Some were relocated.
    is_relocated: bool,
}

#[derive(Clone, Debug)]
enum RowSource {
    Table(Arc<RowTable>),
    /// No row is removed or relocated as long as the group is not in memory.
    Group(Arc<RowGroup>),
    /// They cannot be read.
    Lost(Arc<UnreadableRows>),
}

/// The conditions that a query may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OverlayFilter {
    /// All attributes.
    All,
    /// Only those of the key, so many: the result includes all rows with a requested key, and others.
    Key(usize),
}

impl From<Arc<RowTable>> for RowOverlay {
    fn from(table: Arc<RowTable>) -> Self {
        Self {
            rows: RowSource::Table(table),
            gone: None,
            is_relocated: false,
        }
    }
}

impl From<RowTable> for RowOverlay {
    fn from(table: RowTable) -> Self {
        Arc::new(table).into()
    }
}

impl From<RowGroup> for RowOverlay {
    fn from(group: RowGroup) -> Self {
        Self {
            rows: RowSource::Group(Arc::new(group)),
            gone: None,
            is_relocated: false,
        }
    }
}

impl From<UnreadableRows> for RowOverlay {
    fn from(lost: UnreadableRows) -> Self {
        Self {
            rows: RowSource::Lost(Arc::new(lost)),
            gone: None,
            is_relocated: false,
        }
    }
}

impl RowOverlay {
    /// Returns the number of rows, including removed ones.
    pub(crate) fn len(&self) -> usize {
        match &self.rows {
            RowSource::Table(table) => table.len(),
            RowSource::Group(group) => group.len(),
            RowSource::Lost(lost) => lost.rows,
        }
    }

    /// Why it cannot be read, where that is known.
    pub(crate) fn lost(&self) -> Option<&UnreadableRows> {
        match &self.rows {
            RowSource::Lost(lost) => Some(lost),
            _ => None,
        }
    }

    /// Returns the highest commit number that a row can have.
    pub(crate) fn last_commit(&self) -> u64 {
        match &self.rows {
            RowSource::Table(table) => table.last_commit(),
            RowSource::Group(group) => group.last_commit(),
            RowSource::Lost(lost) => lost.last_commit,
        }
    }

    /// Whether it needs no file any more.
    pub(crate) fn is_in_memory(&self) -> bool {
        match &self.rows {
            RowSource::Table(_) => true,
            RowSource::Group(group) => group.in_memory().is_some(),
            // Perhaps there is a newer checkpoint that does not need it.
            RowSource::Lost(_) => false,
        }
    }

    /// Returns whether no row was removed or relocated.
    pub(crate) fn is_whole(&self) -> bool {
        self.gone.is_none() && !self.is_relocated
    }

    /// Whether both are the same rows.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let is_same = match (&self.rows, &other.rows) {
            (RowSource::Table(one), RowSource::Table(other)) => Arc::ptr_eq(one, other),
            (RowSource::Group(one), RowSource::Group(other)) => Arc::ptr_eq(one, other),
            (RowSource::Lost(one), RowSource::Lost(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_same && self.gone.as_ref().map(Arc::as_ptr) == other.gone.as_ref().map(Arc::as_ptr)
    }

    /// All rows, those that have been removed, too.
    fn table(&self) -> Result<Arc<RowTable>> {
        match &self.rows {
            RowSource::Table(table) => Ok(Arc::clone(table)),
            RowSource::Group(group) => group.table(),
            RowSource::Lost(lost) => Err(lost.error.clone()),
        }
    }

    /// Returns a table in which rows are to be removed or relocated; `None` if the rows cannot be read: the change is
    /// then lost, too.
    fn table_to_change(&mut self) -> Result<Option<Arc<RowTable>>> {
        match self.table() {
            Err(error) if error.code() == Code::Corrupt => {
                if self.lost().is_none() {
                    *self = Self::from(UnreadableRows {
                        error,
                        rows: self.len(),
                        last_commit: self.last_commit(),
                        is_unopened: false,
                        datasets: None,
                    });
                }
                self.is_relocated = true;
                Ok(None)
            }
            table => table.map(Some),
        }
    }

    /// Returns the remaining rows that match a query, in a table that contains them.
    ///
    /// # Errors
    /// Errors of reading them.
    pub(crate) fn find(&self, question: &SelectorQuestion<'_>, by: OverlayFilter) -> Result<(Arc<RowTable>, Vec<u32>)> {
        let group = match &self.rows {
            RowSource::Table(table) => return self.find_in(table, question, by),
            RowSource::Lost(lost) => return lost.ask(question).map(|()| Default::default()),
            RowSource::Group(group) => group,
        };
        if let Some(table) = group.in_memory() {
            return self.find_in(table, question, by);
        }
        let rows: Vec<u32> = match by {
            OverlayFilter::All => select(&**group, question)?,
            OverlayFilter::Key(length) => select_keys(&**group, question, length)?,
        }
        .iter()
        .collect();
        if rows.is_empty() {
            return Ok(Default::default());
        }
        match group.only(&rows)? {
            Some(few) => Ok((Arc::new(few), (0..rows.len() as u32).collect())),
            None => Ok((group.table()?, rows)),
        }
    }

    /// Returns the remaining rows with a key, in a table that contains them; the selector matches that key.
    ///
    /// # Errors
    /// Errors of reading them.
    pub(crate) fn find_key(&self, key: &SoughtKey<'_>, selector: &Selector) -> Result<(Arc<RowTable>, Vec<u32>)> {
        let table = match &self.rows {
            RowSource::Table(table) => Some(table),
            RowSource::Group(group) => group.in_memory(),
            RowSource::Lost(_) => None,
        };
        let indexed = table.and_then(|table| Some((table, table.rows_of_key(key)?)));
        let Some((table, mut rows)) = indexed else {
            return self.find(&selector.question(), OverlayFilter::All);
        };
        if let Some(gone) = &self.gone {
            rows.retain(|&row| !gone.contains(row));
        }
        Ok((Arc::clone(table), rows))
    }

    fn find_in(
        &self,
        table: &Arc<RowTable>,
        question: &SelectorQuestion<'_>,
        by: OverlayFilter,
    ) -> Result<(Arc<RowTable>, Vec<u32>)> {
        let found = match by {
            OverlayFilter::All => select(&**table, question)?,
            OverlayFilter::Key(length) => select_keys(&**table, question, length)?,
        };
        Ok((Arc::clone(table), self.left_of(found).iter().collect()))
    }

    /// Whether its rows have no attributes but the first ones of their schema, so many.
    pub(crate) fn has_keys_only(&self, key_len: usize) -> bool {
        match &self.rows {
            RowSource::Table(table) => table
                .columns()
                .iter()
                .all(|column| column.id().index() < key_len || column.values_len() == 0),
            RowSource::Group(group) => group.has_keys_only(key_len),
            RowSource::Lost(_) => true,
        }
    }

    /// Passes each value of the remaining rows that match a query.
    ///
    /// # Errors
    /// Errors of reading them.
    pub(crate) fn each_value(&self, question: &SelectorQuestion<'_>, mut take: impl FnMut(AttrId, &str)) -> Result<()> {
        let table = match &self.rows {
            RowSource::Table(table) => table,
            RowSource::Lost(lost) => return lost.ask(question),
            RowSource::Group(group) => match group.in_memory() {
                Some(table) => table,
                None => return group.each_value(question, take),
            },
        };
        let rows = self.left_of(select(&**table, question)?);
        for column in table.columns() {
            column.used_values(&rows).for_each(|text| take(column.id(), text));
        }
        Ok(())
    }

    fn left_of(&self, mut rows: RowSet) -> RowSet {
        if let Some(gone) = &self.gone {
            rows.leave_out(gone);
        }
        rows
    }

    /// Returns the files of the remaining objects.
    ///
    /// # Errors
    /// Errors of reading them.
    pub(crate) fn files(&self) -> Result<Vec<Arc<str>>> {
        if let RowSource::Group(group) = &self.rows
            && !self.is_in_memory()
        {
            return group.files();
        }
        let table = self.table()?;
        let mut used = vec![self.is_whole(); table.files().len()];
        if !self.is_whole() {
            for row in self.left_of(RowSet::all(table.len())).iter() {
                used[table.place(row).file as usize] = true;
            }
        }
        let files = table.files().iter().zip(used);
        Ok(files
            .filter(|(_, used)| *used)
            .map(|(file, _)| Arc::clone(file))
            .collect())
    }

    /// Removes rows by number; passes the files and locations of existing ones to `tell`.
    ///
    /// # Errors
    /// Errors of reading them; nothing is then removed.
    pub(crate) fn remove(&mut self, runs: &[Run], mut tell: impl FnMut(&RowTable, ObjectLocation)) -> Result<()> {
        if let RowSource::Group(group) = &self.rows
            && !group.may_have(runs)
        {
            return Ok(());
        }
        let Some(table) = self.table_to_change()? else {
            return Ok(());
        };
        let mut gone = None;
        for row in runs.iter().flat_map(|run| table.rows_numbered(run)) {
            let gone = gone.get_or_insert_with(|| match &self.gone {
                Some(gone) => RowSet::clone(gone),
                None => RowSet::none(table.len()),
            });
            if !gone.contains(row) {
                gone.insert(row);
                tell(&table, table.place(row));
            }
        }
        if let Some(gone) = gone {
            self.gone = Some(Arc::new(gone));
        }
        Ok(())
    }

    /// Relocates rows; passes the previous files of the remaining ones to `tell`.
    ///
    /// # Errors
    /// Errors of reading them; nothing has then changed.
    pub(crate) fn relocate(&mut self, relocated: &RelocatedRows, mut tell: impl FnMut(&Arc<str>)) -> Result<()> {
        if let RowSource::Group(group) = &self.rows
            && !group.may_have(&relocated.runs)
        {
            return Ok(());
        }
        let Some(table) = self.table_to_change()? else {
            return Ok(());
        };
        let mut rows = Vec::new();
        let mut before = 0;
        for run in &relocated.runs {
            for row in table.rows_numbered(run) {
                let at = before + (table.number(row) - run.start);
                // There are as many places as numbers in all runs.
                let (file, offset) = relocated.places[at as usize];
                rows.push((row, &relocated.files[file as usize], offset));
            }
            before += run.end - run.start;
        }
        if let Some(gone) = &self.gone {
            rows.retain(|(row, ..)| !gone.contains(*row));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let is_nowhere = |(row, _, offset): &(u32, _, u64)| offset.checked_add(table.place(*row).length).is_none();
        if rows.iter().any(is_nowhere) {
            return Err(Error::new(Code::Corrupt, "relocation", "it has a row without a place"));
        }
        for (row, ..) in &rows {
            tell(table.file_of(*row));
        }
        if matches!(self.rows, RowSource::Group(_)) {
            self.rows = RowSource::Table(Arc::clone(&table));
        }
        drop(table);
        // Snapshots keep the unchanged table.
        if let RowSource::Table(table) = &mut self.rows {
            let table = Arc::make_mut(table);
            for (row, file, offset) in rows {
                table.relocate(row, file, offset);
            }
        }
        self.is_relocated = true;
        Ok(())
    }

    /// The names of the undeclared attributes that its rows have, or have had.
    pub(crate) fn open_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.rows {
            RowSource::Table(table) => Box::new(table.open_names().map(|name| &**name)),
            RowSource::Group(group) => Box::new(group.open_names()),
            RowSource::Lost(_) => Box::new(std::iter::empty()),
        }
    }

    /// Hands over the names of the undeclared attributes that rows have which are left.
    pub(crate) fn each_open_name(&self, mut take: impl FnMut(&str)) {
        let table = match &self.rows {
            RowSource::Table(table) => Some(table),
            RowSource::Group(group) => group.in_memory(),
            RowSource::Lost(_) => None,
        };
        let (Some(table), Some(_)) = (table, &self.gone) else {
            self.open_names().for_each(take);
            return;
        };
        let rows = self.left_of(RowSet::all(table.len()));
        let open = table.columns().iter().filter(|column| column.id() == AttrId::OPEN);
        let used = open.filter(|column| column.used_values(&rows).next().is_some());
        used.for_each(|column| take(column.name()));
    }

    /// Bytes of the texts of the column that has most, as far as that is known.
    pub(crate) fn text_bytes_max(&self) -> usize {
        match &self.rows {
            RowSource::Table(table) => table.text_bytes_max(),
            RowSource::Group(group) => group.in_memory().map_or(0, |table| table.text_bytes_max()),
            RowSource::Lost(_) => 0,
        }
    }

    /// Returns the remaining rows, in a new table if some were removed or relocated; `None` if none remain.
    ///
    /// # Errors
    /// As [`RowTable::append`]; errors of reading them.
    pub(crate) fn condensed(&self) -> Result<Option<Arc<RowTable>>> {
        let table = self.table()?;
        if self.is_whole() {
            return Ok(Some(table));
        }
        let rows: Vec<u32> = self.left_of(RowSet::all(table.len())).iter().collect();
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(table.only(&rows))))
    }
}
