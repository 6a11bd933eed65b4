//! One frame as text and as JSON.

use junctura::BoardCounter as Counter;
use junctura::Result;
use junctura_terminal::output::{StandardOutput, WordStyle};
use serde_json::{Map, Value, json};

use super::findings::{AlarmLevel, findings};
use super::frame::TopFrame;
use super::tables::{TopTable, table};
use super::{RowOrder, TopScreen};

/// Rows of a table that the text shows.
const SHOWN_MAX: usize = 20;

/// Returns a frame as a document of JSON, with one table or all.
pub(super) fn document(frame: &TopFrame, screen: Option<TopScreen>, order: &RowOrder) -> Value {
    let head = &frame.now.head;
    let findings: Vec<Value> = findings(frame)
        .iter()
        .map(|one| json!({"level": one.level.name(), "code": one.code, "text": one.text}))
        .collect();
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("url", json!(frame.url));
    add("incarnation", json!(head.incarnation));
    add("pid", json!(head.pid));
    add("state", json!(head.state.name()));
    add("is_turning", json!(frame.is_turning()));
    add("is_consistent", json!(frame.now.is_consistent));
    add("turn_age_s", json!(frame.turn_age.as_secs_f64()));
    add("up_s", json!(frame.up.as_secs_f64()));
    add("interval_s", json!(frame.interval.as_secs_f64()));
    add("cpu_percent", json!(frame.cpu_percent()));
    add("offered_per_s", json!(frame.rate(Counter::Offered)));
    add("offered_bytes_per_s", json!(frame.rate(Counter::OfferedBytes)));
    add("delivered_per_s", json!(frame.rate(Counter::Delivered)));
    add("delivered_bytes_per_s", json!(frame.rate(Counter::DeliveredBytes)));
    for counter in [
        Counter::Visible,
        Counter::VisibleBytes,
        Counter::Held,
        Counter::Tombstones,
        Counter::UsedBytes,
        Counter::BudgetBytes,
        Counter::SpillUsedBytes,
        Counter::OffersWaiting,
        Counter::LeasesWaiting,
        Counter::Withdrawals,
        Counter::Owed,
    ] {
        add(counter.name(), json!(frame.counter(counter)));
    }
    add("findings", json!(findings));
    for screen in shown(screen) {
        let table = arranged(frame, screen, order);
        let rows: Vec<Value> = table.rows.iter().map(|row| row.json(table.columns)).collect();
        add(screen.name(), json!(rows));
    }
    add("clients_unlisted", json!(frame.now.clients_unlisted));
    add("requirements_unlisted", json!(frame.now.requirements_unlisted));
    Value::Object(members)
}

/// Writes a frame as text.
pub(super) fn write(
    frame: &TopFrame,
    screen: Option<TopScreen>,
    order: &RowOrder,
    out: &mut StandardOutput,
) -> Result<()> {
    for line in frame.summary() {
        writeln!(out, "{line}")?;
    }
    for finding in findings(frame) {
        let style = match finding.level {
            AlarmLevel::Warn => WordStyle::Doubtful,
            AlarmLevel::Fail => WordStyle::Bad,
        };
        let mark = out.styled(style, "!");
        writeln!(out, "{mark} {}", finding.text)?;
    }
    for one in shown(screen) {
        let table = arranged(frame, one, order);
        if !table.rows.is_empty() || screen.is_some() {
            writeln!(out)?;
            write_table(&table, out)?;
        }
    }
    Ok(())
}

fn shown(screen: Option<TopScreen>) -> Vec<TopScreen> {
    screen.map_or_else(|| TopScreen::ALL.to_vec(), |screen| vec![screen])
}

fn arranged(frame: &TopFrame, screen: TopScreen, order: &RowOrder) -> TopTable {
    let mut table = table(frame, screen);
    table.arrange(order);
    table
}

fn write_table(table: &TopTable, out: &mut StandardOutput) -> Result<()> {
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .take(SHOWN_MAX)
        .map(|row| row.cells.iter().map(super::tables::CellValue::shown).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([table.columns[column].heading.len()])
            .max()
            .unwrap_or_default()
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.enumerate().map(|(column, text)| {
            let width = width(column);
            if table.columns[column].is_text {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    out.heading(&line(&mut table.columns.iter().map(|column| column.heading)))?;
    for row in &rows {
        writeln!(out, "{}", line(&mut row.iter().map(String::as_str)))?;
    }
    let more = (table.rows.len() - rows.len()) as u64 + table.unlisted;
    if more > 0 {
        writeln!(out, "and {more} more")?;
    }
    Ok(())
}
