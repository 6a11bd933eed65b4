//! A column that few rows use: takes no memory if none does.

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct SparseColumn<T>(Vec<Option<T>>);

impl<T> Default for SparseColumn<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> SparseColumn<T> {
    /// Whether no row can have it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, row: usize) -> Option<T> {
        self.0.get(row).copied().flatten()
    }

    /// Appends the value of the next row, after `rows` rows.
    pub(super) fn push(&mut self, rows: usize, value: Option<T>) {
        if value.is_some() || !self.is_empty() {
            self.0.resize(rows, None);
            self.0.push(value);
        }
    }

    /// Appends the values of the `other_rows` rows of another column, after `rows` rows.
    pub(super) fn append(&mut self, rows: usize, other: &Self, other_rows: usize) {
        if !other.is_empty() || !self.is_empty() {
            self.0.resize(rows, None);
            self.0.extend_from_slice(&other.0);
            self.0.resize(rows + other_rows, None);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
