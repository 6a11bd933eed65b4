//! The tables of `junctura top`: each has columns, and rows with a key that stays.

use std::cmp::Ordering;
use std::time::Duration;

use junctura::board::{BoardClient, BoardRequirement};
use junctura::{Code, Error, Result};
use junctura_terminal::size;
use junctura_terminal::visible;
use serde_json::{Map, Value, json};

use super::frame::{TopFrame, span};
use super::{RowOrder, TopScreen};

/// A column: its name in JSON, its heading, and whether it is a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableColumn {
    pub(super) name: &'static str,
    pub(super) heading: &'static str,
    pub(super) is_text: bool,
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CellValue {
    Text(String),
    Count(u64),
    Bytes(u64),
    /// In a second.
    Rate(f64),
    /// Bytes in a second.
    ByteRate(f64),
    Age(Option<Duration>),
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableRow {
    /// Identifies the row in the next frame.
    pub(super) key: String,
    pub(super) cells: Vec<CellValue>,
    /// The arguments of `junctura explain` for it.
    pub(super) explain: Vec<String>,
}

/// A table of one frame.
#[derive(Clone, Debug)]
pub(super) struct TopTable {
    pub(super) columns: &'static [TableColumn],
    pub(super) rows: Vec<TableRow>,
    /// Rows of the pool that its board does not list.
    pub(super) unlisted: u64,
}

const fn text(name: &'static str, heading: &'static str) -> TableColumn {
    TableColumn {
        name,
        heading,
        is_text: true,
    }
}

const fn number(name: &'static str, heading: &'static str) -> TableColumn {
    TableColumn {
        name,
        heading,
        is_text: false,
    }
}

const COMPONENTS: &[TableColumn] = &[
    text("component", "NAME"),
    number("clients", "N"),
    number("offered_per_s", "OFF/S"),
    number("offered_bytes_per_s", "OFF B/S"),
    number("delivered_per_s", "DEL/S"),
    number("delivered_bytes_per_s", "DEL B/S"),
    number("held", "HELD"),
    number("offers_waiting", "WAITS"),
    number("backlog_bytes", "BACKLOG"),
    text("note", "NOTE"),
];

const REQUIREMENTS: &[TableColumn] = &[
    text("requirement", "NAME"),
    number("owed", "OWED"),
    number("owed_bytes", "BYTES"),
    number("in_flight", "IN FLIGHT"),
    number("members", "READERS"),
    number("oldest_owed_age_s", "OLDEST"),
    number("last_release_age_s", "RELEASED"),
    number("lost", "LOST"),
    text("status", "STATUS"),
];

const CLIENTS: &[TableColumn] = &[
    text("name", "NAME"),
    number("pid", "PID"),
    number("offered_per_s", "OFF/S"),
    number("delivered_per_s", "DEL/S"),
    number("held", "HELD"),
    number("leased_bytes", "LEASED"),
    number("backlog_bytes", "BACKLOG"),
    text("transport", "ROUTE"),
    text("host", "HOST"),
    text("note", "NOTE"),
];

const DATASETS: &[TableColumn] = &[
    text("dataset", "NAME"),
    number("visible", "OBJECTS"),
    number("visible_bytes", "BYTES"),
    number("offered_per_s", "OFF/S"),
    number("offered_bytes_per_s", "OFF B/S"),
];

const WAITS: &[TableColumn] = &[
    text("name", "NAME"),
    number("pid", "PID"),
    number("offers_waiting", "OFFERS"),
    number("requests", "REQUESTS"),
    number("held", "HELD"),
    number("leased_bytes", "LEASED"),
    number("backlog_bytes", "BACKLOG"),
    text("note", "NOTE"),
];

/// Returns the columns of a table.
pub(super) fn columns(screen: TopScreen) -> &'static [TableColumn] {
    match screen {
        TopScreen::Components => COMPONENTS,
        TopScreen::Requirements => REQUIREMENTS,
        TopScreen::Clients => CLIENTS,
        TopScreen::Datasets => DATASETS,
        TopScreen::Waits => WAITS,
    }
}

