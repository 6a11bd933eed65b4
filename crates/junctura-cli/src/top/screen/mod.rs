//! `junctura top` on a terminal: draws a frame each `--delay`, and reacts to keys.

mod draw;
mod explanation;
#[cfg(test)]
mod tests;
mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use junctura::{Code, Error, PoolBoard, Result};
use junctura_terminal::output::is_styled;
use junctura_terminal::program::ProgramWords;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::explanation::ExplanationPane;
pub(super) use self::view::TopView;
use self::view::ViewAction;
use super::frame::BoardLook;

/// How often an explanation that has not arrived is looked for.
const EXPLAINED_EVERY: Duration = Duration::from_millis(100);

/// The source of the numbers.
pub(super) struct TopSource {
    pub(super) board: PoolBoard,
    pub(super) url: String,
    pub(super) delay: Duration,
}

/// Shows the board until a key or a signal ends it. The terminal is then as it was before.
///
/// # Errors
/// `Io` if the terminal cannot be used.
pub(super) fn show(source: &TopSource, mut view: TopView, program: &ProgramWords) -> Result<()> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_over)).map_err(|error| failed(&error))?;
    }
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let outcome = react(&mut terminal, source, &mut view, program, &is_over);
    let restored = ratatui::try_restore();
    outcome?;
    restored.map_err(|error| failed(&error))
}

fn react(
    terminal: &mut DefaultTerminal,
    source: &TopSource,
    view: &mut TopView,
    program: &ProgramWords,
    is_over: &AtomicBool,
) -> Result<()> {
    let is_styled = is_styled(true);
    let mut look = BoardLook::new(&source.board);
    let mut frame = look.still(&source.board, &source.url);
    let mut due = Instant::now() + source.delay;
    view.update(&frame);
    while !is_over.load(Ordering::Relaxed) {
        let drawn = terminal.draw(|area| draw::draw(area, view, &frame, is_styled));
        drawn.map_err(|error| failed(&error))?;
        let mut timeout = due.saturating_duration_since(Instant::now());
        if view.explanation.as_ref().is_some_and(ExplanationPane::is_awaited) {
            timeout = timeout.min(EXPLAINED_EVERY);
        }
        match next_event(timeout)? {
            Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match view.handle(key) {
                ViewAction::Nothing => {}
                ViewAction::Quit => return Ok(()),
                ViewAction::Arrange => view.update(&frame),
                ViewAction::Explain(row) => {
                    view.explanation = Some(ExplanationPane::start(program, &source.url, &row));
                }
            },
            _ => {}
        }
        if let Some(explanation) = &mut view.explanation {
            explanation.receive();
        }
        if Instant::now() >= due {
            due = Instant::now() + source.delay;
            if !view.is_paused {
                frame = look.frame(&source.board, &source.url);
                look = BoardLook::new(&source.board);
                view.update(&frame);
            }
        }
    }
    Ok(())
}

/// Returns the next event of the terminal; `None` after the timeout, or at a signal.
fn next_event(timeout: Duration) -> Result<Option<Event>> {
    let event = event::poll(timeout).and_then(|is_there| is_there.then(event::read).transpose());
    match event {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        other => other.map_err(|error| failed(&error)),
    }
}

fn failed(error: &io::Error) -> Error {
    Error::new(Code::Io, "terminal", error.to_string())
}
