//! A coordinator for tests: real TLS and the real protocol over loopback, nothing decided. And the
//! real worker and guard processes.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use musec_protocol::{
    ALPN, Action, Answer, Command, CommandId, FrameDecoder, FromWorker, Hello, LaunchId,
    PREAMBLE_BYTES, Preamble, Refusal, Reply, Run, RunId, Ticket, ToWorker, VERSION, Welcome,
    begin_frame, end_frame,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Coordinator {
    listener: TcpListener,
    authority: CertifiedIssuer<'static, KeyPair>,
    config: Arc<ServerConfig>,
    run: RunId,
    /// Holds `scratch`, `store` and `inputs`.
    pub(crate) folder: TempDir,
}

impl Coordinator {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        for name in ["scratch", "store", "inputs"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mut run = [0; 16];
        default_provider().secure_random.fill(&mut run).expect("random");
        let run = RunId(run);
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let (certificate, key) = sign(&authority, Ticket::coordinator_name(run));
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("a root");
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .expect("a verifier");
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate], PrivatePkcs8KeyDer::from(key).into())
            .expect("a certificate");
        config.alpn_protocols = vec![ALPN.to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { listener, authority, config: Arc::new(config), run, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn welcome(&self) -> Welcome {
        let url = |name: &str| format!("file://{}/", self.path(name).display());
        Welcome { store_url: url("store"), inputs_url: url("inputs"), ..Welcome::default() }
    }

    pub(crate) fn ticket(&self, guard_socket: &Path) -> Ticket {
        let launch = LaunchId(0);
        let (certificate, key) = sign(&self.authority, Ticket::attempt_name(self.run, launch));
        Ticket {
            run: self.run,
            launch,
            addresses: vec![self.listener.local_addr().expect("an address").to_string()],
            ca_der: self.authority.der().to_vec(),
            certificate_der: certificate.to_vec(),
            key_pkcs8: key,
            scratch_root: self.path("scratch").into_os_string().into_encoded_bytes(),
            guard_socket: guard_socket.as_os_str().as_encoded_bytes().to_vec(),
        }
    }

    /// The folder of worker 0, attempt 0.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path("scratch").join("w0.0")
    }

    pub(crate) fn accept(&self, welcome: Welcome) -> Session {
        let mut session = self.greet(None);
        session.say(&ToWorker::Welcome(welcome));
        session
    }

    /// Takes a connection, and closes it without a word.
    pub(crate) fn break_off(&self) {
        drop(self.listener.accept().expect("a worker"));
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        let mut session = self.greet(Some(refusal));
        let mut rest = Vec::new();
        // However the worker ends the connection is its own affair.
        drop(session.stream.read_to_end(&mut rest));
    }

    fn greet(&self, refusal: Option<Refusal>) -> Session {
        let (tcp, _) = self.listener.accept().expect("a worker");
        tcp.set_nodelay(true).expect("no delay");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let tls = ServerConnection::new(Arc::clone(&self.config)).expect("TLS");
        let mut stream = StreamOwned::new(tls, tcp);
        let mut preamble = [0; PREAMBLE_BYTES];
        stream.read_exact(&mut preamble).expect("a preamble");
        let preamble = Preamble::from_bytes(&preamble).expect("a preamble");
        assert_eq!(preamble, Preamble::new(self.run, LaunchId(0)));
        let mut session = Session { stream, decoder: FrameDecoder::default(), hello: None, id: 0 };
        match session.hear() {
            FromWorker::Hello(hello) => session.hello = Some(hello),
            other => panic!("instead of a hello: {other:?}"),
        }
        let answer = Answer { version: VERSION, refusal };
        session.stream.write_all(&answer.to_bytes()).expect("an answer");
        session
    }
}

fn sign(
    authority: &CertifiedIssuer<'static, KeyPair>,
    name: String,
) -> (CertificateDer<'static>, Vec<u8>) {
    let params = CertificateParams::new(vec![name]).expect("names");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    (certificate.der().clone(), key.serialize_der())
}

pub(crate) struct Session {
    stream: StreamOwned<ServerConnection, TcpStream>,
    decoder: FrameDecoder,
    hello: Option<Hello>,
    id: u64,
}

