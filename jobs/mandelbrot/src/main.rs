//! The renderer of musec's first job: one large picture of the Mandelbrot set, in tiles.
//!
//! In: arguments that name the picture, and a tile or a folder of tiles. Out: one tile file, or one
//! PNG. It knows nothing of musec: any program that reads and writes files will do.

mod args;
mod merge;
mod palette;
mod picture;
mod render;
mod tile_file;

use std::io::Write;
use std::process::ExitCode;

use args::Action;

fn main() -> ExitCode {
    let action = match args::parse(std::env::args().skip(1)) {
        Ok(action) => action,
        Err(error) => {
            return say(&format!("mandelbrot: {error} (`mandelbrot help` tells more)\n"), 2);
        }
    };
    match perform(action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&format!("mandelbrot: {error}\n"), 1),
    }
}

fn perform(action: Action) -> Result<(), String> {
    match action {
        Action::Help => std::io::stdout()
            .write_all(args::USAGE.as_bytes())
            .map_err(|error| format!("cannot print: {error}")),
        Action::Tile { picture, iterations, item, out } => {
            let tile = picture.tile(item).map_err(|error| error.to_string())?;
            let pixels = render::render(picture, tile, iterations);
            tile_file::write(&out, tile, &pixels)
                .map_err(|error| format!("cannot write {}: {error}", out.display()))
        }
        Action::Merge { picture, tiles, out } => {
            merge::merge(picture, &tiles, &out).map_err(|error| error.to_string())
        }
    }
}

/// Says something on stderr and gives the exit code; a closed stderr leaves only the code.
fn say(text: &str, code: u8) -> ExitCode {
    let _written = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}
