//! Draws a frame: summary, findings, names of the tables, one table, keys.

use super::terminal::{ScreenLine, TextStyle, cut, width};
use super::view::TopView;
use crate::top::TopScreen;
use crate::top::findings::{AlarmLevel, findings};
use crate::top::frame::TopFrame;
use crate::top::tables::{CellValue, TableColumn, columns};

/// Characters of a text in a table, except in its last column.
const TEXT_MAX: usize = 32;
/// The least useful width of a column that is cut.
const CUT_MIN: usize = 6;
const KEYS: &str = "j/k move  e explain  s sort  f filter  1-5 table  Space pause  ? help  q quit";
const HELP: [&str; 10] = [
    "j k Down Up    move the cursor; rows keep their places while one is selected",
    "Esc            end the selection: rows are sorted again",
    "e Enter        explain the row, by a request to the server",
    "s S            sort by the next or the previous column",
    "f /            show only rows with a text",
    "1 to 5, Tab    components, requirements, clients, datasets, waits",
    "Space          pause",
    "q Ctrl-C       quit",
    "",
    "any key closes this",
];

/// Lines of the screen besides findings and the table: summary, names of the tables, keys.
const OTHER_LINES: usize = 5;

/// Returns the lines of a whole screen of so many columns and rows.
pub(super) fn draw(
    view: &mut TopView,
    frame: &TopFrame,
    (columns, rows): (usize, usize),
    is_styled: bool,
) -> Vec<ScreenLine> {
    let found = findings(frame);
    let found = &found[..found.len().min(rows / 8)];
    let alarms = found
        .iter()
        .map(|one| ScreenLine::new(alarm_style(one.level, is_styled), &format!("! {}", one.text)));
    let height = rows.saturating_sub(OTHER_LINES + found.len());
    let mut lines: Vec<ScreenLine> = summary(frame, is_styled).into_iter().chain(alarms).collect();
    lines.push(names_line(view.screen));
    let keys_at = lines.len() + height;
    if view.is_help {
        lines.extend(HELP.map(ScreenLine::plain));
    } else if let Some(pane) = &view.explanation {
        lines.push(ScreenLine::new(TextStyle::Bold, &pane.title));
        lines.extend(
            pane.lines
                .iter()
                .skip(pane.first)
                .take(height)
                .map(|line| ScreenLine::plain(line)),
        );
    } else {
        let shown = height.saturating_sub(1);
        view.scroll_to(shown);
        lines.extend(table_lines(view, columns, shown));
    }
    lines.resize(keys_at, ScreenLine::default());
    lines.push(ScreenLine::plain(&keys_text(view)));
    lines.truncate(rows);
    for line in &mut lines {
        line.cut(columns);
    }
    lines
}

fn summary(frame: &TopFrame, is_styled: bool) -> [ScreenLine; 3] {
    let [first, second, third] = frame.summary();
    let style = if frame.is_turning() {
        TextStyle::Bold
    } else {
        alarm_style(AlarmLevel::Fail, is_styled)
    };
    [
        ScreenLine::new(style, &first),
        ScreenLine::plain(&second),
        ScreenLine::plain(&third),
    ]
}

fn alarm_style(level: AlarmLevel, is_styled: bool) -> TextStyle {
    match level {
        _ if !is_styled => TextStyle::Bold,
        AlarmLevel::Warn => TextStyle::Yellow,
        AlarmLevel::Fail => TextStyle::BoldRed,
    }
}

fn names_line(screen: TopScreen) -> ScreenLine {
    let names = TopScreen::ALL.into_iter().enumerate().flat_map(|(place, one)| {
        let style = if one == screen {
            TextStyle::Reversed
        } else {
            TextStyle::Plain
        };
        [
            (style, format!("{} {}", place + 1, one.name())),
            (TextStyle::Plain, "  ".to_owned()),
        ]
    });
    ScreenLine(names.collect())
}

fn keys_text(view: &TopView) -> String {
    if let Some(typed) = &view.typed {
        return format!("filter: {typed}_   Enter apply  Esc cancel");
    }
    let paused = if view.is_paused { "PAUSED  " } else { "" };
    let filter = match view.order.filter.as_str() {
        "" => String::new(),
        text => format!("filter {text:?}  "),
    };
    let unlisted = match view.unlisted {
        0 => String::new(),
        more => format!("{more} rows are not listed  "),
    };
    format!("{paused}{filter}{unlisted}{KEYS}")
}

/// Returns the heading, and so many rows from the first that is shown.
fn table_lines(view: &TopView, columns_left: usize, height: usize) -> Vec<ScreenLine> {
    let columns = columns(view.screen);
    let shown = view.rows.iter().enumerate().skip(view.first).take(height);
    let texts: Vec<(usize, Vec<String>)> = shown
        .map(|(place, shown)| (place, shown.row.cells.iter().map(CellValue::shown).collect()))
        .collect();
    let sorted = view.order.column.as_deref();
    let widths = widths(columns, sorted, &texts, columns_left);
    let heading = columns.iter().map(|column| {
        let mark = if sorted == Some(column.name) { "*" } else { "" };
        format!("{mark}{}", column.heading)
    });
    let heading = row_text(columns, &widths, heading);
    let rows = texts.into_iter().map(|(place, cells)| {
        let style = if view.selected == Some(place) {
            TextStyle::Reversed
        } else if view.rows[place].is_gone {
            TextStyle::Dim
        } else {
            TextStyle::Plain
        };
        ScreenLine::new(style, &row_text(columns, &widths, cells))
    });
    std::iter::once(ScreenLine::new(TextStyle::Bold, &heading))
        .chain(rows)
        .collect()
}

/// Returns the cells in their columns: texts to the left, numbers to the right.
fn row_text(columns: &[TableColumn], widths: &[usize], cells: impl IntoIterator<Item = String>) -> String {
    let cells = columns.iter().zip(widths).zip(cells).map(|((column, &wide), cell)| {
        let cell = cut(&cell, wide);
        let space = " ".repeat(wide - width(cell));
        if column.is_text {
            format!("{cell}{space}")
        } else {
            format!("{space}{cell}")
        }
    });
    cells.collect::<Vec<_>>().join("  ")
}

/// Returns the widths of the columns that fit, from the left; the last one may be cut.
fn widths(
    columns: &[TableColumn],
    sorted: Option<&str>,
    texts: &[(usize, Vec<String>)],
    mut left: usize,
) -> Vec<usize> {
    let mut widths = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        // The mark of the order is beside the heading.
        let least = column.heading.len() + usize::from(sorted == Some(column.name));
        let cells = texts.iter().map(|(_, cells)| width(&cells[place]));
        let wide = cells.max().unwrap_or_default().max(least);
        let is_last = place + 1 == columns.len();
        let wide = if column.is_text && !is_last {
            wide.min(TEXT_MAX)
        } else {
            wide
        };
        if wide > left && !(column.is_text && left >= CUT_MIN) {
            break;
        }
        widths.push(wide.min(left));
        left = left.saturating_sub(wide + 2);
    }
    widths
}
