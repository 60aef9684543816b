//! The file of one tile: a header that says which part of the picture it is, then its RGB bytes.
//!
//! The header lets `merge` tell a tile of another picture, or half a tile, from the right one.

use std::fs;
use std::io;
use std::path::Path;

use crate::picture::Tile;

/// First bytes of each tile file; the digit is the format's version.
const MAGIC: &[u8; 4] = b"MBT1";

/// Magic, then x, y, width, height as little-endian u32.
const HEADER_BYTES: usize = 4 + 4 * 4;

/// Writes a tile and its pixels (three bytes each, rows from the top) to `path`.
pub(crate) fn write(path: &Path, tile: Tile, pixels: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + pixels.len());
    bytes.extend_from_slice(&header(tile));
    bytes.extend_from_slice(pixels);
    fs::write(path, bytes)
}

/// Reads the pixels of `tile` from `path`; anything else that stands there is an error.
pub(crate) fn read(path: &Path, tile: Tile) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES] != header(tile) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "not the tile of {} × {} pixels at {}, {}; was it rendered with other sizes?",
                tile.width, tile.height, tile.x, tile.y
            ),
        ));
    }
    let pixels = bytes.split_off(HEADER_BYTES);
    let wanted = 3 * tile.width as usize * tile.height as usize;
    if pixels.len() != wanted {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} bytes of pixels instead of {wanted}", pixels.len()),
        ));
    }
    Ok(pixels)
}

fn header(tile: Tile) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(MAGIC);
    for (n, value) in [tile.x, tile.y, tile.width, tile.height].into_iter().enumerate() {
        header[4 + 4 * n..8 + 4 * n].copy_from_slice(&value.to_le_bytes());
    }
    header
}
