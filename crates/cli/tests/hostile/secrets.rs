//! Where keys are not: arguments, the environment of user code, scratch folders, journal, logs, any
//! file of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use musec_protocol::Ticket;

use crate::stage::ticket_of;
use crate::support::{Place, text, wait_for};

const WORKERS: usize = 2;

/// A P-256 private key within PKCS #8 (RFC 5915): version 1, then an octet string of 32 bytes.
const KEY_FOLLOWS: [u8; 5] = [2, 1, 1, 4, 32];

/// All the shapes in which a secret would be found in some bytes.
struct Secret(Vec<Vec<u8>>);

impl Secret {
    fn of(ticket: &Ticket) -> Self {
        let key = &ticket.key_pkcs8;
        let at = key.windows(KEY_FOLLOWS.len()).position(|window| window == KEY_FOLLOWS);
        let at = at.expect("a key of P-256") + KEY_FOLLOWS.len();
        let scalar = &key[at..at + 32];
        let mut shapes = vec![
            scalar.to_vec(),
            HEXLOWER.encode(scalar).into_bytes(),
            HEXUPPER.encode(scalar).into_bytes(),
            ticket.to_text().into_bytes(),
        ];
        // In a longer text of base 64 it begins at one of three places; what depends on its
        // neighbours is left out.
        for skipped in 0..3 {
            let whole = &scalar[skipped..skipped + 27];
            shapes.push(BASE64.encode(whole).into_bytes());
            shapes.push(BASE64URL.encode(whole).into_bytes());
        }
        Self(shapes)
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let has = |shape: &Vec<u8>| bytes.windows(shape.len()).any(|window| window == shape);
        self.0.iter().any(has)
    }
}

/// All files below a folder; what vanishes meanwhile is left out.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

fn assert_in_no_file(secrets: &[Secret], folder: &Path) {
    let files = files(folder);
    for name in ["journal.musec", "outputs.musec", "workers.log", "musec.log", "environment"] {
        assert!(files.iter().any(|path| path.ends_with(name)), "no {name} in {files:?}");
    }
    for path in files {
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!secrets.iter().any(|secret| secret.is_in(&bytes)), "{}", path.display());
    }
}

fn proc(pid: u32, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

/// Waits for the run's end, or fails and says what is there.
fn ended(place: &Place, musec: &mut Child) {
    let status = wait_for(Duration::from_secs(60), || musec.try_wait().expect("waited"));
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{:?}", place.processes());
}

#[test]
fn keys_are_in_no_argument_no_environment_of_user_code_no_file_and_no_log() {
    // The commands' outputs are kept, and the second one's failure repeats them.
    let place = Place::new(&format!(
        "[job]\nworkers = {WORKERS}\nkeep_scratch = true\n\
         [[step]]\nrun = \"env > environment; touch $STAGE/at.$MUSEC_WORKER; \
         until [ -e $STAGE/go ]; do sleep 0.02; done; cat environment\"\n\
         [[step]]\nrun = \"cat environment; ps axww; exit 3\"\n"
    ));
    let mut command = place.musec(&["-vv", "run", "job.toml"]);
    let log = fs::File::create(place.path("musec.log")).expect("a log");
    command.env("STAGE", place.path("")).env("MUSEC_LOG", "trace");
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    let mut musec = command.spawn().expect("musec starts");
    let at_work = wait_for(Duration::from_secs(60), || {
        (0..WORKERS).all(|worker| place.path(&format!("at.{worker}")).exists()).then_some(())
    });
    assert!(at_work.is_some(), "no work: {:?}", place.processes());
    let workers = place.processes_like(" worker");
    let secrets: Vec<Secret> =
        workers.iter().map(|pid| Secret::of(&ticket_of(*pid).expect("a ticket"))).collect();
    assert_eq!(secrets.len(), WORKERS);
    let mut of_users = 0;
    for (pid, line) in place.processes() {
        for secret in &secrets {
            assert!(!secret.is_in(&proc(pid, "cmdline")), "arguments of {line}");
            let is_worker = workers.contains(&pid);
            let knows = secret.is_in(&proc(pid, "environ"));
            assert!(is_worker || !knows, "environment of {line}");
        }
        of_users += usize::from(line.contains("cat environment"));
    }
    assert!(of_users >= WORKERS, "user code is running");
    fs::write(place.path("go"), "").expect("marked");
    assert_in_no_file(&secrets, &place.path(""));
    ended(&place, &mut musec);
    assert_in_no_file(&secrets, &place.path(""));
    let logs = text(&place.run(&["logs"]).stdout);
    assert!(logs.contains("MUSEC_WORKER=0") && !logs.contains(Ticket::VARIABLE), "{logs}");
}

#[test]
fn each_attempt_has_a_key_and_a_certificate_of_its_own() {
    let stage = crate::stage::Stage::new(0);
    let tickets = stage.stolen();
    assert_eq!(tickets.len(), WORKERS);
    assert_ne!(tickets[0].key_pkcs8, tickets[1].key_pkcs8);
    assert_ne!(tickets[0].certificate_der, tickets[1].certificate_der);
    assert_eq!(tickets[0].ca_der, tickets[1].ca_der, "of one run");
    stage.under(|_, _| ());
}
