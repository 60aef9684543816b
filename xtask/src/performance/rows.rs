//! The table's rows: from figures to what stands in them, and whether a target is reached.

use serde_json::Value;

use super::Measured;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) figure: &'static str,
    /// mu's, as published in this guide; or another's, by name.
    pub(super) others: &'static str,
    pub(super) floor: String,
    pub(super) musec: String,
    /// In hundredths of what the target speaks of.
    pub(super) ratio: String,
    pub(super) target: &'static str,
    pub(super) is_reached: bool,
}

/// A unit that figures are shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Ns,
    Us,
    Ms,
    Kb,
    Mb,
}

impl Unit {
    /// How many of the smallest go into one, and its name.
    const fn scale(self) -> (u64, &'static str) {
        match self {
            Self::Ns => (1, "ns"),
            Self::Us => (1_000, "µs"),
            Self::Ms => (1_000_000, "ms"),
            Self::Kb => (1_000, "KB"),
            Self::Mb => (1_000_000, "MB"),
        }
    }

    fn shown(self, figure: u64) -> String {
        let (scale, name) = self.scale();
        if scale == 1 {
            return format!("{figure} {name}");
        }
        format!("{} {name}", decimal(figure, scale))
    }
}

/// `figure / scale` with two decimals, rounded to the nearest.
fn decimal(figure: u64, scale: u64) -> String {
    let hundredths = (u128::from(figure) * 200 / u128::from(scale)).div_ceil(2);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// What a row is about, before figures are put in.
struct About {
    figure: &'static str,
    others: &'static str,
    unit: Unit,
    target: &'static str,
}

/// A figure beside its floor; at most `most_percent` of it.
fn against(about: &About, musec: u64, floor: u64, most_percent: u64) -> Row {
    Row {
        figure: about.figure,
        others: about.others,
        floor: about.unit.shown(floor),
        musec: about.unit.shown(musec),
        ratio: decimal(musec, floor.max(1)),
        target: about.target,
        is_reached: u128::from(musec) * 100 <= u128::from(floor) * u128::from(most_percent),
    }
}

/// A figure with a target of its own, beside what another has measured as a floor.
fn below(about: &About, musec: u64, floor: &str, most: u64) -> Row {
    Row {
        figure: about.figure,
        others: about.others,
        floor: floor.to_owned(),
        musec: about.unit.shown(musec),
        ratio: "–".to_owned(),
        target: about.target,
        is_reached: musec <= most,
    }
}

pub(super) fn rows(measured: &Measured) -> Result<Vec<Row>, String> {
    let mut rows = coordinator(measured)?;
    rows.extend(workers(measured)?);
    rows.extend(simulation(&measured.simulate)?);
    Ok(rows)
}

fn coordinator(measured: &Measured) -> Result<Vec<Row>, String> {
    let cpu = |of: &Value| number(of, "cpu_ns_per_command");
    let floor = |of: &Value| number(of, "floor_cpu_ns_per_command");
    let (busy, one) = (cpu(&measured.busy)?, cpu(&measured.one)?);
    let us = |figure, others, target| About { figure, others, unit: Unit::Us, target };
    let as_one = |figure, others, of: &Value| -> Result<Row, String> {
        let row = us(figure, others, "≤ 1.2 × one connected");
        Ok(Row { floor: Unit::Us.shown(floor(of)?), ..against(&row, cpu(of)?, one, 120) })
    };
    let all = us("CPU of a command, all workers busy", "50 µs", "≤ 1.6 × floor");
    let single = us("… one worker connected", "57–92 µs", "≤ 1.3 × floor");
    let pipelined = us("… all busy, pipelined", "5–7 µs", "≤ 0.25 × floor, not pipelined");
    let busy_floor = floor(&measured.busy)?;
    let wall = |of: &Value| number(of, "wall_ns");
    let (with, without) = (wall(&measured.busy)?, wall(&measured.untraced)?);
    Ok(vec![
        against(&all, busy, busy_floor, 160),
        against(&single, one, floor(&measured.one)?, 130),
        as_one("… many connected, one busy", "2,190 µs", &measured.one_of_many)?,
        as_one("… ten times as many connected, one busy", "–", &measured.one_of_most)?,
        against(&pipelined, cpu(&measured.pipelined)?, busy_floor, 25),
        against(
            &About {
                figure: "wall time of all busy, beside the same without a journal",
                others: "–",
                unit: Unit::Ms,
                target: "≤ 1.03 ×",
            },
            with,
            without,
            103,
        ),
        below(
            &us("CPU of an accepted worker, TLS and its first command", "1.6–2.1 ms", "≤ 350 µs"),
            number(&measured.busy, "handshake_cpu_ns")?,
            "260 µs (bare tokio + rustls)",
            350_000,
        ),
        below(
            &About {
                figure: "memory of a connected worker",
                others: "40–50 KB",
                unit: Unit::Kb,
                target: "≤ 22 KB",
            },
            number(&measured.busy, "rss_bytes_per_worker")?,
            "15 KB (bare tokio + rustls)",
            22_000,
        ),
    ])
}

fn workers(measured: &Measured) -> Result<Vec<Row>, String> {
    let of = |key| number(&measured.launch, key);
    let about = |figure, others, unit, target| About { figure, others, unit, target };
    Ok(vec![
        below(
            &about("worker: exec to hello", "260 ms", Unit::Ms, "≤ 15 ms"),
            of("exec_to_hello_ns")?,
            "–",
            15_000_000,
        ),
        below(
            &about("worker: memory", "50 MB", Unit::Mb, "≤ 10 MB"),
            of("worker_rss_bytes")?,
            "–",
            10_000_000,
        ),
        against(
            &about("`run` of /bin/true, there and back", "4.4 ms", Unit::Ms, "≤ 2 × floor"),
            of("run_true_ns")?,
            of("floor_run_true_ns")?,
            200,
        ),
        against(
            &about("… in the background", "75 ms", Unit::Ms, "≤ 2 × floor"),
            of("background_run_true_ns")?,
            of("floor_run_true_ns")?,
            200,
        ),
        below(
            &about(
                "recording an event",
                "1.1 µs (usual Rust tracer; the best one 28 ns)",
                Unit::Ns,
                "≤ 150 ns",
            ),
            number(&measured.record, "ns_per_event")?,
            "–",
            150,
        ),
        against(
            &about(
                "whole command: `true` for each item, `-j2`",
                "HyperQueue 1.43 s, GNU parallel 2.1 s, Dask 2.1 s",
                Unit::Ms,
                "≤ 1.5 × `xargs -P2`",
            ),
            measured.whole.musec_ns,
            measured.whole.xargs_ns,
            150,
        ),
    ])
}

fn simulation(figures: &Value) -> Result<Vec<Row>, String> {
    let of = |key| number(figures, key);
    let cpu = About {
        figure: "decisions, journal's bytes and fold of an event, many fake workers",
        others: "–",
        unit: Unit::Ns,
        target: "≤ 1.5 × 1,000 workers",
    };
    let memory = About {
        figure: "memory of a simulated worker: fleet and machine",
        others: "–",
        unit: Unit::Kb,
        target: "≤ 2 KB",
    };
    Ok(vec![
        against(&cpu, of("ns_per_event")?, of("ns_per_event_of_1000")?, 150),
        below(&memory, of("bytes_per_worker")?, "–", 2_000),
    ])
}

/// A whole number of a bench's figures.
pub(super) fn number(figures: &Value, key: &str) -> Result<u64, String> {
    let found = figures.get(key).and_then(Value::as_u64);
    found.ok_or_else(|| format!("no whole number {key} in {figures}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About { figure: "a", others: "b", unit: Unit::Us, target: "c" };

    #[test]
    fn a_target_is_reached_up_to_its_last_nanosecond() {
        assert!(against(&ABOUT, 1_600, 1_000, 160).is_reached);
        assert!(!against(&ABOUT, 1_601, 1_000, 160).is_reached);
        assert!(below(&ABOUT, 15, "", 15).is_reached);
        assert!(!below(&ABOUT, 16, "", 15).is_reached);
        assert!(!against(&ABOUT, 1, 0, 160).is_reached, "a floor that was not measured");
    }

    #[test]
    fn figures_are_shown_in_their_unit_with_two_decimals() {
        let row = against(&ABOUT, 10_876, 6_800, 160);
        let shown = [row.musec, row.floor, row.ratio];
        assert_eq!(shown, ["10.88 µs", "6.80 µs", "1.60"]);
        assert_eq!(Unit::Ns.shown(43), "43 ns");
        assert_eq!(Unit::Mb.shown(8_499_999), "8.50 MB");
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error() {
        let error = number(&serde_json::json!({ "a": 1.5 }), "a").unwrap_err();
        assert!(error.contains("no whole number a"), "{error}");
    }
}
