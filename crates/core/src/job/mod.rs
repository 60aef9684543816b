//! From a job file's text to a program.
//!
//! In: the text, never trusted, and what the command line says beside it. Out: a whole [`Program`],
//! or all errors at once, each with its place in the text and the cure. Invariants: no text makes
//! it panic; what comes out names only what is bound and holds no cycle of waves. No file is
//! opened: paths stay as written.

mod background;
mod barrier;
mod command;
mod context;
mod error;
mod goto;
mod header;
mod keys;
mod lanes;
mod loops;
mod lower;
mod nearest;
mod order;
mod params;
mod pipelined;
mod reach;
mod recorded;
mod step;
mod variables;
mod wave;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use toml::de::DeTable;

pub use error::{JobError, JobErrors};
pub use keys::{json_schema, reference_markdown};
pub(crate) use nearest::nearest;
pub(crate) use params::{is_identifier, is_reserved_for_columns};

use crate::job::background::Backgrounds;
use crate::job::barrier::Barriers;
use crate::job::context::{Context, Spot};
use crate::job::goto::Gotos;
use crate::job::header::{Header, Params};
use crate::job::lower::Lowering;
use crate::job::order::Order;
use crate::job::step::{States, StepReader};
use crate::job::wave::{Known, WorkerKeys, Workers};
use crate::limits::{JOB_BYTES_MAX, WAVES_MAX};
use crate::program::node::LaneDef;
use crate::program::{PlanError, Program, Wave, WaveId};
use crate::template::{ItemNames, Scope, Value, value};

/// What is said beside the job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The job's name unless it has one: the file's stem. `job` if empty.
    pub name: String,
    /// Overrides of `[params]`, as texts; each is read as its default's type.
    pub params: BTreeMap<String, String>,
    /// Attempts alive at a time, for all waves.
    pub at_once: Option<u32>,
    /// Time of each attempt, for all waves.
    pub timeout: Option<Duration>,
    /// Where `in:` keys are read.
    pub inputs: Option<String>,
    /// Numbers of the workers that are launched, of all waves; sorted.
    pub only: Option<Vec<u32>>,
    /// Columns of the tables that could be read already, or what is wrong with them
    /// (`crate::csv_header`), by their keys with `in:`. Names of other tables are known at run time
    /// only.
    pub csv_headers: BTreeMap<String, Result<Vec<String>, String>>,
}

/// Parses and checks a job file.
///
/// # Errors
/// With all that is wrong, in the order of the text.
pub fn parse(text: &str, options: &Options) -> Result<Program, JobErrors> {
    let mut cx = Context::new(text);
    if text.len() > JOB_BYTES_MAX {
        let message = format!("the job file is longer than {JOB_BYTES_MAX} bytes");
        cx.error(0..0, message, None);
        return Err(cx.into_errors().unwrap_or_else(|| JobErrors(Vec::new())));
    }
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let span = error.span().unwrap_or(0..0);
        cx.error(span, error.message().replace('\n', ", "), None);
    }
    if let Some(errors) = cx.into_errors() {
        return Err(errors);
    }
    let mut cx = Context::new(text);
    let program = build(&mut cx, root.get_ref(), options);
    match cx.into_errors() {
        None => Ok(program),
        Some(errors) => Err(errors),
    }
}

/// Builds what can be built; whatever is wrong is noted.
fn build<'t>(cx: &mut Context<'t>, root: &DeTable<'t>, options: &Options) -> Program {
    let mut params_table = None;
    let mut job_table = None;
    for entry in cx.entries(root, keys::Place::File) {
        match entry.key {
            "params" => params_table = cx.table("params", entry.value).map(|t| (t, entry.key_span)),
            "job" => job_table = cx.table("job", entry.value).map(|t| (t, entry.key_span)),
            _ => {}
        }
    }
    let params = params::read(cx, params_table, &options.params);
    let param_values: Vec<Value> = params.values().map(value::from_json).collect();
    let scope = Scope::params(params.keys().map(String::as_str));
    let job_span = job_table.as_ref().map_or(0..0, |(_, span)| span.clone());
    let header = match job_table {
        Some((table, _)) => {
            let params = Params { scope: &scope, values: &param_values };
            Header::read(cx, table, &params)
        }
        None => Header::default(),
    };
    let stem = match options.name.as_str() {
        "" => "job",
        name => name,
    };
    let job = header.name.clone().unwrap_or_else(|| stem.to_owned());
    let raw = raw_waves(cx, root, &job, &job_span);
    let orders: Vec<Order<'_, 't>> = raw.iter().map(|wave| wave.order(cx)).collect();
    let after = order::resolve(cx, &orders);
    let names: Vec<&str> = orders.iter().map(|order| order.name.as_str()).collect();
    let before = order::before(&names, &after);
    let mut builder = WaveBuilder {
        cx,
        scope: &scope,
        params: &param_values,
        options,
        job: header.workers,
        states: States::default(),
    };
    let mut waves = Vec::new();
    let mut spans = Vec::new();
    for (((number, raw), after), before) in (0..).map(WaveId).zip(&raw).zip(after).zip(&before) {
        let keys = raw.keys.or(builder.job);
        spans.push(keys.span().unwrap_or_else(|| raw.span.clone()));
        waves.push(builder.wave(number, raw, &keys, after, before));
    }
    let states = builder.states.list;
    let program = Program {
        job,
        params: params.clone(),
        states,
        waves,
        files: header.files,
        inputs: options.inputs.clone().or(header.inputs),
        store: header.store,
        results: header.results,
        keep_scratch: header.keep_scratch,
        param_values,
    };
    check_plans(cx, &program, &spans);
    if cx.error_count() == 0 {
        let span = header.workers.only_span().unwrap_or(job_span);
        wave::check_only(cx, &program, &span);
    }
    program
}

