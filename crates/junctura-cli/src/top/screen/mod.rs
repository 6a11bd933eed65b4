//! `junctura top` on a terminal: draws a frame each `--delay`, and reacts to keys.

mod draw;
mod explanation;
mod keys;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use junctura::{Code, Error, PoolBoard, Result};
use junctura_terminal::output::is_styled;
use junctura_terminal::program::ProgramWords;
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::explanation::ExplanationPane;
use self::terminal::RawTerminal;
pub(super) use self::view::TopView;
use self::view::ViewAction;
use super::board_of;
use super::frame::BoardLook;
use crate::url::PoolArguments;

/// How often an explanation that has not arrived is looked for.
const EXPLAINED_EVERY: Duration = Duration::from_millis(100);

/// The source of the numbers.
pub(super) struct TopSource {
    /// The board of the server that was there at first.
    pub(super) board: PoolBoard,
    pub(super) pool: PoolArguments,
    pub(super) delay: Duration,
}

/// A search for the board of a server that has taken the place of another one. It runs beside the screen, since a server that hangs
/// answers late.
#[derive(Default)]
struct BoardSearch(Option<Receiver<PoolBoard>>);

impl BoardSearch {
    /// Returns the board of another server than that of `board`, once it is found; starts a search if none runs.
    fn next(&mut self, board: &PoolBoard, pool: &PoolArguments) -> Option<PoolBoard> {
        let Some(search) = &self.0 else {
            let (send, search) = mpsc::channel();
            let pool = pool.clone();
            let look = move || drop(board_of(&pool).map(|board| send.send(board)));
            // Without a thread the next frame tries again.
            self.0 = std::thread::Builder::new().spawn(look).ok().map(|_| search);
            return None;
        };
        let found = search.try_recv();
        match found {
            Err(TryRecvError::Empty) => return None,
            Ok(_) | Err(TryRecvError::Disconnected) => self.0 = None,
        }
        let is_other = |other: &PoolBoard| other.head().incarnation != board.head().incarnation;
        found.ok().filter(is_other)
    }
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
    let mut terminal = RawTerminal::open().map_err(|error| failed(&error))?;
    react(&mut terminal, source, &mut view, program, &is_over)
}

fn react(
    terminal: &mut RawTerminal,
    source: &TopSource,
    view: &mut TopView,
    program: &ProgramWords,
    is_over: &AtomicBool,
) -> Result<()> {
    let is_styled = is_styled(true);
    let (mut board, mut search) = (source.board.clone(), BoardSearch::default());
    let url = source.pool.pool.as_str();
    let mut look = BoardLook::new(&board);
    let mut frame = look.still(&board, url);
    let mut due = Instant::now() + source.delay;
    view.update(&frame);
    while !is_over.load(Ordering::Relaxed) {
        let size = terminal.size().map_err(|error| failed(&error))?;
        let lines = draw::draw(view, &frame, size, is_styled);
        terminal.show(&lines).map_err(|error| failed(&error))?;
        let mut timeout = due.saturating_duration_since(Instant::now());
        if view.explanation.as_ref().is_some_and(ExplanationPane::is_awaited) {
            timeout = timeout.min(EXPLAINED_EVERY);
        }
        let key = terminal.key(timeout).map_err(|error| failed(&error))?;
        match key.map_or(ViewAction::Nothing, |key| view.handle(key)) {
            ViewAction::Nothing => {}
            ViewAction::Quit => return Ok(()),
            ViewAction::Arrange => view.update(&frame),
            ViewAction::Explain(row) => {
                view.explanation = Some(ExplanationPane::start(program, url, &row));
            }
        }
        if let Some(explanation) = &mut view.explanation {
            explanation.receive();
        }
        if Instant::now() >= due {
            due = Instant::now() + source.delay;
            if !view.is_paused {
                frame = look.frame(&board, url);
                let other = if frame.is_turning() {
                    None
                } else {
                    search.next(&board, &source.pool)
                };
                board = other.unwrap_or(board);
                look = BoardLook::new(&board);
                view.update(&frame);
            }
        }
    }
    Ok(())
}

fn failed(error: &io::Error) -> Error {
    Error::new(Code::Io, "terminal", error.to_string())
}
