//! Draws a frame: summary, findings, names of the tables, one table, keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::view::TopView;
use crate::top::TopScreen;
use crate::top::findings::{AlarmLevel, TopFinding, findings};
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

/// Draws a frame on the whole terminal.
pub(super) fn draw(area: &mut Frame<'_>, view: &mut TopView, frame: &TopFrame, is_styled: bool) {
    let found = findings(frame);
    let shown = found.len().min(usize::from(area.area().height / 8));
    let parts = [
        Constraint::Length(3),
        Constraint::Length(shown as u16),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [summary, alarms, names, body, keys] = Layout::vertical(parts).areas(area.area());
    area.render_widget(summary_lines(frame, is_styled), summary);
    let alarm_lines: Vec<Line<'_>> = found[..shown].iter().map(|one| alarm(one, is_styled)).collect();
    area.render_widget(Paragraph::new(alarm_lines), alarms);
    area.render_widget(names_line(view.screen), names);
    if view.is_help {
        area.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), body);
    } else if let Some(pane) = &view.explanation {
        let head = Line::styled(pane.title.as_str(), Style::new().add_modifier(Modifier::BOLD));
        let lines = pane.lines.iter().skip(pane.first).map(|line| Line::from(line.as_str()));
        area.render_widget(
            Paragraph::new([head].into_iter().chain(lines).collect::<Vec<_>>()),
            body,
        );
    } else {
        view.scroll_to(usize::from(body.height.saturating_sub(1)));
        draw_table(area, view, body);
    }
    area.render_widget(keys_line(view), keys);
}

fn summary_lines(frame: &TopFrame, is_styled: bool) -> Paragraph<'static> {
    let [first, second, third] = frame.summary();
    let first = if frame.is_turning() {
        Line::styled(first, Style::new().add_modifier(Modifier::BOLD))
    } else {
        Line::styled(first, alarm_style(AlarmLevel::Fail, is_styled))
    };
    Paragraph::new(vec![first, Line::from(second), Line::from(third)])
}

fn alarm(finding: &TopFinding, is_styled: bool) -> Line<'static> {
    let style = alarm_style(finding.level, is_styled);
    Line::styled(format!("! {}", finding.text), style)
}

fn alarm_style(level: AlarmLevel, is_styled: bool) -> Style {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match level {
        _ if !is_styled => bold,
        AlarmLevel::Warn => Style::new().fg(Color::Yellow),
        AlarmLevel::Fail => bold.fg(Color::Red),
    }
}

fn names_line(screen: TopScreen) -> Line<'static> {
    let names = TopScreen::ALL.into_iter().enumerate().flat_map(|(place, one)| {
        let style = if one == screen {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        [
            Span::styled(format!("{} {}", place + 1, one.name()), style),
            Span::raw("  "),
        ]
    });
    Line::from(names.collect::<Vec<_>>())
}

fn keys_line(view: &TopView) -> Line<'static> {
    if let Some(typed) = &view.typed {
        return Line::from(format!("filter: {typed}_   Enter apply  Esc cancel"));
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
    Line::from(format!("{paused}{filter}{unlisted}{KEYS}"))
}

fn draw_table(area: &mut Frame<'_>, view: &TopView, body: Rect) {
    let columns = columns(view.screen);
    let height = usize::from(body.height.saturating_sub(1));
    let shown = view.rows.iter().enumerate().skip(view.first).take(height);
    let texts: Vec<(usize, Vec<String>)> = shown
        .map(|(place, shown)| (place, shown.row.cells.iter().map(CellValue::shown).collect()))
        .collect();
    let sorted = view.order.column.as_deref();
    let widths = widths(columns, sorted, &texts, usize::from(body.width));
    let heading = columns.iter().zip(&widths).map(|(column, _)| {
        let mark = if sorted == Some(column.name) { "*" } else { "" };
        aligned(column, format!("{mark}{}", column.heading))
    });
    let heading = Row::new(heading).style(Style::new().add_modifier(Modifier::BOLD));
    let rows = texts.into_iter().map(|(place, cells)| {
        let cells = columns.iter().zip(cells).take(widths.len());
        let row = Row::new(cells.map(|(column, text)| aligned(column, text)));
        if view.selected == Some(place) {
            row.style(Style::new().add_modifier(Modifier::REVERSED))
        } else if view.rows[place].is_gone {
            row.style(Style::new().add_modifier(Modifier::DIM))
        } else {
            row
        }
    });
    let constraints = widths.iter().map(|&width| Constraint::Length(width as u16));
    let table = Table::new(rows, constraints.collect::<Vec<_>>()).header(heading);
    area.render_widget(table.column_spacing(2), body);
}

fn aligned(column: &TableColumn, text: String) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if column.is_text { line } else { line.right_aligned() })
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
        let cells = texts.iter().map(|(_, cells)| Line::from(cells[place].as_str()).width());
        let width = cells.max().unwrap_or_default().max(least);
        let is_last = place + 1 == columns.len();
        let width = if column.is_text && !is_last {
            width.min(TEXT_MAX)
        } else {
            width
        };
        if width > left && !(column.is_text && left >= CUT_MIN) {
            break;
        }
        widths.push(width.min(left));
        left = left.saturating_sub(width + 2);
    }
    widths
}