/// A wave as it stands in the text.
struct RawWave<'v, 't> {
    name: String,
    /// Where its name stands, or the wave.
    span: Range<usize>,
    keys: WorkerKeys<'v, 't>,
    after: Option<&'v Spot<'t>>,
    each: Option<&'v Spot<'t>>,
    setup: Option<&'v Spot<'t>>,
    steps: Option<&'v Spot<'t>>,
}

impl<'v, 't> RawWave<'v, 't> {
    fn order(&self, cx: &mut Context<'t>) -> Order<'v, 't> {
        Order {
            name: self.name.clone(),
            name_span: self.span.clone(),
            after: order::after(cx, self.after),
        }
    }
}

/// The waves of a job: its `[[wave]]`s, or the one that its `[[step]]`s make.
fn raw_waves<'v, 't>(
    cx: &mut Context<'t>,
    root: &'v DeTable<'t>,
    job: &str,
    job_span: &Range<usize>,
) -> Vec<RawWave<'v, 't>> {
    let example = Some("[[step]]\nrun = \"echo hello\"".to_owned());
    match (root.get("step"), root.get("wave")) {
        (Some(step), Some(_)) => {
            let message = "a job has either `[[step]]` or `[[wave]]`".to_owned();
            let cure = "write `[[wave.step]]` for the steps of a wave".to_owned();
            cx.error(step.span(), message, Some(cure));
            Vec::new()
        }
        (None, None) => {
            let message = "the job has no steps".to_owned();
            cx.error(job_span.clone(), message, example);
            Vec::new()
        }
        (steps @ Some(_), None) => vec![RawWave {
            name: job.to_owned(),
            span: job_span.clone(),
            keys: WorkerKeys::default(),
            after: None,
            each: None,
            setup: root.get("setup"),
            steps,
        }],
        (None, Some(waves)) => {
            if let Some(setup) = root.get("setup") {
                let message = "`[[setup]]` in a job with `[[wave]]`".to_owned();
                let cure = "write `[[wave.setup]]` in the wave that it is for".to_owned();
                cx.error(setup.span(), message, Some(cure));
            }
            let tables = cx.tables("wave", waves);
            if tables.is_empty() && waves.get_ref().is_array() {
                let message = "the job has no waves".to_owned();
                cx.error(waves.span(), message, None);
            }
            if let Some(beyond) = tables.get(WAVES_MAX) {
                let message = format!("the job has more than {WAVES_MAX} waves");
                let cure = "let one wave have many workers, or items".to_owned();
                cx.error(beyond.span(), message, Some(cure));
            }
            let tables = tables.into_iter().take(WAVES_MAX);
            tables.filter_map(|spot| raw_wave(cx, spot)).collect()
        }
    }
}

fn raw_wave<'v, 't>(cx: &mut Context<'t>, spot: &'v Spot<'t>) -> Option<RawWave<'v, 't>> {
    let table = spot.get_ref().as_table()?;
    cx.unknown_keys(table, keys::Place::Wave);
    let name = table.get("name");
    if name.is_none() {
        let cure = Some("name = \"…\"".to_owned());
        cx.error(spot.span(), "a wave without a `name`".to_owned(), cure);
    }
    let span = name.unwrap_or(spot).span();
    let name = name.and_then(|name| cx.name("name", name));
    if table.get("step").is_none() {
        let message = "a wave without steps".to_owned();
        let cure = Some("[[wave.step]]\nrun = \"echo hello\"".to_owned());
        cx.error(span.clone(), message, cure);
    }
    Some(RawWave {
        // A wave without a name is an error already; a name of its own keeps it apart.
        name: name.map_or_else(|| format!("wave at byte {}", span.start), str::to_owned),
        span,
        keys: WorkerKeys::of(table),
        after: table.get("after"),
        each: table.get("each"),
        setup: table.get("setup"),
        steps: table.get("step"),
    })
}

/// Builds one wave after the other.
struct WaveBuilder<'c, 'v, 't> {
    cx: &'c mut Context<'t>,
    scope: &'c Scope<'c>,
    params: &'c [Value],
    options: &'c Options,
    job: WorkerKeys<'v, 't>,
    states: States,
}

