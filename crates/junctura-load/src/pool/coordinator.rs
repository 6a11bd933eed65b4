//! The coordinator of a load: starts a server if need be and the processes, watches them, adds up what they report.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use junctura::{Code, Error, Pool, Result};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::program::ProgramWords;

use crate::PROCESSES_MAX;
use crate::history;
use crate::messages::{CoordinatorOrder, Word};
use crate::pool::kills::UnreportedKills;
use crate::pool::memory::MemoryWatch;
use crate::pool::plan::{WorkerPlan, WorkerRole};
use crate::pool::report::{LoadReport, ServerMemory, WorkerFigures};
use crate::pool::workers::producer;
use crate::pool::{PoolLoadArguments, RetentionEnd, TouchMode};
use crate::process::{LoadProcess, ProcessTask, died};
use crate::stamp::{self, now_ns};

/// Time for every process to receive the start before it.
const START_DELAY_NS: u64 = 200_000_000;

pub(crate) fn run(arguments: &PoolLoadArguments) -> Result<()> {
    let arguments = arguments.checked()?;
    if let Some(directory) = &arguments.history {
        std::fs::create_dir_all(directory).map_err(|error| io(directory, &error))?;
    }
    let payload_bytes = arguments.payload_bytes()?;
    let server = match &arguments.pool {
        Some(_) => None,
        None => Some(OwnServer::start(&arguments, payload_bytes)?),
    };
    let url = server.as_ref().map_or_else(
        || arguments.pool.clone().unwrap_or_default(),
        |server| server.url.clone(),
    );
    let pool = Pool::builder().url(&url).name("load").open()?;
    let report = LoadRun::new(&arguments, &pool, payload_bytes)?.go(&pool, payload_bytes)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report).unwrap_or_default())?;
    } else {
        writeln!(out, "{}", report.table())?;
    }
    out.flush()?;
    let redelivered = if arguments.groups > 0 { 0 } else { report.redelivered };
    if report.lost + report.duplicates + report.damaged + redelivered > 0 {
        let cause = format!(
            "{} lost, {} twice, {} damaged",
            report.lost, report.duplicates, report.damaged
        );
        return Err(Error::new(Code::Corrupt, "load", cause));
    }
    Ok(())
}