impl Session {
    pub(crate) fn hello(&self) -> &Hello {
        self.hello.as_ref().expect("said")
    }

    pub(crate) fn say(&mut self, message: &ToWorker) {
        let mut bytes = Vec::new();
        let frame = begin_frame(&mut bytes);
        message.encode(&mut bytes);
        end_frame(&mut bytes, frame).expect("short");
        self.stream.write_all(&bytes).expect("sent");
        self.stream.flush().expect("sent");
    }

    pub(crate) fn hear(&mut self) -> FromWorker {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("a frame") {
                return FromWorker::decode(frame).expect("a message");
            }
            let bytes = self.stream.read(&mut buffer).expect("bytes");
            assert!(bytes > 0, "the worker has gone");
            self.decoder.push(&buffer[..bytes]);
        }
    }

    /// Sends a command without waiting.
    pub(crate) fn send(&mut self, action: Action) -> CommandId {
        self.send_command(action, false, None)
    }

    pub(crate) fn send_command(
        &mut self,
        action: Action,
        background: bool,
        timeout_ms: Option<u64>,
    ) -> CommandId {
        let id = CommandId(self.id);
        self.id += 1;
        let command = Command { id, lane: Vec::new(), background, timeout_ms, action };
        self.say(&ToWorker::Command(command));
        id
    }

    /// The next reply; whatever it was, it must satisfy the laws of stamps.
    pub(crate) fn reply(&mut self) -> Reply {
        loop {
            if let FromWorker::Reply(reply) = self.hear() {
                check(&reply);
                return reply;
            }
        }
    }

    /// One command and its reply.
    pub(crate) fn ask(&mut self, action: Action) -> Reply {
        let id = self.send(action);
        let reply = self.reply();
        assert_eq!(reply.id, id);
        reply
    }

    pub(crate) fn ask_within(&mut self, action: Action, timeout_ms: u64) -> Reply {
        let id = self.send_command(action, false, Some(timeout_ms));
        let reply = self.reply();
        assert_eq!(reply.id, id);
        reply
    }

    /// Whether the worker closed TLS in order.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }
}

fn check(reply: &Reply) {
    let stamps = [reply.received, reply.started, reply.finished, reply.encoded];
    assert!(stamps.is_sorted(), "{reply:?}");
    let mut last = reply.started;
    for phase in &reply.phases {
        assert!(last <= phase.from && phase.from <= phase.to, "{reply:?}");
        last = phase.to;
    }
    assert!(last <= reply.finished, "{reply:?}");
    for object in &reply.objects {
        let stamps =
            [reply.started, object.asked, object.first_byte, object.last_byte, object.done];
        assert!(stamps.is_sorted() && object.done <= reply.finished, "{reply:?}");
    }
}

/// `/bin/sh -c text`.
pub(crate) fn shell(text: &str) -> Run {
    let argv = ["/bin/sh", "-c", text].map(|word| word.as_bytes().to_vec()).to_vec();
    Run { argv, ..Run::default() }
}

/// A process of this crate's binary; killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.0.try_wait().expect("waited");
            status.is_some()
        });
        status.expect("ended")
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let killed = Process::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(killed.success());
    }
}

pub(crate) fn worker(ticket: &Ticket) -> Running {
    let child = Process::new(env!("CARGO_BIN_EXE_musec-worker"))
        .env(Ticket::VARIABLE, ticket.to_text())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a worker");
    Running(child)
}

/// A guard, as a launcher starts it.
pub(crate) fn guard(coordinator: &Coordinator) -> (Running, PathBuf) {
    let root = coordinator.path("scratch");
    let socket = root.join("guard");
    let child = Process::new(env!("CARGO_BIN_EXE_musec-worker"))
        .arg("guard")
        .args([&socket, &root])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a guard");
    eventually("the guard listens", || socket.exists());
    (Running(child), socket)
}

pub(crate) fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < PATIENCE, "it never came to pass that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is there and no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// The number in a file that a test's shell command writes with a line's end.
pub(crate) fn number_in(path: &Path) -> u32 {
    let mut number = None;
    eventually(&format!("{} holds a number", path.display()), || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        number = text.strip_suffix('\n').and_then(|text| text.parse().ok());
        number.is_some()
    });
    number.expect("a number")
}
