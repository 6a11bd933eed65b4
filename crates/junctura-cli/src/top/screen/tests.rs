//! Screens of fixed boards, as a terminal shows them.

use std::time::Duration;

use junctura_board::reader::board_words;
use junctura_board::{
    BoardClient, BoardComponent, BoardCounter, BoardIdentity, BoardReader, BoardRequirement, BoardSnapshot, BoardState,
    BoardWriter,
};

use super::draw::draw;
use super::keys::TerminalKey;
use super::view::{TopView, ViewAction};
use crate::top::frame::TopFrame;
use crate::top::{RowOrder, TopScreen};

const MIB: u64 = 1 << 20;

/// A board with clients of these names, each with the number of its offers.
fn board(clients: &[(&str, u64)], state: BoardState) -> BoardSnapshot {
    let identity = BoardIdentity {
        incarnation: 1,
        pid: 4711,
        started_ns: 1_000_000_000,
        ..BoardIdentity::default()
    };
    let mut writer = BoardWriter::new(board_words(), &identity);
    writer.state(state);
    writer.turned(7, 61_000_000_000);
    writer.publish(|edit| {
        let offered: u64 = clients.iter().map(|(_, offered)| offered).sum();
        for (counter, value) in [
            (BoardCounter::Visible, offered),
            (BoardCounter::Offered, offered),
            (BoardCounter::UsedBytes, 240 * MIB),
            (BoardCounter::BudgetBytes, 256 * MIB),
            (BoardCounter::OffersWaiting, 2),
            (BoardCounter::BusyNs, offered * 1000),
        ] {
            edit.counter(counter, value);
        }
        for (number, &(name, offered)) in (1..).zip(clients) {
            edit.client(&BoardClient {
                client: number,
                pid: 100 + number,
                offered,
                requests: 1,
                name,
                note: if name == "model-1" { "step=36, of=240" } else { "" },
                host: "node7",
                transport: "shared",
                ..BoardClient::default()
            });
        }
        edit.component(
            0,
            &BoardComponent {
                name: "model-*",
                clients: clients.len() as u64,
                offered,
                ..BoardComponent::default()
            },
        );
        edit.requirement(&BoardRequirement {
            name: "drawers",
            owed: 12,
            owed_bytes: 212 * MIB,
            members: 1,
            oldest_owed_age_ns: Some(41_000_000_000),
            ..BoardRequirement::default()
        });
        edit.tables(0, 1);
    });
    BoardReader::of(writer.words().clone()).unwrap().snapshot()
}

fn frame_between(before: &[(&str, u64)], now: &[(&str, u64)]) -> TopFrame {
    let state = BoardState::Serving;
    let numbers = (&board(before, state), board(now, state));
    TopFrame::new("unix:model", numbers, Duration::from_secs(1), Duration::ZERO)
}

fn frame(clients: &[(&str, u64)]) -> TopFrame {
    frame_between(clients, clients)
}

fn view(screen: TopScreen) -> TopView {
    TopView::new(screen, RowOrder::default())
}

/// The lines of a screen, without spaces at their ends.
fn lines(view: &mut TopView, frame: &TopFrame, width: usize, height: usize) -> Vec<String> {
    let lines = draw(view, frame, (width, height), false);
    let texts = lines
        .into_iter()
        .map(|line| line.0.into_iter().map(|(_, text)| text).collect::<String>());
    texts.map(|line| line.trim_end().to_owned()).collect()
}

fn press(view: &mut TopView, key: TerminalKey) -> ViewAction {
    view.handle(key)
}

fn press_all(view: &mut TopView, frame: &TopFrame, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\n' {
            TerminalKey::Enter
        } else {
            TerminalKey::Char(key)
        };
        if press(view, code) == ViewAction::Arrange {
            view.update(frame);
        }
    }
}

fn names(view: &TopView) -> Vec<String> {
    view.rows.iter().map(|shown| shown.row.cells[0].shown()).collect()
}

#[test]
fn a_screen_has_rates_memory_and_findings() {
    let frame = frame_between(&[("model-1", 100), ("model-2", 0)], &[("model-1", 512), ("model-2", 3)]);
    let mut view = view(TopScreen::Components);
    view.update(&frame);
    let expected = [
        "junctura top - unix:model   serving   up 60 s   cpu 0 %   pid 4711",
        "objects 515 visible 0 B, held 0, tombstones 0   memory [##################  ] 93",
        "offered 415/s 0 B/s   delivered 0/s 0 B/s   waiting 2 offers, 0 leases, 0 withdr",
        "! 2 offers and leases wait for memory; junctura explain --memory states what kee",
        "! payload memory is filled to 93 % of 256.0 MiB",
        "! requirement drawers is owed 12 objects, 212.0 MiB, and releases nothing for 41",
        "1 components  2 requirements  3 clients  4 datasets  5 waits",
        "NAME     N  OFF/S  OFF B/S  DEL/S  DEL B/S  HELD  WAITS  BACKLOG  NOTE",
        "model-*  2    415      0 B      0      0 B     0      0      0 B  step=36, of=24",
    ];
    let shown = lines(&mut view, &frame, 80, 24);
    assert_eq!(shown[..expected.len()], expected);
    assert!(shown[23].starts_with("j/k move  e explain"), "{shown:#?}");
}