/// # Errors
/// `InvalidArgument` if the table has no such column; without a table, if none has it.
pub(super) fn check_column(screen: Option<TopScreen>, name: &str) -> Result<()> {
    let screens = screen.map_or_else(|| TopScreen::ALL.to_vec(), |screen| vec![screen]);
    let mut names: Vec<&str> = screens
        .iter()
        .flat_map(|&screen| columns(screen).iter().map(|column| column.name))
        .collect();
    if names.contains(&name) {
        return Ok(());
    }
    names.sort_unstable();
    names.dedup();
    let cause = format!("there is no such column; columns are {}", names.join(", "));
    Err(Error::new(Code::InvalidArgument, format!("--sort {name}"), cause))
}

/// Returns a table of a frame, in the order of the board.
pub(super) fn table(frame: &TopFrame, screen: TopScreen) -> TopTable {
    let rows = match screen {
        TopScreen::Components => components(frame),
        TopScreen::Requirements => frame.now.requirements.iter().map(requirement).collect(),
        TopScreen::Clients => frame.now.clients.iter().map(|one| client(frame, one)).collect(),
        TopScreen::Datasets => datasets(frame),
        TopScreen::Waits => waits(frame),
    };
    let unlisted = match screen {
        TopScreen::Requirements => frame.now.requirements_unlisted,
        TopScreen::Clients | TopScreen::Waits => frame.now.clients_unlisted,
        TopScreen::Components | TopScreen::Datasets => 0,
    };
    TopTable {
        columns: columns(screen),
        rows,
        unlisted,
    }
}

fn components(frame: &TopFrame) -> Vec<TableRow> {
    let rows = frame.now.components.iter().enumerate().map(|(place, one)| {
        let before = frame.before.components.get(place).cloned().unwrap_or_default();
        let clients = || {
            frame
                .now
                .clients
                .iter()
                .filter(|client| usize::from(client.component) == place)
        };
        let sum = |value: fn(&BoardClient) -> u64| clients().map(value).sum();
        let note = clients().find(|client| !client.note.is_empty());
        TableRow {
            key: one.name.clone(),
            cells: vec![
                CellValue::Text(one.name.clone()),
                CellValue::Count(one.clients),
                CellValue::Rate(frame.per_second(before.offered, one.offered)),
                CellValue::ByteRate(frame.per_second(before.offered_bytes, one.offered_bytes)),
                CellValue::Rate(frame.per_second(before.delivered, one.delivered)),
                CellValue::ByteRate(frame.per_second(before.delivered_bytes, one.delivered_bytes)),
                CellValue::Count(sum(|client| client.held)),
                CellValue::Count(sum(|client| client.offers_waiting)),
                CellValue::Bytes(sum(|client| client.backlog_bytes)),
                CellValue::Text(note.map(|client| client.note.clone()).unwrap_or_default()),
            ],
            explain: vec!["--client".to_owned(), one.name.clone()],
        }
    });
    rows.collect()
}

fn requirement(one: &BoardRequirement) -> TableRow {
    let status = match one {
        _ if one.is_broken => "broken",
        _ if one.members == 0 && one.owed > 0 => "no reader",
        _ if one.owed > 0 => "behind",
        _ => "fine",
    };
    TableRow {
        key: one.name.clone(),
        cells: vec![
            CellValue::Text(one.name.clone()),
            CellValue::Count(one.owed),
            CellValue::Bytes(one.owed_bytes),
            CellValue::Count(one.in_flight),
            CellValue::Count(one.members),
            CellValue::Age(one.oldest_owed_age_ns.map(Duration::from_nanos)),
            CellValue::Age(one.last_release_age_ns.map(Duration::from_nanos)),
            CellValue::Count(one.lost),
            CellValue::Text(status.to_owned()),
        ],
        explain: vec!["--memory".to_owned()],
    }
}

