//! The picture and its tiles: sizes in, rectangles out.
//!
//! Invariant: the tiles of a picture cover every pixel exactly once, whatever the sizes; tiles of
//! one row of tiles have the same height, those of one column the same width. Nothing here renders.

use std::fmt;

/// Widest and highest picture, in pixels: what the PNG format and people's viewers take.
const SIDE_MAX: u32 = 65_535;

/// A picture that is cut into `cols` × `rows` tiles, numbered from 0, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    width: u32,
    height: u32,
    cols: u32,
    rows: u32,
}

/// A rectangle of pixels; `x` and `y` are its left and upper corner in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Sizes of which no picture can be made, or a tile that it has not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PictureError {
    /// A side is 0 or too long.
    Side { name: &'static str, value: u32 },
    /// More tiles than pixels in one direction, or none.
    Cut { name: &'static str, value: u32, side: u32 },
    /// No tile has this number.
    NoSuchTile { item: u32, tiles: u32 },
}

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side { name, value } => {
                write!(f, "--{name} is {value}, but must be between 1 and {SIDE_MAX} pixels")
            }
            Self::Cut { name, value, side } => {
                write!(
                    f,
                    "--{name} is {value}, but must be between 1 and the {side} pixels it cuts"
                )
            }
            Self::NoSuchTile { item, tiles } => {
                write!(
                    f,
                    "--item is {item}, but the {tiles} tiles are numbered from 0 to {}",
                    tiles - 1
                )
            }
        }
    }
}

impl Picture {
    /// A picture of `width` × `height` pixels in `cols` × `rows` tiles.
    pub(crate) fn new(width: u32, height: u32, cols: u32, rows: u32) -> Result<Self, PictureError> {
        for (name, value) in [("width", width), ("height", height)] {
            if value == 0 || value > SIDE_MAX {
                return Err(PictureError::Side { name, value });
            }
        }
        for (name, value, side) in [("cols", cols, width), ("rows", rows, height)] {
            if value == 0 || value > side {
                return Err(PictureError::Cut { name, value, side });
            }
        }
        Ok(Self { width, height, cols, rows })
    }

    pub(crate) fn width(self) -> u32 {
        self.width
    }

    pub(crate) fn height(self) -> u32 {
        self.height
    }

    pub(crate) fn cols(self) -> u32 {
        self.cols
    }

    pub(crate) fn rows(self) -> u32 {
        self.rows
    }

    /// How many tiles there are. Both factors are at most [`SIDE_MAX`], so that it cannot overflow.
    pub(crate) fn tiles(self) -> u32 {
        self.cols * self.rows
    }

    /// Tile `item`: its column is the remainder, its row the quotient by the number of columns.
    pub(crate) fn tile(self, item: u32) -> Result<Tile, PictureError> {
        if item >= self.tiles() {
            return Err(PictureError::NoSuchTile { item, tiles: self.tiles() });
        }
        let (x, width) = share(self.width, self.cols, item % self.cols);
        let (y, height) = share(self.height, self.rows, item / self.cols);
        Ok(Tile { x, y, width, height })
    }

    /// The whole picture as one rectangle.
    #[cfg(test)]
    pub(crate) fn whole(self) -> Tile {
        Tile { x: 0, y: 0, width: self.width, height: self.height }
    }
}

/// Part `n` of `parts` of a side: where it starts and how long it is. The first ones are a pixel
/// longer where the division leaves a remainder.
fn share(side: u32, parts: u32, n: u32) -> (u32, u32) {
    let (length, longer) = (side / parts, side % parts);
    (n * length + n.min(longer), length + u32::from(n < longer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_pixel_exactly_once() {
        for (width, height, cols, rows) in
            [(60, 40, 6, 4), (61, 43, 7, 5), (7, 3, 7, 3), (9, 1, 2, 1)]
        {
            let picture = Picture::new(width, height, cols, rows).unwrap();
            let mut seen = vec![0_u8; (width * height) as usize];
            for item in 0..picture.tiles() {
                let tile = picture.tile(item).unwrap();
                for y in tile.y..tile.y + tile.height {
                    for x in tile.x..tile.x + tile.width {
                        seen[(y * width + x) as usize] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{picture:?}");
        }
    }

    #[test]
    fn tiles_differ_by_one_pixel_at_most() {
        let picture = Picture::new(6001, 4003, 20, 15).unwrap();
        let widths: Vec<u32> = (0..20).map(|item| picture.tile(item).unwrap().width).collect();
        assert_eq!(widths.iter().sum::<u32>(), 6001);
        assert!(widths.iter().all(|w| (300..=301).contains(w)));
    }

    #[test]
    fn impossible_sizes_are_refused_by_name() {
        let side = Picture::new(0, 4, 1, 1).unwrap_err();
        assert_eq!(side, PictureError::Side { name: "width", value: 0 });
        let cut = Picture::new(4, 4, 1, 5).unwrap_err();
        assert_eq!(cut.to_string(), "--rows is 5, but must be between 1 and the 4 pixels it cuts");
        assert!(Picture::new(70_000, 4, 1, 1).is_err());
    }

    #[test]
    fn a_tile_beyond_the_last_is_refused() {
        let error = Picture::new(4, 4, 2, 2).unwrap().tile(4).unwrap_err();
        assert_eq!(error.to_string(), "--item is 4, but the 4 tiles are numbered from 0 to 3");
    }
}