#[test]
fn every_table_fits_every_terminal() {
    let frame = frame(&[("model-1", 5), ("model-2", 7)]);
    for screen in TopScreen::ALL {
        for (width, height) in [(80, 24), (132, 43), (40, 12), (8, 3), (1, 1)] {
            let mut view = view(screen);
            view.update(&frame);
            let shown = lines(&mut view, &frame, width, height);
            assert_eq!(shown.len(), height);
            if width >= 80 {
                assert!(
                    shown.iter().any(|line| line.starts_with("NAME")),
                    "{screen:?}: {shown:#?}"
                );
            }
        }
    }
    let mut view = view(TopScreen::Clients);
    view.update(&frame);
    let wide = lines(&mut view, &frame, 132, 43);
    assert!(
        wide.iter().any(|line| line.ends_with("shared  node7  step=36, of=240")),
        "{wide:#?}"
    );
}

#[test]
fn a_server_that_hangs_is_named() {
    let numbers = board(&[("model-1", 1)], BoardState::Serving);
    let age = Duration::from_millis(2100);
    let frame = TopFrame::new("unix:model", (&numbers, numbers.clone()), Duration::from_secs(1), age);
    let mut view = view(TopScreen::Components);
    view.update(&frame);
    let shown = lines(&mut view, &frame, 100, 24);
    assert!(shown[0].contains("not turning for 2.1 s"), "{shown:#?}");
    assert!(
        shown[3].starts_with("! the server has not turned for 2.1 s"),
        "{shown:#?}"
    );
    let numbers = board(&[], BoardState::Ended);
    let frame = TopFrame::new("unix:model", (&numbers, numbers.clone()), Duration::from_secs(1), age);
    assert!(lines(&mut view, &frame, 100, 24)[0].contains("   ended   "));
}

#[test]
fn rows_keep_their_places_while_one_is_selected() {
    let first = frame(&[("b", 1), ("a", 2), ("c", 3)]);
    let mut view = view(TopScreen::Clients);
    view.update(&first);
    press_all(&mut view, &first, "s");
    assert_eq!(names(&view), ["a", "b", "c"]);
    press_all(&mut view, &first, "jj");
    assert_eq!(view.selected, Some(1));
    // The first client is gone, and two are new; numbers of clients are their keys.
    let mut second = frame(&[("x", 1), ("a", 2), ("c", 3), ("0", 4)]);
    second.now.clients[0].client = 9;
    view.update(&second);
    assert_eq!(names(&view), ["a", "b", "c", "0", "x"]);
    assert!(view.rows[1].is_gone && !view.rows[0].is_gone);
    assert_eq!(press(&mut view, TerminalKey::Esc), ViewAction::Arrange);
    view.update(&second);
    assert_eq!(names(&view), ["0", "a", "c", "x"]);
}

#[test]
fn a_filter_is_typed_and_applied() {
    let frame = frame(&[("model-1", 1), ("plots", 2)]);
    let mut view = view(TopScreen::Clients);
    view.update(&frame);
    press_all(&mut view, &frame, "fplo");
    assert!(lines(&mut view, &frame, 80, 24)[23].starts_with("filter: plo_"));
    press_all(&mut view, &frame, "\n");
    assert_eq!(names(&view), ["plots"]);
    press_all(&mut view, &frame, "5");
    assert_eq!(names(&view), ["model-1", "plots"]);
}

#[test]
fn a_row_is_explained_by_its_kind() {
    let frame = frame(&[("model-1", 1)]);
    for (screen, expected) in [
        (TopScreen::Components, "--client model-*"),
        (TopScreen::Requirements, "--memory"),
        (TopScreen::Clients, "--client model-1"),
        (TopScreen::Waits, "--client model-1"),
    ] {
        let mut view = view(screen);
        view.update(&frame);
        let ViewAction::Explain(row) = press(&mut view, TerminalKey::Char('e')) else {
            panic!("{screen:?}: no explanation");
        };
        assert_eq!(row.explain.join(" "), expected);
    }
    let mut empty = view(TopScreen::Datasets);
    empty.update(&frame);
    assert_eq!(press(&mut empty, TerminalKey::Char('e')), ViewAction::Nothing);
}

#[test]
fn many_rows_scroll_with_the_cursor() {
    let names: Vec<String> = (0..100).map(|number| format!("client {number:03}")).collect();
    let clients: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let frame = frame(&clients);
    let mut view = view(TopScreen::Clients);
    view.update(&frame);
    press(&mut view, TerminalKey::End);
    press(&mut view, TerminalKey::End);
    let shown = lines(&mut view, &frame, 80, 24);
    assert!(shown[22].starts_with("client 099"), "{shown:#?}");
    press(&mut view, TerminalKey::Home);
    assert!(
        lines(&mut view, &frame, 80, 24)
            .iter()
            .any(|line| line.starts_with("client 000"))
    );
}

#[test]
fn keys_end_it() {
    let mut view = view(TopScreen::Components);
    assert_eq!(press(&mut view, TerminalKey::Char('q')), ViewAction::Quit);
    view.typed = Some(String::new());
    assert_eq!(press(&mut view, TerminalKey::Interrupt), ViewAction::Quit);
    press(&mut view, TerminalKey::Esc);
    press(&mut view, TerminalKey::Char('?'));
    assert_eq!(press(&mut view, TerminalKey::Char('q')), ViewAction::Nothing);
    assert!(!view.is_help);
}
