//! `musec graph`: the machine of a job file as Mermaid or DOT.
//!
//! In: a program's outline. Out: one cluster for each wave, one node for each step, an edge for
//! each way from one to the next: branches, loops and what follows a failure are labelled.

use std::process::ExitCode;

use musec_core::{Outline, OutlineStep, OutlineWave};

use crate::args::{GraphArgs, GraphFormat, Places};
use crate::commands::job::{Beside, read};
use crate::error::CliError;
use crate::output::print;
use crate::terminal::page::short;

/// Columns of a node's text.
const TEXT_COLUMNS: usize = 48;

/// Prints the machine of a job file.
pub(crate) fn graph(_places: &Places, args: &GraphArgs) -> Result<ExitCode, CliError> {
    let job = read(&args.job, &Beside { params: &args.params, ..Beside::default() })?;
    let outline = job.program.outline();
    let drawing = Drawing::of(&outline);
    print(match args.format {
        GraphFormat::Mermaid => drawing.mermaid(),
        GraphFormat::Dot => drawing.dot(&outline.job),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Nodes by wave, and edges between them.
#[derive(Default)]
struct Drawing {
    waves: Vec<(String, Vec<Node>)>,
    edges: Vec<Edge>,
    count: usize,
    /// From which node to the first step of which state.
    gotos: Vec<(usize, String)>,
}

struct Node {
    id: usize,
    text: String,
    is_choice: bool,
}

struct Edge {
    from: usize,
    to: usize,
    label: String,
}

/// Ways that lead to the next step: from which node, with which label.
type Ways = Vec<(usize, String)>;

impl Drawing {
    fn of(outline: &Outline) -> Self {
        let mut drawing = Self::default();
        let ends: Vec<(usize, Ways)> =
            outline.waves.iter().map(|wave| drawing.wave(wave)).collect();
        for (wave, (start, _)) in outline.waves.iter().zip(&ends) {
            let places = outline.waves.iter().zip(&ends);
            for (_, (_, ways)) in places.filter(|(other, _)| wave.after.contains(&other.name)) {
                let label = if wave.each { "each" } else { "" };
                let ways = ways.iter().map(|(from, _)| (*from, label.to_owned())).collect();
                drawing.join(ways, *start);
            }
        }
        drawing
    }

    /// A wave: where it begins, and the ways out of it.
    fn wave(&mut self, wave: &OutlineWave) -> (usize, Ways) {
        self.waves.push((wave.name.clone(), Vec::new()));
        let who = match (&wave.workers, &wave.items) {
            (Some(workers), Some(items)) => format!("{workers} workers, items: {items}"),
            (Some(workers), None) => format!("{workers} workers"),
            (None, Some(items)) => format!("a worker for each of: {items}"),
            (None, None) => "workers".to_owned(),
        };
        let start = self.node(&who, false);
        let mut ways = self.program(&wave.setup, vec![(start, String::new())]);
        if !wave.setup.is_empty() {
            let ready = self.node("next item", false);
            self.join(ways, ready);
            ways = vec![(ready, String::new())];
        }
        let ways = self.program(&wave.steps, ways);
        let end = self.node("end", false);
        self.join(ways, end);
        (start, vec![(end, String::new())])
    }

    /// Steps that `goto` may lead to.
    fn program(&mut self, steps: &[OutlineStep], mut ways: Ways) -> Ways {
        let mut targets: Vec<(&str, usize)> = Vec::new();
        for step in steps {
            // A step's first node is the one that is reached.
            targets.push((&step.state, self.count));
            ways = self.step(step, ways);
        }
        for (from, state) in std::mem::take(&mut self.gotos) {
            let target = targets.iter().find(|(name, _)| *name == state);
            if let Some((_, to)) = target {
                self.join(vec![(from, String::new())], *to);
            }
        }
        ways
    }

    fn steps(&mut self, steps: &[OutlineStep], mut ways: Ways) -> Ways {
        for step in steps {
            ways = self.step(step, ways);
        }
        ways
    }

    /// One step: it is reached by `ways`; the ways out of it come back.
    fn step(&mut self, step: &OutlineStep, ways: Ways) -> Ways {
        let plain = |from| vec![(from, String::new())];
        let mut out = Ways::new();
        let mut ways = ways;
        if let Some(condition) = &step.condition {
            let choice = self.node(&format!("if {condition}"), true);
            self.join(ways, choice);
            ways = vec![(choice, "yes".to_owned())];
            out.extend(self.steps(&step.otherwise, vec![(choice, "no".to_owned())]));
        }
        let is_loop = matches!(step.action, "for" | "while");
        let is_list = step.action == "do" && !step.pipelined;
        let node = if is_list && step.condition.is_some() {
            None
        } else {
            let how = match (step.pipelined, step.background) {
                (true, _) => "pipelined ",
                (false, true) => "background ",
                (false, false) => "",
            };
            let text = format!("{}: {how}{} {}", step.state, step.action, step.text);
            let node = self.node(&text, is_loop);
            self.join(std::mem::take(&mut ways), node);
            Some(node)
        };
        if let Some(node) = node {
            ways = plain(node);
        }
        if !step.on_error.is_empty()
            && let Some(node) = node
        {
            out.extend(self.steps(&step.on_error, vec![(node, "failed".to_owned())]));
        }
        match (is_loop, node) {
            (true, Some(node)) => {
                let around = self.steps(&step.steps, vec![(node, "each".to_owned())]);
                self.join(around, node);
                out.push((node, "done".to_owned()));
            }
            (false, Some(node)) if step.action == "goto" => {
                self.gotos.push((node, step.text.clone()));
            }
            (false, Some(_)) if matches!(step.action, "fail" | "done") => {}
            (false, Some(node)) if !step.lanes.is_empty() => {
                let join = self.node("join", false);
                for lane in &step.lanes {
                    let ends = self.steps(&lane.steps, vec![(node, lane.name.clone())]);
                    self.join(ends, join);
                }
                out.push((join, String::new()));
            }
            (true | false, _) => out.extend(self.steps(&step.steps, ways)),
        }
        out
    }

    fn node(&mut self, text: &str, is_choice: bool) -> usize {
        let id = self.count;
        self.count += 1;
        let text = short(text.trim(), TEXT_COLUMNS);
        if let Some((_, nodes)) = self.waves.last_mut() {
            nodes.push(Node { id, text, is_choice });
        }
        id
    }

    fn join(&mut self, ways: Ways, to: usize) {
        self.edges.extend(ways.into_iter().map(|(from, label)| Edge { from, to, label }));
    }

    fn mermaid(&self) -> String {
        let quoted =
            |text: &str| text.replace('&', "#amp;").replace('"', "#quot;").replace('<', "#lt;");
        let mut out = "flowchart TD\n".to_owned();
        for (number, (name, nodes)) in self.waves.iter().enumerate() {
            out.push_str(&format!("  subgraph w{number} [\"{}\"]\n", quoted(name)));
            for Node { id, text, is_choice } in nodes {
                let (open, close) = if *is_choice { ("{", "}") } else { ("[", "]") };
                out.push_str(&format!("    n{id}{open}\"{}\"{close}\n", quoted(text)));
            }
            out.push_str("  end\n");
        }
        for Edge { from, to, label } in &self.edges {
            match label.as_str() {
                "" => out.push_str(&format!("  n{from} --> n{to}\n")),
                label => out.push_str(&format!("  n{from} -->|{label}| n{to}\n")),
            }
        }
        out
    }

    fn dot(&self, job: &str) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut out = format!("digraph \"{}\" {{\n", quoted(job));
        for (number, (name, nodes)) in self.waves.iter().enumerate() {
            out.push_str(&format!(
                "  subgraph cluster_{number} {{\n    label=\"{}\";\n",
                quoted(name)
            ));
            for Node { id, text, is_choice } in nodes {
                let shape = if *is_choice { "diamond" } else { "box" };
                out.push_str(&format!("    n{id} [label=\"{}\", shape={shape}];\n", quoted(text)));
            }
            out.push_str("  }\n");
        }
        for Edge { from, to, label } in &self.edges {
            match label.as_str() {
                "" => out.push_str(&format!("  n{from} -> n{to};\n")),
                label => out.push_str(&format!("  n{from} -> n{to} [label=\"{label}\"];\n")),
            }
        }
        out.push_str("}\n");
        out
    }
}