impl PoolLoadArguments {
    /// The arguments, if they make a load: every producer and consumer has a member.
    fn checked(&self) -> Result<Self> {
        let mut arguments = self.clone();
        arguments.fields.members = arguments
            .fields
            .members
            .max(arguments.producers)
            .max(arguments.consumers)
            .max(arguments.followers);
        let counts = [
            ("members", arguments.fields.members),
            ("steps", arguments.fields.steps),
            ("levels", arguments.fields.levels),
            ("params", arguments.fields.params),
            ("producers", arguments.producers),
            ("consumers", arguments.consumers),
            ("window", arguments.window),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::new(Code::InvalidArgument, format!("--{name}"), "at least one"));
        }
        let kills = [
            arguments.kills.producers,
            arguments.kills.consumers,
            arguments.kills.members,
        ];
        let processes = [
            arguments.producers,
            arguments.consumers,
            arguments.followers,
            arguments.cuts,
        ];
        let processes: u64 = processes.into_iter().chain(kills).map(u64::from).sum();
        if processes > u64::from(PROCESSES_MAX) {
            let cause =
                format!("{processes} processes in all, with those that replace others; at most {PROCESSES_MAX}");
            return Err(Error::new(
                Code::LimitExceeded,
                "--producers, --consumers, --followers, --kills, --cuts",
                cause,
            ));
        }
        if arguments.groups > 0 && arguments.consumers < arguments.groups + u32::from(arguments.kills.members > 0) {
            let cause = "each group needs a member that stays, and one more is needed where members are killed";
            return Err(Error::new(Code::InvalidArgument, "--consumers", cause));
        }
        if arguments.kills.members > 0 && arguments.groups == 0 {
            let cause = "there are no members to kill without --groups";
            return Err(Error::new(Code::InvalidArgument, "--kills", cause));
        }
        if arguments.kills.consumers > 0 && arguments.sharers() == 0 {
            let cause = "with --groups, those in no group are the --followers, and there are none";
            return Err(Error::new(Code::InvalidArgument, "--kills", cause));
        }
        if arguments.followers > 0 && arguments.groups == 0 {
            let cause = "without --groups all consumers are in no group";
            return Err(Error::new(Code::InvalidArgument, "--followers", cause));
        }
        if arguments.retention == RetentionEnd::Group && (arguments.groups > 0 || arguments.may_lose_some()) {
            let cause = "a group of each consumer excludes --groups and --kills";
            return Err(Error::new(Code::InvalidArgument, "--retention", cause));
        }
        if arguments.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            return Err(Error::new(
                Code::InvalidArgument,
                "--rate",
                "objects per second, more than none",
            ));
        }
        Ok(arguments)
    }

    /// Whether processes end during the load.
    fn may_lose_some(&self) -> bool {
        self.kills.total() + self.cuts > 0
    }

    /// Where processes of this kind find the pool, if it is elsewhere than for others.
    fn url_for(&self, role: WorkerRole) -> Option<&str> {
        match role {
            WorkerRole::Consumer => self.consume_from.as_deref(),
            WorkerRole::Producer => self.offer_to.as_deref(),
            WorkerRole::Observer | WorkerRole::Subscriber => None,
        }
    }

    pub(crate) fn plan(&self, role: WorkerRole, index: u32, url: &str, payload_bytes: usize) -> WorkerPlan {
        let members = if self.groups > 0 { self.consumers } else { 0 };
        let is_member = role == WorkerRole::Consumer && index < members;
        let is_follower = role == WorkerRole::Consumer && !is_member;
        let stays = is_member && index < self.groups;
        WorkerPlan {
            role,
            index,
            // A process that stays to the end must not lose its connection.
            url: self.url_for(role).filter(|_| !stays).unwrap_or(url).to_owned(),
            space: self.fields.space(),
            producers: self.producers,
            producers_in_all: self.producers + self.kills.producers + self.cuts,
            sharers: self.sharers(),
            share: if is_follower { index - members } else { index },
            life: 0,
            groups: self.groups,
            group: is_member.then(|| index % self.groups),
            retention: self.retention,
            closes: stays || is_follower && self.ends_by_draining(),
            payload_bytes,
            grib: self.grib.clone(),
            mode: self.mode,
            window: self.window,
            bundle: self.bundle,
            rate: self.rate,
            work_ns: self.work.as_nanos() as u64,
            takes_ahead: false,
            warmup_ns: self.warmup.as_nanos() as u64,
            duration_ns: self.duration.as_nanos() as u64,
            subscriptions: self.subscriptions,
            history: self.history.clone(),
        }
    }

    /// Consumers that are in no group.
    fn sharers(&self) -> u32 {
        if self.groups > 0 {
            self.followers
        } else {
            self.consumers
        }
    }

    /// Whether consumers take the remaining objects at the end, since their number is unknown.
    fn ends_by_draining(&self) -> bool {
        self.groups > 0 || self.may_lose_some()
    }

    fn payload_bytes(&self) -> Result<usize> {
        let bytes = match (&self.grib, self.mode) {
            (_, TouchMode::Metadata) => stamp::BYTES_MIN,
            (Some(path), _) => producer::first_message(path)?.len(),
            (None, _) => self.fields.size as usize,
        };
        Ok(bytes.max(stamp::BYTES_MIN))
    }
}

