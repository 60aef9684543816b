//! What a job would do: `musec check`.

use std::time::Duration;

use console::{Alignment, pad_str};
use musec_core::{Outline, OutlineStep, OutlineWave, duration};

use super::look::{Ink, Look};
use super::page::{Page, clean, counted, short};

/// Columns of an action's name.
const ACTION_COLUMNS: usize = 6;

/// A program, wave by wave and step by step.
pub(crate) fn render(outline: &Outline, look: &Look) -> String {
    let mut page = Page::new(look);
    let waves = u64::try_from(outline.waves.len()).unwrap_or(u64::MAX);
    let job = look.paint(Ink::Strong, &clean(&outline.job));
    page.line(&format!("{} job {job}: {}", look.paint(Ink::Good, "✓"), counted(waves, "wave")));
    let params: Vec<String> = outline
        .params
        .iter()
        .map(|(name, value)| format!("{} = {}", clean(name), clean(&value.to_string())))
        .collect();
    if !params.is_empty() {
        page.flow("  params  ", &params);
    }
    if !outline.files.is_empty() {
        let files: Vec<String> = outline.files.iter().map(|file| clean(file)).collect();
        page.flow("  ships   ", &files);
    }
    for wave in &outline.waves {
        write_wave(&mut page, wave);
    }
    page.into_text()
}

fn write_wave(page: &mut Page<'_>, wave: &OutlineWave) {
    let beside = if wave.after.is_empty() {
        String::new()
    } else {
        format!("after {}", clean(&wave.after.join(", ")))
    };
    page.heading(&format!("wave {}", clean(&wave.name)), &beside);
    let mut about = vec![match (&wave.workers, &wave.items) {
        (Some(workers), _) => {
            let when = if wave.workers_at_run_time { ", known at run time" } else { "" };
            format!("workers: {}{when}", clean(workers))
        }
        (None, _) => "workers: one an item".to_owned(),
    }];
    about.extend(wave.items.as_ref().map(|items| {
        let when = if wave.items_at_run_time { ", known at run time" } else { "" };
        format!("items: {}{when}", clean(items))
    }));
    if wave.each {
        about.push("each as it comes".to_owned());
    }
    about.extend(wave.at_once.as_ref().map(|count| format!("at once: {}", clean(count))));
    about.extend(
        wave.timeout_ms
            .map(|limit| format!("timeout: {}", duration::in_words(Duration::from_millis(limit)))),
    );
    page.painted_flow(Ink::Faint, "  ", &about);
    let columns = wave.states.iter().map(|state| console::measure_text_width(state)).max();
    let columns = columns.unwrap_or(0);
    if !wave.setup.is_empty() {
        page.line("  once for each worker:");
        write_steps(page, &wave.setup, columns, 0);
        page.line("  for each item:");
    }
    write_steps(page, &wave.steps, columns, 0);
}

fn write_steps(page: &mut Page<'_>, steps: &[OutlineStep], state_columns: usize, depth: usize) {
    for step in steps {
        let state = clean(&step.state);
        let state = pad_str(&state, state_columns, Alignment::Left, None);
        let action = pad_str(step.action, ACTION_COLUMNS, Alignment::Left, None);
        let indent = "  ".repeat(depth);
        let start = format!("  {state}  {indent}{action}  ");
        let room = page.look.width.saturating_sub(console::measure_text_width(&start));
        let condition = step.condition.as_ref().map(|text| format!("if {text}: "));
        let how = how(step);
        let text = format!("{}{how}{}", condition.unwrap_or_default(), step.text);
        page.line(&format!("{start}{}", short(&text, room)));
        write_steps(page, &step.steps, state_columns, depth + 1);
        for lane in &step.lanes {
            let name = clean(&lane.name);
            page.line(&format!("  {}  {indent}  lane {name}", " ".repeat(state_columns)));
            write_steps(page, &lane.steps, state_columns, depth + 2);
        }
        for (name, steps) in [("else", &step.otherwise), ("on_error", &step.on_error)] {
            if !steps.is_empty() {
                page.line(&format!("  {}  {indent}{name}", " ".repeat(state_columns)));
                write_steps(page, steps, state_columns, depth + 1);
            }
        }
    }
}

/// Words for what is special about how a step's commands are sent.
const fn how(step: &OutlineStep) -> &'static str {
    match (step.pipelined, step.background) {
        (true, _) => "pipelined ",
        (false, true) => "in the background: ",
        (false, false) => "",
    }
}
