//! Merging: the tile files of a picture in, one PNG out.
//!
//! Invariant: at most one row of tiles is held in memory. Every tile must be there and be the right
//! one; the error names those that are missing. A PNG that could not be completed is removed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::picture::{Picture, PictureError};
use crate::tile_file;

/// How many missing tiles an error names; the rest are counted.
const NAMED_MAX: usize = 10;

/// Why the tiles could not be merged.
#[derive(Debug)]
pub(crate) enum MergeError {
    /// Tiles without a file.
    Missing { folder: PathBuf, tiles: Vec<u32> },
    /// A tile's file is not what it should be.
    Tile { path: PathBuf, source: io::Error },
    /// The picture could not be written.
    Write { path: PathBuf, source: io::Error },
    /// The picture's own numbers are wrong.
    Picture(PictureError),
}

impl std::fmt::Display for MergeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { folder, tiles } => {
                write!(
                    f,
                    "{} of the picture's tiles are not in {}:",
                    tiles.len(),
                    folder.display()
                )?;
                for item in tiles.iter().take(NAMED_MAX) {
                    write!(f, " {}", file_name(*item))?;
                }
                if tiles.len() > NAMED_MAX {
                    write!(f, " and {} more", tiles.len() - NAMED_MAX)?;
                }
                Ok(())
            }
            Self::Tile { path, source } => write!(f, "cannot use {}: {source}", path.display()),
            Self::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
            Self::Picture(error) => error.fmt(f),
        }
    }
}

impl From<PictureError> for MergeError {
    fn from(error: PictureError) -> Self {
        Self::Picture(error)
    }
}

/// The name of a tile's file within the folder of tiles.
pub(crate) fn file_name(item: u32) -> String {
    format!("{item:04}.rgb")
}

/// Joins the tiles in `folder` into the PNG `out`.
pub(crate) fn merge(picture: Picture, folder: &Path, out: &Path) -> Result<(), MergeError> {
    let missing: Vec<u32> =
        (0..picture.tiles()).filter(|&item| !folder.join(file_name(item)).is_file()).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { folder: folder.to_owned(), tiles: missing });
    }
    let written = write_png(picture, folder, out);
    if written.is_err() {
        // Half a picture must not be taken for one. That it cannot be removed adds nothing.
        let _removed = fs::remove_file(out);
    }
    written
}

fn write_png(picture: Picture, folder: &Path, out: &Path) -> Result<(), MergeError> {
    let cannot_write = |source| MergeError::Write { path: out.to_owned(), source };
    let file = File::create(out).map_err(cannot_write)?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), picture.width(), picture.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut header = encoder.write_header().map_err(|e| cannot_write(e.into()))?;
    let mut stream = header.stream_writer().map_err(|e| cannot_write(e.into()))?;
    for row in 0..picture.rows() {
        let band = read_band(picture, folder, row)?;
        stream.write_all(&band).map_err(cannot_write)?;
    }
    stream.finish().map_err(|e| cannot_write(e.into()))?;
    header.finish().map_err(|e| cannot_write(e.into()))
}

/// The pixels of one row of tiles, as rows of the picture.
fn read_band(picture: Picture, folder: &Path, row: u32) -> Result<Vec<u8>, MergeError> {
    let line_bytes = 3 * picture.width() as usize;
    let mut band = Vec::new();
    for column in 0..picture.cols() {
        let item = row * picture.cols() + column;
        let tile = picture.tile(item)?;
        let path = folder.join(file_name(item));
        let pixels = match tile_file::read(&path, tile) {
            Ok(pixels) => pixels,
            Err(source) => return Err(MergeError::Tile { path, source }),
        };
        band.resize(line_bytes * tile.height as usize, 0);
        let (from, length) = (3 * tile.x as usize, 3 * tile.width as usize);
        for (line, part) in band.chunks_mut(line_bytes).zip(pixels.chunks(length)) {
            line[from..from + length].copy_from_slice(part);
        }
    }
    Ok(band)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::render;

    const ITERATIONS: u32 = 3_000;

    /// A folder of its own for one test, removed when it ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("mandelbrot-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn with_tiles(name: &str, picture: Picture) -> Self {
            let folder = Self::new(name);
            for item in 0..picture.tiles() {
                let tile = picture.tile(item).unwrap();
                let pixels = render(picture, tile, ITERATIONS);
                tile_file::write(&folder.0.join(file_name(item)), tile, &pixels).unwrap();
            }
            folder
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn decode(path: &Path) -> (u32, u32, Vec<u8>) {
        let decoder = png::Decoder::new(io::BufReader::new(File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    #[test]
    fn merged_tiles_equal_the_whole_rendering() {
        let picture = Picture::new(41, 29, 4, 3).unwrap();
        let folder = Folder::with_tiles("whole", picture);
        let out = folder.0.join("picture.png");
        merge(picture, &folder.0, &out).unwrap();
        let whole = render(picture, picture.whole(), ITERATIONS);
        assert_eq!(decode(&out), (41, 29, whole));
    }

    #[test]
    fn a_missing_tile_is_named() {
        let picture = Picture::new(12, 8, 3, 2).unwrap();
        let folder = Folder::with_tiles("missing", picture);
        fs::remove_file(folder.0.join("0004.rgb")).unwrap();
        let out = folder.0.join("picture.png");
        let error = merge(picture, &folder.0, &out).unwrap_err().to_string();
        assert!(error.starts_with("1 of the picture's tiles"), "{error}");
        assert!(error.ends_with(" 0004.rgb"), "{error}");
        assert!(!out.exists());
    }

    #[test]
    fn of_many_missing_tiles_the_first_are_named_and_the_rest_counted() {
        let folder = Folder::new("many");
        let picture = Picture::new(30, 20, 5, 4).unwrap();
        let error = merge(picture, &folder.0, &folder.0.join("picture.png")).unwrap_err();
        assert!(error.to_string().ends_with(" 0009.rgb and 10 more"), "{error}");
    }

    #[test]
    fn tiles_of_another_picture_and_torn_ones_are_refused() {
        let picture = Picture::new(12, 8, 3, 2).unwrap();
        let folder = Folder::with_tiles("other", picture);
        let out = folder.0.join("picture.png");
        let other = Picture::new(15, 8, 3, 2).unwrap();
        let error = merge(other, &folder.0, &out).unwrap_err().to_string();
        assert!(error.contains("0000.rgb: not the tile of 5 × 4 pixels at 0, 0"), "{error}");

        let torn = folder.0.join("0003.rgb");
        let bytes = fs::read(&torn).unwrap();
        fs::write(&torn, &bytes[..bytes.len() - 1]).unwrap();
        let error = merge(picture, &folder.0, &out).unwrap_err().to_string();
        assert!(error.contains("0003.rgb: 47 bytes of pixels instead of 48"), "{error}");
        assert!(!out.exists(), "half a picture was left");
    }
}