/// A server of this run alone.
struct OwnServer {
    process: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl OwnServer {
    fn start(arguments: &PoolLoadArguments, payload_bytes: usize) -> Result<Self> {
        let directory = tempfile::tempdir().map_err(|error| io(Path::new("temporary directory"), &error))?;
        let url = format!("unix:{}", directory.path().join("load.sock").display());
        let budget = arguments
            .plan(WorkerRole::Producer, 0, &url, payload_bytes)
            .budget_bytes();
        let mut command = arguments.program.command()?;
        command.args([
            "pool",
            "serve",
            "--pool",
            &url,
            "--schema",
            "mars",
            "--budget",
            &budget.to_string(),
        ]);
        if let Some(bytes) = arguments.inline_max {
            command.args(["--inline-max", &bytes.to_string()]);
        }
        if let Some(spin) = arguments.spin {
            command.args(["--spin", &format!("{}us", spin.as_micros())]);
        }
        let mut process = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| io(Path::new("junctura pool serve"), &error))?;
        let mut said = String::new();
        if let Some(stderr) = process.stderr.take() {
            let mut lines = BufReader::new(stderr);
            while !said.contains("serving") && lines.read_line(&mut said).is_ok_and(|bytes| bytes > 0) {}
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
        }
        if !said.contains("serving") {
            return Err(Error::new(
                Code::Unavailable,
                "junctura pool serve",
                said.trim().to_owned(),
            ));
        }
        Ok(Self {
            process,
            url,
            _directory: directory,
        })
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

/// The processes of a run.
pub(crate) struct LoadRun<'a> {
    pub(crate) arguments: &'a PoolLoadArguments,
    pub(crate) workers: Vec<LoadWorker>,
    words: Receiver<(usize, Option<Word>)>,
    /// For those that are started later.
    pub(crate) sender: Sender<(usize, Option<Word>)>,
    /// When the load begins, once that is settled.
    pub(crate) at_ns: Option<u64>,
    /// Where processes are killed.
    pub(crate) deaths: Option<UnreportedKills>,
    pub(crate) killed: u64,
    /// The consumers whose work has ended; one that replaces such a consumer has to know it, too.
    pub(crate) dismissed: Vec<fn(&LoadWorker) -> bool>,
}

pub(crate) struct LoadWorker {
    pub(crate) plan: WorkerPlan,
    pub(crate) is_ready: bool,
    pub(crate) process: LoadProcess,
    pub(crate) done: u64,
    pub(crate) figures: Option<WorkerFigures>,
}

impl<'a> LoadRun<'a> {
    fn new(arguments: &'a PoolLoadArguments, pool: &Pool, payload_bytes: usize) -> Result<Self> {
        let (url, budget_bytes) = (pool.url(), ServerFigures::of(pool)?.budget_bytes);
        let plan = |role, index| {
            let plan = arguments.plan(role, index, url, payload_bytes);
            WorkerPlan {
                takes_ahead: !arguments.may_lose_some() && plan.budget_bytes() <= budget_bytes,
                ..plan
            }
        };
        let mut plans = Vec::new();
        if arguments.subscriptions > 0 {
            plans.push(plan(WorkerRole::Subscriber, 0));
        }
        if arguments.may_lose_some() && arguments.history.is_some() {
            plans.push(plan(WorkerRole::Observer, 0));
        }
        let consumers = arguments.consumers + arguments.followers;
        plans.extend((0..consumers).map(|index| plan(WorkerRole::Consumer, index)));
        plans.extend((0..arguments.producers).map(|index| plan(WorkerRole::Producer, index)));
        // Before any process connects: one may be cut, and leave, before the load begins.
        let deaths = arguments.may_lose_some().then(|| UnreportedKills::watch(pool));
        let deaths = deaths.transpose()?;
        let (sender, words) = channel();
        let workers = plans
            .into_iter()
            .enumerate()
            .map(|(at, plan)| LoadWorker::start(&arguments.program, at, plan, &sender))
            .collect::<Result<_>>()?;
        Ok(Self {
            arguments,
            workers,
            words,
            sender,
            at_ns: None,
            deaths,
            killed: 0,
            dismissed: Vec::new(),
        })
    }

    fn go(mut self, pool: &Pool, payload_bytes: usize) -> Result<LoadReport> {
        while self.workers.iter().any(LoadWorker::is_awaited) {
            self.hear()?;
        }
        let at_ns = now_ns() + START_DELAY_NS;
        let before = ServerFigures::of(pool)?;
        self.tell(|_, _| true, &CoordinatorOrder::Start { at_ns })?;
        self.at_ns = Some(at_ns);
        let progress = self.progress();
        self.kill_some()?;
        let mut memory = MemoryWatch::new(pool, at_ns, self.arguments);
        self.await_reports_and(
            |worker| worker.plan.role == WorkerRole::Producer,
            &progress,
            Some(&mut memory),
        )?;
        let producers = self.reports(WorkerRole::Producer, &progress)?;
        if self.arguments.ends_by_draining() {
            self.drain(&progress)?;
        } else {
            self.tell_what_to_expect(&producers)?;
        }
        let consumers = self.reports(WorkerRole::Consumer, &progress)?;
        let after = ServerFigures::of(pool)?;
        let watches = |worker: &LoadWorker| matches!(worker.plan.role, WorkerRole::Subscriber | WorkerRole::Observer);
        self.tell(|_, worker| watches(worker), &CoordinatorOrder::End)?;
        self.await_reports(watches, &progress)?;
        let subscribers = self.reports(WorkerRole::Subscriber, &progress)?;
        progress.finish_and_clear();
        let mut report = LoadReport::default();
        report.fill(
            &producers,
            &consumers,
            self.arguments.duration.as_secs_f64(),
            payload_bytes,
        );
        report.lost += self.end_groups(pool)? + after.left_since(&before, self.arguments);
        report.killed = self.killed;
        report.events = subscribers.iter().map(|figures| figures.events).sum();
        let objects = (after.offered - before.offered).max(1);
        report.server_cpu_us_per_object = (after.cpu_ns - before.cpu_ns) as f64 / objects as f64 / 1e3;
        report.peak_rss_mib = after.peak_rss_mib;
        report.memory = memory.finish()?;
        report.payload_touched = match self.arguments.mode {
            TouchMode::Metadata => "a stamp of 64 bytes",
            TouchMode::Transfer => "first and last cache line touched",
            TouchMode::Touch => "every byte written and read",
            TouchMode::Verify => "every byte written and compared",
        };
        report.run = self.arguments.described(payload_bytes);
        for worker in &mut self.workers {
            worker.process.wait();
        }
        let is_shared = self.arguments.sharers() > 1;
        if let Some(directory) = self.arguments.history.as_deref().filter(|_| is_shared) {
            history::name_wanted_keys(directory, self.workers.iter().map(|worker| &worker.plan))?;
        }
        Ok(report)
    }