fn client(frame: &TopFrame, one: &BoardClient) -> TableRow {
    let clients = &frame.before.clients;
    let before = clients
        .binary_search_by_key(&one.client, |client| client.client)
        .map(|place| clients[place].clone())
        .unwrap_or_default();
    TableRow {
        key: one.client.to_string(),
        cells: vec![
            CellValue::Text(one.name.clone()),
            CellValue::Count(one.pid.into()),
            CellValue::Rate(frame.per_second(before.offered, one.offered)),
            CellValue::Rate(frame.per_second(before.delivered, one.delivered)),
            CellValue::Count(one.held),
            CellValue::Bytes(one.leased_bytes),
            CellValue::Bytes(one.backlog_bytes),
            CellValue::Text(one.transport.clone()),
            CellValue::Text(one.host.clone()),
            CellValue::Text(one.note.clone()),
        ],
        explain: vec!["--client".to_owned(), one.name.clone()],
    }
}

fn datasets(frame: &TopFrame) -> Vec<TableRow> {
    let rows = frame.now.datasets.iter().enumerate().map(|(place, one)| {
        let before = frame.before.datasets.get(place).cloned().unwrap_or_default();
        TableRow {
            key: one.name.clone(),
            cells: vec![
                CellValue::Text(one.name.clone()),
                CellValue::Count(one.visible),
                CellValue::Bytes(one.visible_bytes),
                CellValue::Rate(frame.per_second(before.offered, one.offered)),
                CellValue::ByteRate(frame.per_second(before.offered_bytes, one.offered_bytes)),
            ],
            explain: vec!["--".to_owned(), one.name.clone()],
        }
    });
    rows.collect()
}

fn waits(frame: &TopFrame) -> Vec<TableRow> {
    let waiting = frame
        .now
        .clients
        .iter()
        .filter(|one| one.requests > 0 || one.offers_waiting > 0);
    let rows = waiting.map(|one| TableRow {
        key: one.client.to_string(),
        cells: vec![
            CellValue::Text(one.name.clone()),
            CellValue::Count(one.pid.into()),
            CellValue::Count(one.offers_waiting),
            CellValue::Count(one.requests),
            CellValue::Count(one.held),
            CellValue::Bytes(one.leased_bytes),
            CellValue::Bytes(one.backlog_bytes),
            CellValue::Text(one.note.clone()),
        ],
        explain: vec!["--client".to_owned(), one.name.clone()],
    });
    rows.collect()
}

impl TopTable {
    /// Leaves out rows without the text of the filter, and sorts: texts in ascending, numbers in descending order.
    pub(super) fn arrange(&mut self, order: &RowOrder) {
        self.rows.retain(|row| row.has(&order.filter));
        let column = self
            .columns
            .iter()
            .position(|column| Some(column.name) == order.column.as_deref());
        if let Some(column) = column {
            self.rows.sort_by(|a, b| a.cells[column].order(&b.cells[column]));
        }
    }
}

impl TableRow {
    fn has(&self, text: &str) -> bool {
        let mut texts = self.cells.iter().filter_map(|cell| match cell {
            CellValue::Text(text) => Some(text),
            _ => None,
        });
        text.is_empty() || texts.any(|cell| cell.contains(text))
    }

    /// The row as JSON, by the names of the columns.
    pub(super) fn json(&self, columns: &[TableColumn]) -> Value {
        let members = columns.iter().zip(&self.cells);
        let members = members.map(|(column, cell)| (column.name.to_owned(), cell.json()));
        Value::Object(members.collect::<Map<_, _>>())
    }
}

impl CellValue {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => other.size().total_cmp(&self.size()),
        }
    }

    fn size(&self) -> f64 {
        match self {
            Self::Text(_) => 0.0,
            Self::Count(count) | Self::Bytes(count) => *count as f64,
            Self::Rate(rate) | Self::ByteRate(rate) => *rate,
            Self::Age(age) => age.map_or(-1.0, |age| age.as_secs_f64()),
        }
    }

    /// The cell as people read it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => visible::printable(text),
            Self::Count(count) => count.to_string(),
            Self::Bytes(bytes) => size::bytes(*bytes),
            Self::Rate(rate) => format!("{rate:.0}"),
            Self::ByteRate(rate) => size::bytes(*rate as u64),
            Self::Age(age) => age.map_or("-".to_owned(), span),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(count) | Self::Bytes(count) => json!(count),
            Self::Rate(rate) | Self::ByteRate(rate) => json!(rate),
            Self::Age(age) => json!(age.map(|age| age.as_secs_f64())),
        }
    }
}
