//! The choices of a user: the table, its order, the selected row.
//!
//! While a row is selected, rows keep their places: new rows follow the last one, and rows that are gone stay until the selection ends. So
//! the row under the cursor is always the one that the user has chosen. Without a selection, each frame is sorted.

use std::collections::BTreeMap;

use super::explanation::ExplanationPane;
use super::keys::TerminalKey;
use crate::top::frame::TopFrame;
use crate::top::tables::{TableRow, columns, table};
use crate::top::{RowOrder, TopScreen};

/// Rows that a page key moves by.
const PAGE: isize = 10;

/// The shown table, and the cursor.
#[derive(Debug)]
pub(in crate::top) struct TopView {
    pub(super) screen: TopScreen,
    pub(super) order: RowOrder,
    pub(super) rows: Vec<ShownRow>,
    /// Rows of the pool that its board does not list.
    pub(super) unlisted: u64,
    pub(super) selected: Option<usize>,
    /// The first row that is shown.
    pub(super) first: usize,
    /// The filter while it is typed.
    pub(super) typed: Option<String>,
    pub(super) is_paused: bool,
    pub(super) is_help: bool,
    pub(super) explanation: Option<ExplanationPane>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownRow {
    pub(super) row: TableRow,
    /// The newest frame does not have it.
    pub(super) is_gone: bool,
}

/// The action that a key requests.
#[derive(Debug, PartialEq)]
pub(super) enum ViewAction {
    Nothing,
    Quit,
    /// The table is to be arranged again.
    Arrange,
    Explain(Box<TableRow>),
}

impl TopView {
    pub(in crate::top) fn new(screen: TopScreen, order: RowOrder) -> Self {
        Self {
            screen,
            order,
            rows: Vec::new(),
            unlisted: 0,
            selected: None,
            first: 0,
            typed: None,
            is_paused: false,
            is_help: false,
            explanation: None,
        }
    }

    /// Takes the rows of a frame.
    pub(super) fn update(&mut self, frame: &TopFrame) {
        let all = table(frame, self.screen);
        let mut shown = all.clone();
        shown.arrange(&self.order);
        self.unlisted = shown.unlisted;
        let shown_rows = |rows: Vec<TableRow>| rows.into_iter().map(|row| ShownRow { row, is_gone: false });
        if self.selected.is_none() {
            self.rows = shown_rows(shown.rows).collect();
            return;
        }
        let rows = all.rows.into_iter().map(|row| (row.key.clone(), row));
        let mut present: BTreeMap<String, TableRow> = rows.collect();
        for old in &mut self.rows {
            match present.remove(&old.row.key) {
                Some(row) => *old = ShownRow { row, is_gone: false },
                None => old.is_gone = true,
            }
        }
        shown.rows.retain(|row| present.contains_key(&row.key));
        self.rows.extend(shown_rows(shown.rows));
    }

    /// Scrolls so that the selected row is among so many.
    pub(super) fn scroll_to(&mut self, height: usize) {
        let selected = self.selected.unwrap_or_default();
        self.first = self.first.min(selected).max((selected + 1).saturating_sub(height));
    }

    pub(super) fn handle(&mut self, key: TerminalKey) -> ViewAction {
        if key == TerminalKey::Interrupt {
            return ViewAction::Quit;
        }
        if let Some(typed) = self.typed.take() {
            return self.type_filter(typed, key);
        }
        if self.is_help {
            self.is_help = false;
            return ViewAction::Nothing;
        }
        if let Some(explanation) = &mut self.explanation {
            match key {
                TerminalKey::Esc | TerminalKey::Char('q') => self.explanation = None,
                TerminalKey::Down | TerminalKey::Char('j') => explanation.scroll(1),
                TerminalKey::Up | TerminalKey::Char('k') => explanation.scroll(-1),
                TerminalKey::PageDown => explanation.scroll(PAGE),
                TerminalKey::PageUp => explanation.scroll(-PAGE),
                _ => {}
            }
            return ViewAction::Nothing;
        }
        self.command(key)
    }

    fn command(&mut self, key: TerminalKey) -> ViewAction {
        match key {
            TerminalKey::Char('q') => return ViewAction::Quit,
            TerminalKey::Char('?') => self.is_help = true,
            TerminalKey::Char(' ') => self.is_paused = !self.is_paused,
            TerminalKey::Char('f' | '/') => self.typed = Some(self.order.filter.clone()),
            TerminalKey::Char('e') | TerminalKey::Enter => return self.explain(),
            TerminalKey::Char('s') => return self.sort_by_next(1),
            TerminalKey::Char('S') => return self.sort_by_next(-1),
            TerminalKey::Char(digit @ '1'..='5') => return self.change(digit as usize - '1' as usize),
            TerminalKey::Tab => return self.change(self.screen as usize + 1),
            TerminalKey::Esc => {
                self.selected = None;
                return ViewAction::Arrange;
            }
            TerminalKey::Down | TerminalKey::Char('j') => self.select(1),
            TerminalKey::Up | TerminalKey::Char('k') => self.select(-1),
            TerminalKey::PageDown => self.select(PAGE),
            TerminalKey::PageUp => self.select(-PAGE),
            TerminalKey::Home | TerminalKey::Char('g') => self.select(isize::MIN),
            TerminalKey::End | TerminalKey::Char('G') => self.select(isize::MAX),
            _ => {}
        }
        ViewAction::Nothing
    }

    fn type_filter(&mut self, mut typed: String, key: TerminalKey) -> ViewAction {
        match key {
            TerminalKey::Enter => {
                self.order.filter = typed;
                return self.arrange();
            }
            TerminalKey::Esc => return ViewAction::Nothing,
            TerminalKey::Backspace => _ = typed.pop(),
            TerminalKey::Char(letter) => typed.push(letter),
            _ => {}
        }
        self.typed = Some(typed);
        ViewAction::Nothing
    }

    /// Moves the cursor; the first move selects the first row that is shown.
    fn select(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = match self.selected {
            _ if self.rows.is_empty() => None,
            None => Some(self.first.min(last)),
            Some(place) => Some(place.saturating_add_signed(by).min(last)),
        };
    }

    fn explain(&mut self) -> ViewAction {
        if self.selected.is_none() {
            self.select(0);
        }
        let row = self.selected.and_then(|place| self.rows.get(place));
        row.map_or(ViewAction::Nothing, |shown| {
            ViewAction::Explain(Box::new(shown.row.clone()))
        })
    }

    fn change(&mut self, place: usize) -> ViewAction {
        self.screen = TopScreen::ALL[place % TopScreen::ALL.len()];
        self.order = RowOrder::default();
        self.arrange()
    }

    /// Sorts by the next column, or not at all.
    fn sort_by_next(&mut self, by: isize) -> ViewAction {
        let columns = columns(self.screen);
        let sorted = columns
            .iter()
            .position(|column| Some(column.name) == self.order.column.as_deref());
        let places = columns.len() + 1;
        let place = sorted.map_or(0, |place| place + 1);
        let next = (place + places).saturating_add_signed(by) % places;
        let column = next.checked_sub(1).and_then(|place| columns.get(place));
        self.order.column = column.map(|column| column.name.to_owned());
        self.arrange()
    }

    fn arrange(&mut self) -> ViewAction {
        self.selected = None;
        self.first = 0;
        ViewAction::Arrange
    }
}