    /// Waits for the next report of a process.
    pub(crate) fn hear(&mut self) -> Result<()> {
        let heard = self.words.recv().ok();
        self.take_in(heard)
    }

    /// As [`LoadRun::hear`], and waits no longer than this.
    pub(crate) fn hear_within(&mut self, time: Duration) -> Result<()> {
        match self.words.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            heard => self.take_in(heard.ok()),
        }
    }

    fn take_in(&mut self, heard: Option<(usize, Option<Word>)>) -> Result<()> {
        let (at, word) = heard.ok_or_else(died)?;
        let may_be_cut = self.may_be_cut(at);
        // The network may be cut before it has connected; its replacement waits until the network is back.
        let is_cut = |code: &str, worker: &LoadWorker| {
            let is_first = self.arguments.cuts > 0 && worker.plan.life == 0 && !worker.is_ready;
            code == Code::Disconnected.name() || is_first && code == Code::Unavailable.name()
        };
        let worker = &mut self.workers[at];
        match word {
            None if worker.figures.is_none() => return Err(died()),
            Some(Word::Failed { code, .. }) if may_be_cut && is_cut(&code, worker) => self.replace(at)?,
            Some(Word::Failed { code, text }) => {
                return Err(Error::new(
                    Code::from_name(&code).unwrap_or(Code::Io),
                    worker.plan.name(),
                    text,
                ));
            }
            Some(Word::Ready) => worker.is_ready = true,
            Some(Word::Progress { done }) => worker.done = done,
            Some(Word::Report(figures)) => worker.figures = Some(*figures),
            None => {}
        }
        Ok(())
    }

    fn reports(&mut self, role: WorkerRole, progress: &ProgressBar) -> Result<Vec<WorkerFigures>> {
        self.await_reports(|worker| worker.plan.role == role, progress)?;
        let of_role = self.workers.iter().filter(|worker| worker.plan.role == role);
        Ok(of_role.filter_map(|worker| worker.figures.clone()).collect())
    }

    pub(crate) fn await_reports(&mut self, of: impl Fn(&LoadWorker) -> bool, progress: &ProgressBar) -> Result<()> {
        self.await_reports_and(of, progress, None)
    }

    fn await_reports_and(
        &mut self,
        of: impl Fn(&LoadWorker) -> bool,
        progress: &ProgressBar,
        mut memory: Option<&mut MemoryWatch<'_>>,
    ) -> Result<()> {
        while self.workers.iter().any(|worker| of(worker) && worker.figures.is_none()) {
            let next = memory.as_deref_mut().map(MemoryWatch::look).transpose()?.flatten();
            match next {
                Some(wait) => self.hear_within(wait)?,
                None => self.hear()?,
            }
            let received = self
                .workers
                .iter()
                .filter(|w| w.plan.role == WorkerRole::Consumer)
                .map(|w| w.done)
                .sum();
            progress.set_position(received);
        }
        Ok(())
    }

