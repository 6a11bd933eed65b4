//! Two layouts as a picture: the elements of each rank in both, and how much each rank shares with each other one. SVG,
//! without external resources.

use std::fmt::Write;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};

use crate::{Distribution, Layout, Plan, PlanSide, Slab};

/// The length of the longer dimension of an array in the picture.
const SIDE: f64 = 360.0;
const MARGIN: f64 = 40.0;
/// The maximum number of pieces that are drawn.
const PIECES_MAX: usize = 20_000;
/// The maximum number of ranks that are drawn.
const RANKS_MAX: u64 = 256;

/// Draws an array of one or two dimensions in `from`, in `to`, and the elements that their ranks share.
///
/// # Errors
/// `Unsupported` for more dimensions, very many ranks or very many pieces; as [`Plan::new`].
pub fn draw(from: &Arc<Layout>, to: &Arc<Layout>) -> Result<String> {
    let too_much = |what: &str| {
        Err(Error::new(
            Code::Unsupported,
            "draw",
            format!("{what} cannot be drawn legibly"),
        ))
    };
    if from.shape().len() > 2 {
        return too_much("more than two dimensions");
    }
    if from.ranks().max(to.ranks()) > RANKS_MAX {
        return too_much("so many ranks");
    }
    let pieces = [pieces(from), pieces(to)];
    if pieces.iter().any(|pieces| pieces.len() > PIECES_MAX) {
        return too_much("so many blocks");
    }
    let longest = from.shape().iter().copied().max().unwrap_or(1).max(1) as f64;
    let scale = SIDE / longest;
    let (width, height) = (3.0 * SIDE + 4.0 * MARGIN, SIDE + 2.5 * MARGIN);
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' font-size='12'>\n\
         <rect width='{width}' height='{height}' fill='white'/>\n"
    );
    for (at, (title, layout, pieces)) in [("from", from, &pieces[0]), ("to", to, &pieces[1])]
        .into_iter()
        .enumerate()
    {
        let left = MARGIN + at as f64 * (SIDE + MARGIN);
        panel(&mut svg, left, &format!("{title}: {}", ranks(layout)));
        for (slab, rank) in pieces {
            piece(&mut svg, left, scale, slab, *rank);
        }
    }
    shares(&mut svg, from, to)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn ranks(layout: &Layout) -> String {
    let ranks = layout.ranks();
    let plural = if ranks == 1 { "" } else { "s" };
    format!("{ranks} rank{plural}, order {}", layout.order())
}

/// Text is written to a string, which never fails.
macro_rules! put {
    ($svg:expr, $($text:tt)*) => {{
        let _ = writeln!($svg, $($text)*);
    }};
}

fn panel(svg: &mut String, left: f64, title: &str) {
    put!(svg, "<text x='{left}' y='{}'>{title}</text>", MARGIN * 0.7);
}

/// Neighbouring ranks differ by the golden angle.
fn colour(rank: u64) -> String {
    let hue = (rank as f64 * 137.508) % 360.0;
    format!("hsl({hue:.0} 55% 68%)")
}

fn piece(svg: &mut String, left: f64, scale: f64, slab: &Slab, rank: u64) {
    let bounds = |dimension: usize| {
        let start = slab.start.get(dimension).copied().unwrap_or(0) as f64;
        let stop = slab.stop.get(dimension).map_or(1.0, |&stop| stop as f64);
        (start * scale, (stop - start) * scale)
    };
    // Rows are vertical, columns horizontal; a single dimension is a row.
    let ((y, height), (x, width)) = match slab.start.len() {
        1 => ((0.0, SIDE / 8.0), bounds(0)),
        _ => (bounds(0), bounds(1)),
    };
    put!(
        svg,
        "<rect x='{:.2}' y='{:.2}' width='{width:.2}' height='{height:.2}' fill='{}' stroke='white' stroke-width='0.5'>\
         <title>rank {rank}: {slab}</title></rect>",
        left + x,
        MARGIN + y,
        colour(rank)
    );
    if width > 14.0 && height > 12.0 {
        let (x, y) = (left + x + width / 2.0, MARGIN + y + height / 2.0 + 4.0);
        put!(
            svg,
            "<text x='{x:.1}' y='{y:.1}' text-anchor='middle' fill='#333'>{rank}</text>"
        );
    }
}