impl<'v, 't> WaveBuilder<'_, 'v, 't> {
    fn wave(
        &mut self,
        wave: WaveId,
        raw: &RawWave<'v, 't>,
        keys: &WorkerKeys<'v, 't>,
        after: Vec<WaveId>,
        before: &[String],
    ) -> Wave {
        self.check_counts(raw, keys);
        let known =
            Known { params: self.scope, values: self.params, before, options: self.options };
        let workers = Workers::read(self.cx, keys, &known);
        let each = raw.each.is_some_and(|each| self.each(each, raw.after, &workers));
        let lists: Vec<_> = raw.setup.into_iter().chain(raw.steps).collect();
        let (vars, infos) = (variables::variables(&lists), variables::infos(&lists));
        let has_groups = workers.group_size.is_some();
        let scope = self.scope.clone().machine(workers.names, workers.columns(), &vars);
        let scope = scope.of_wave(&infos, has_groups).counted(!each || workers.workers.is_some());
        let setup_scope = self.scope.clone().setup(&vars).of_wave(&infos, has_groups);
        let setup = raw.setup.filter(|setup| self.allows_setup(setup, &workers));
        let mut reader = StepReader {
            cx: &mut *self.cx,
            wave,
            states: &mut self.states,
            vars: &vars,
            infos: &infos,
            barriers: Barriers::new(variables::barriers(&lists)),
            params: self.params,
            reads_output: false,
            slots: 0,
            lanes: vec![LaneDef::main()],
            backgrounds: Backgrounds::default(),
            gotos: Gotos::default(),
        };
        let mut read = |steps: Option<&Spot<'t>>, scope: &Scope<'_>| {
            steps.map_or_else(Vec::new, |steps| reader.read(steps, scope, &raw.name))
        };
        let (setup, steps) = (read(setup, &setup_scope), read(raw.steps, &scope));
        let (awaits, barriers) = (reader.check_awaits(), reader.check_barriers(&workers, each));
        let (reads_output, slots, lanes) = (reader.reads_output, reader.slots, reader.lanes);
        let (setup_outline, outline) = (lower::outline(&setup), lower::outline(&steps));
        let mut lowering = Lowering::new(wave, &self.states, awaits);
        let setup = (!setup.is_empty()).then(|| lowering.program(setup));
        let entry = lowering.program(steps);
        Wave {
            name: raw.name.clone(),
            after,
            each,
            workers: workers.workers,
            items: workers.items,
            at_once: workers.at_once,
            max_workers: workers.max_workers,
            only: workers.only,
            keep: workers.keep,
            group_size: workers.group_size,
            timeout: workers.timeout,
            connect_timeout: workers.connect_timeout,
            nodes: lowering.nodes,
            lanes,
            entry,
            setup,
            slots,
            vars,
            infos,
            barriers,
            reads_output,
            outline,
            setup_outline,
        }
    }

    /// Notes a wave of which nothing says how many workers it has.
    fn check_counts(&mut self, raw: &RawWave<'v, 't>, keys: &WorkerKeys<'v, 't>) {
        let is_misspelt = self.cx.is_meant("workers") || self.cx.is_meant("items");
        if !keys.is_complete() && !is_misspelt {
            let message = format!("wave `{}` has neither `workers` nor `items`", raw.name);
            let cure = "say how many: workers = 4, workers = \"cores\", \
                        or what to work on: items = \"in:*.png\"";
            self.cx.error(raw.span.clone(), message, Some(cure.to_owned()));
        }
    }

    fn each(&mut self, value: &Spot<'t>, after: Option<&Spot<'t>>, workers: &Workers) -> bool {
        let each = self.cx.boolean("each", value).unwrap_or(false);
        if each {
            let after = after.map_or_else(Vec::new, order::names);
            wave::check_each(self.cx, value, &after, workers.items.as_ref());
        }
        each
    }

    /// `setup` goes with a queue of items.
    fn allows_setup(&mut self, setup: &Spot<'t>, workers: &Workers) -> bool {
        let is_queue = workers.workers.is_some() && workers.names != ItemNames::None;
        if !is_queue {
            let message = "`setup` where each worker has one item at most".to_owned();
            let cure = "put its steps before the others, or give both `workers` and `items`";
            self.cx.error(setup.span(), message, Some(cure.to_owned()));
        }
        is_queue
    }
}

/// Plans what can be planned before the run, so that numbers out of bounds are errors of the file.
fn check_plans(cx: &mut Context<'_>, program: &Program, spans: &[Range<usize>]) {
    for ((id, wave), span) in program.waves().zip(spans) {
        let is_known = wave.workers.is_some() || wave.items.is_some();
        let result = match program.look(id).map(drop) {
            Ok(()) if is_known && !wave.uses_cores() => program.plan(id, 1, None).map(drop),
            other => other,
        };
        match result {
            Ok(())
            | Err(PlanError::NotListed { .. } | PlanError::AtRunTime(_) | PlanError::NoWave(_)) => {
            }
            Err(error) => cx.error(span.clone(), error.to_string(), None),
        }
    }
}
