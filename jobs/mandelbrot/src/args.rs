//! The command line: arguments in, one [`Action`] out, or words that say what is wrong.
//!
//! By hand, since the program has seven options and is shipped to every worker.

use std::path::PathBuf;

use crate::picture::{Picture, PictureError};

/// What the program can be told to do.
pub(crate) const USAGE: &str = "\
mandelbrot renders one large picture of the Mandelbrot set in tiles.

usage:
  mandelbrot tile  PICTURE --iterations N --item N --out FILE
  mandelbrot merge PICTURE --tiles FOLDER --out FILE.png

PICTURE is --width N --height N --cols N --rows N: its size in pixels, and how many tiles it is cut
into. Tiles are numbered from 0, row by row. `merge` reads them as FOLDER/0000.rgb, 0001.rgb, …

example:
  mandelbrot tile --width 600 --height 400 --cols 2 --rows 1 --iterations 5000 --item 0 --out a.rgb
";

/// Most iterations for one point: beyond, one tile takes hours.
const ITERATIONS_MAX: u32 = 10_000_000;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Say how the program is used.
    Help,
    /// Render tile `item` into the file `out`.
    Tile { picture: Picture, iterations: u32, item: u32, out: PathBuf },
    /// Join the tiles in the folder `tiles` into the PNG `out`.
    Merge { picture: Picture, tiles: PathBuf, out: PathBuf },
}

/// Parses the arguments after the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Action, String> {
    let mut args = args.into_iter();
    match args.next().as_deref() {
        None => Err("tell it what to do: `tile` or `merge`".to_owned()),
        Some("help" | "--help" | "-h") => Ok(Action::Help),
        Some("tile") => {
            let mut options = Options::read(
                args,
                &["width", "height", "cols", "rows", "iterations", "item", "out"],
            )?;
            let iterations = options.number("iterations")?;
            if iterations == 0 || iterations > ITERATIONS_MAX {
                return Err(format!(
                    "--iterations is {iterations}, but must be between 1 and {ITERATIONS_MAX}"
                ));
            }
            let (picture, item) = (options.picture()?, options.number("item")?);
            picture.tile(item).map_err(|error: PictureError| error.to_string())?;
            Ok(Action::Tile { picture, iterations, item, out: options.path("out")? })
        }
        Some("merge") => {
            let mut options =
                Options::read(args, &["width", "height", "cols", "rows", "tiles", "out"])?;
            let (picture, tiles) = (options.picture()?, options.path("tiles")?);
            Ok(Action::Merge { picture, tiles, out: options.path("out")? })
        }
        Some(other) => Err(format!("`{other}` is neither `tile` nor `merge`")),
    }
}

/// Options as given: each known, each at most once, each with a value.
struct Options(Vec<(String, String)>);

impl Options {
    fn read(mut args: impl Iterator<Item = String>, known: &[&str]) -> Result<Self, String> {
        let mut given: Vec<(String, String)> = Vec::new();
        while let Some(arg) = args.next() {
            let Some(name) = arg.strip_prefix("--").filter(|name| known.contains(name)) else {
                return Err(format!("`{arg}` is not one of --{}", known.join(", --")));
            };
            if given.iter().any(|(other, _)| other == name) {
                return Err(format!("--{name} is given twice"));
            }
            let value = args.next().ok_or_else(|| format!("--{name} needs a value"))?;
            given.push((name.to_owned(), value));
        }
        Ok(Self(given))
    }

    fn take(&mut self, name: &str) -> Result<String, String> {
        let at = self.0.iter().position(|(other, _)| other == name);
        at.map(|at| self.0.swap_remove(at).1).ok_or_else(|| format!("--{name} is missing"))
    }

    fn number(&mut self, name: &str) -> Result<u32, String> {
        let text = self.take(name)?;
        text.parse().map_err(|_| format!("--{name} is `{text}`, which is not a whole number"))
    }

    fn path(&mut self, name: &str) -> Result<PathBuf, String> {
        self.take(name).map(PathBuf::from)
    }

    fn picture(&mut self) -> Result<Picture, String> {
        let [width, height] = [self.number("width")?, self.number("height")?];
        let [cols, rows] = [self.number("cols")?, self.number("rows")?];
        Picture::new(width, height, cols, rows).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: &str =
        "tile --width 60 --height 40 --cols 3 --rows 2 --iterations 100 --item 5 --out a.rgb";

    fn parsed(line: &str) -> Result<Action, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_actions_are_understood_with_options_in_any_order() {
        let picture = Picture::new(60, 40, 3, 2).unwrap();
        let tile = Action::Tile { picture, iterations: 100, item: 5, out: "a.rgb".into() };
        assert_eq!(parsed(TILE), Ok(tile));
        let merge = Action::Merge { picture, tiles: "tiles".into(), out: "a.png".into() };
        let line = "merge --out a.png --rows 2 --cols 3 --height 40 --width 60 --tiles tiles";
        assert_eq!(parsed(line), Ok(merge));
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        let cases = [
            ("", "tell it what to do"),
            ("paint", "`paint` is neither"),
            ("tile --colour red", "`--colour` is not one of --width"),
            ("tile --width", "--width needs a value"),
            ("tile --width 1 --width 2", "--width is given twice"),
            ("merge --width 1", "--height is missing"),
        ];
        for (line, words) in cases {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(words), "`{line}` gave `{error}`");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let cases = [
            ("--width 60", "--width -1", "`-1`, which is not a whole number"),
            ("--item 5", "--item 6", "numbered from 0 to 5"),
            ("--iterations 100", "--iterations 0", "--iterations is 0"),
            ("--cols 3", "--cols 61", "--cols is 61"),
        ];
        for (right, wrong, words) in cases {
            let error = parsed(&TILE.replace(right, wrong)).unwrap_err();
            assert!(error.contains(words), "`{wrong}` gave `{error}`");
        }
    }
}
