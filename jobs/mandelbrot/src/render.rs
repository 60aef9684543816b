//! Rendering: a rectangle of the picture in, its RGB bytes out.
//!
//! Invariant: a pixel depends on its own place in the picture alone, never on the tile that it is
//! rendered in. So tiles rendered by different workers fit together without a seam. Interior points
//! run to the last iteration on purpose (no test for the main bodies, no periodicity check): that
//! makes tiles uneven, as real work is.

use crate::palette::{self, Light};
use crate::picture::{Picture, Tile};

/// Centre and width of the view in the complex plane: a small copy of the set, deep in the seahorse
/// valley, among double spirals. Double precision has some 10⁴ steps a pixel left here.
const CENTRE: (f64, f64) = (-0.743_643_135, 0.131_825_963);
const VIEW_WIDTH: f64 = 1.46e-5;

/// A point has escaped when |z|² exceeds this; a large value makes the fractional count smooth.
const ESCAPE: f64 = 1e6;

/// Samples along each side of a pixel that needs more than one.
const GRID: u32 = 3;

/// Neighbours whose bytes differ by more than this have an edge between them.
const CONTRAST: u8 = 10;

/// Renders `tile` of `picture` with at most `iterations` for a point: rows from the top, three
/// bytes a pixel.
pub(crate) fn render(picture: Picture, tile: Tile, iterations: u32) -> Vec<u8> {
    let view = View { picture, iterations };
    // One sample a pixel first, with a rim of one pixel that shows edges at the tile's border.
    let columns = tile.width as usize + 2;
    let mut first = Vec::with_capacity(columns * (tile.height as usize + 2));
    for row in 0..tile.height + 2 {
        for column in 0..tile.width + 2 {
            let x = f64::from(tile.x + column) - 0.5;
            let y = f64::from(tile.y + row) - 0.5;
            first.push(view.sample(x, y).map(palette::byte));
        }
    }
    let mut bytes = Vec::with_capacity(3 * tile.width as usize * tile.height as usize);
    for row in 0..tile.height {
        for column in 0..tile.width {
            let at = (row as usize + 1) * columns + column as usize + 1;
            let around = [at - columns, at - 1, at + 1, at + columns];
            let pixel = if around.iter().any(|&other| differ(first[at], first[other])) {
                view.pixel(tile.x + column, tile.y + row).map(palette::byte)
            } else {
                first[at]
            };
            bytes.extend_from_slice(&pixel);
        }
    }
    bytes
}

fn differ(a: [u8; 3], b: [u8; 3]) -> bool {
    (0..3).any(|c| a[c].abs_diff(b[c]) > CONTRAST)
}

struct View {
    picture: Picture,
    iterations: u32,
}

impl View {
    /// The mean of a grid of samples within the pixel.
    fn pixel(&self, x: u32, y: u32) -> Light {
        let mut sum = [0.0; 3];
        for sub_y in 0..GRID {
            for sub_x in 0..GRID {
                let dx = (f64::from(sub_x) + 0.5) / f64::from(GRID);
                let dy = (f64::from(sub_y) + 0.5) / f64::from(GRID);
                let light = self.sample(f64::from(x) + dx, f64::from(y) + dy);
                sum = [0, 1, 2].map(|c| sum[c] + light[c]);
            }
        }
        sum.map(|channel| channel / f64::from(GRID * GRID))
    }

    /// The colour at a point of the picture, in pixels from its upper left corner.
    fn sample(&self, x: f64, y: f64) -> Light {
        let scale = VIEW_WIDTH / f64::from(self.picture.width());
        let re = CENTRE.0 + (x - f64::from(self.picture.width()) / 2.0) * scale;
        let im = CENTRE.1 - (y - f64::from(self.picture.height()) / 2.0) * scale;
        escape_count(re, im, self.iterations).map_or(palette::INSIDE, palette::outside)
    }
}

/// Iterations until z ← z² + c escapes, with a fraction that makes it continuous; `None` where it
/// does not within `iterations`.
fn escape_count(re: f64, im: f64, iterations: u32) -> Option<f64> {
    let (mut x, mut y) = (0.0_f64, 0.0_f64);
    for n in 0..iterations {
        let (xx, yy) = (x * x, y * y);
        if xx + yy > ESCAPE {
            let fraction = ((xx + yy).ln() / ESCAPE.ln()).log2();
            return Some(f64::from(n) + 1.0 - fraction);
        }
        y = 2.0 * x * y + im;
        x = xx - yy + re;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_the_set_never_escape() {
        for (re, im) in [(0.0, 0.0), (-1.0, 0.0), (-0.1, 0.75), (0.0, 1.0)] {
            assert_eq!(escape_count(re, im, 2_000), None, "{re} {im}");
        }
    }

    #[test]
    fn the_count_is_continuous_where_its_whole_part_jumps() {
        // Along the real axis beyond ¼ points escape; neighbours must have neighbouring counts.
        let mut before = escape_count(0.3, 0.0, 1_000).unwrap();
        for step in 1..2_000 {
            let count = escape_count(0.3 + f64::from(step) * 1e-4, 0.0, 1_000).unwrap();
            assert!((count - before).abs() < 0.05, "{before} then {count} at step {step}");
            before = count;
        }
    }

    #[test]
    fn a_tile_equals_its_part_of_the_whole_rendering() {
        let picture = Picture::new(37, 23, 3, 2).unwrap();
        let whole = render(picture, picture.whole(), 4_000);
        for item in 0..picture.tiles() {
            let tile = picture.tile(item).unwrap();
            let part = render(picture, tile, 4_000);
            for row in 0..tile.height {
                let from = 3 * ((tile.y + row) * picture.width() + tile.x) as usize;
                let length = 3 * tile.width as usize;
                let at = row as usize * length;
                assert_eq!(part[at..at + length], whole[from..from + length], "tile {item}");
            }
        }
    }

    #[test]
    fn the_view_shows_the_set_and_what_is_around_it() {
        let picture = Picture::new(60, 40, 1, 1).unwrap();
        let bytes = render(picture, picture.whole(), 20_000);
        let black = bytes.chunks(3).filter(|pixel| pixel.iter().all(|&b| b == 0)).count();
        assert!(black > 0 && black < 60 * 40 / 4, "{black} black pixels");
    }
}