    fn tell_what_to_expect(&mut self, producers: &[WorkerFigures]) -> Result<()> {
        let consumers = self
            .workers
            .iter_mut()
            .filter(|worker| worker.plan.role == WorkerRole::Consumer);
        for (consumer, worker) in consumers.enumerate() {
            let by_producer = producers.iter().map(|figures| figures.done[consumer]).collect();
            worker.process.obey(&CoordinatorOrder::Expect { by_producer })?;
        }
        Ok(())
    }

    /// Sends an order to some of the processes that still run.
    pub(crate) fn tell(&mut self, whom: impl Fn(usize, &LoadWorker) -> bool, order: &CoordinatorOrder) -> Result<()> {
        for (at, worker) in self.workers.iter_mut().enumerate() {
            if worker.figures.is_none() && whom(at, worker) {
                worker.process.obey(order)?;
            }
        }
        Ok(())
    }

    fn progress(&self) -> ProgressBar {
        let progress = if self.arguments.json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        let style = ProgressStyle::with_template("{spinner} {elapsed} {human_pos} objects received, {rate}/s");
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
        };
        progress.set_style(style.map_or_else(
            |_| ProgressStyle::default_spinner(),
            |style| style.with_key("rate", rate),
        ));
        progress.enable_steady_tick(Duration::from_millis(200));
        progress
    }
}

impl LoadWorker {
    /// Whether it has yet to connect.
    fn is_awaited(&self) -> bool {
        !self.is_ready && self.figures.is_none()
    }

    pub(crate) fn start(
        program: &ProgramWords,
        at: usize,
        plan: WorkerPlan,
        words: &Sender<(usize, Option<Word>)>,
    ) -> Result<Self> {
        let process = LoadProcess::start(program, at, &ProcessTask::Pool(plan.clone()), words)?;
        Ok(Self {
            plan,
            is_ready: false,
            process,
            done: 0,
            figures: None,
        })
    }
}

/// The server's own figures.
pub(crate) struct ServerFigures {
    cpu_ns: u64,
    visible: u64,
    budget_bytes: u64,
    offered: u64,
    peak_rss_mib: f64,
    pub(crate) memory: ServerMemory,
}

impl ServerFigures {
    pub(crate) fn of(pool: &Pool) -> Result<Self> {
        let stat: serde_json::Value = serde_json::from_str(&pool.stat()?)
            .map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
        let number = |at: &str| stat.pointer(at).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let status = std::fs::read_to_string(format!("/proc/{}/status", number("/server/pid"))).unwrap_or_default();
        let kib = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_ascii_whitespace().next()?.parse::<f64>().ok()
        };
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        Ok(Self {
            cpu_ns: number("/server/cpu_ns"),
            visible: number("/objects/visible"),
            budget_bytes: number("/memory/budget_bytes"),
            offered: number("/totals/offered"),
            peak_rss_mib: kib("VmHWM:").unwrap_or(0.0) / 1024.0,
            memory: ServerMemory {
                rss_mib: mib(number("/server/rss_bytes")),
                rss_anon_mib: kib("RssAnon:").unwrap_or(0.0) / 1024.0,
                used_mib: mib(number("/memory/used_bytes")),
            },
        })
    }

    /// Objects of a load that were not received, or that stayed though all their consumers released them.
    fn left_since(&self, before: &Self, arguments: &PoolLoadArguments) -> u64 {
        let takes_all = arguments.ends_by_draining() || arguments.retention == RetentionEnd::Group;
        let is_alone = arguments.pool.is_none() && takes_all;
        if is_alone {
            self.visible.saturating_sub(before.visible)
        } else {
            0
        }
    }
}

impl PoolLoadArguments {
    fn described(&self, payload_bytes: usize) -> serde_json::Value {
        serde_json::json!({
            "members": self.fields.members, "steps": self.fields.steps, "levels": self.fields.levels, "params": self.fields.params,
            "payload_bytes": payload_bytes, "producers": self.producers, "consumers": self.consumers,
            "groups": self.groups, "followers": self.followers, "kills": self.kills, "cuts": self.cuts, "seed": self.seed,
            "retention": self.retention, "work_us": self.work.as_micros() as u64, "mode": self.mode, "window": self.window, "subscriptions": self.subscriptions, "bundle": self.bundle, "rate": self.rate,
            "duration_s": self.duration.as_secs_f64(), "warmup_s": self.warmup.as_secs_f64(),
            "pool": self.pool.as_deref().unwrap_or("an own server"),
            "spin_us": self.spin.map(|spin| spin.as_micros() as u64),
        })
    }
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, path.display().to_string(), error.to_string())
}