/// Draws shares: rows are sending ranks, columns receiving ranks; darker cells share more.
fn shares(svg: &mut String, from: &Arc<Layout>, to: &Arc<Layout>) -> Result<()> {
    let left = MARGIN + 2.0 * (SIDE + MARGIN);
    panel(
        svg,
        left,
        "elements that a rank of from (down) gives a rank of to (across)",
    );
    let cell = (SIDE / from.ranks().max(to.ranks()) as f64).min(SIDE / 6.0);
    let mut all = Vec::new();
    for rank in 0..from.ranks() {
        let plan = Plan::whole(from, to, PlanSide::From, rank)?;
        all.extend(
            plan.partners()
                .into_iter()
                .map(|partner| (rank, partner.rank, partner.elements)),
        );
    }
    let most = all.iter().map(|(.., elements)| *elements).max().unwrap_or(1).max(1) as f64;
    let (width, height) = (to.ranks() as f64 * cell, from.ranks() as f64 * cell);
    put!(
        svg,
        "<rect x='{left}' y='{MARGIN}' width='{width:.2}' height='{height:.2}' fill='none' stroke='#999'/>"
    );
    for (row, column, elements) in all {
        let (x, y) = (left + column as f64 * cell, MARGIN + row as f64 * cell);
        let opacity = 0.15 + 0.85 * elements as f64 / most;
        put!(
            svg,
            "<rect x='{x:.2}' y='{y:.2}' width='{cell:.2}' height='{cell:.2}' fill='#1f4e79' fill-opacity='{opacity:.2}'>\
             <title>{row} gives {column} {elements}</title></rect>"
        );
    }
    Ok(())
}

/// Returns the boxes of the array, with their ranks.
fn pieces(layout: &Layout) -> Vec<(Slab, u64)> {
    match layout.distribution() {
        Distribution::Slabs(slabs) => {
            let numbered = (0..).zip(slabs.ranks());
            let boxes = numbered.flat_map(|(rank, slabs)| slabs.iter().map(move |slab| (slab.clone(), rank)));
            boxes.take(PIECES_MAX + 1).collect()
        }
        Distribution::Grid { axes, .. } => {
            let mut all = vec![(Slab::whole(&[]), Vec::new())];
            for (axis, &extent) in axes.iter().zip(layout.shape()) {
                let stretches = axis
                    .walk(0, layout.is_packed())
                    .take_while(|stretch| stretch.start < extent);
                let stretches: Vec<_> = stretches.take(PIECES_MAX + 1).collect();
                let longer = all.iter().flat_map(|(slab, coordinates): &(Slab, Vec<u64>)| {
                    stretches.iter().map(move |stretch| {
                        let mut slab = slab.clone();
                        slab.start.push(stretch.start);
                        slab.stop.push(stretch.stop.min(extent));
                        (slab, [&coordinates[..], &[stretch.owner]].concat())
                    })
                });
                all = longer.take(PIECES_MAX + 1).collect();
            }
            let owned = all
                .into_iter()
                .filter_map(|(slab, coordinates)| Some((slab, layout.rank_at(&coordinates)?)));
            owned.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Arc<Layout> {
        Arc::new(text.parse().unwrap())
    }

    #[test]
    fn a_picture_has_all_pieces_and_all_shares() {
        let from = layout("shape=8x6 grid=2x2 block=4x3");
        let to = layout("shape=8x6 slabs=0:3x0:6;3:8x0:6");
        let svg = draw(&from, &to).unwrap();
        assert_eq!(svg.matches("<title>rank ").count(), 4 + 2);
        assert_eq!(svg.matches(" gives ").count() - 1, 6, "{svg}");
        assert!(svg.contains("<title>2 gives 1 12</title>") && svg.ends_with("</svg>\n"));
        assert!(draw(&layout("shape=9 grid=2"), &layout("shape=9")).is_ok());
        assert!(draw(&layout("shape=0 grid=2"), &layout("shape=0")).is_ok());
    }

    #[test]
    fn what_nobody_could_see_is_not_drawn() {
        for text in ["shape=2x2x2", "shape=1000 grid=300", "shape=1000000 grid=2 block=1"] {
            assert_eq!(
                draw(&layout(text), &layout(text)).unwrap_err().code(),
                Code::Unsupported
            );
        }
    }
}
