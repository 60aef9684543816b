//! The floor: one thread that serves plain sockets with epoll and does nothing else. What it costs
//! a message, no coordinator on this machine can be below without batching.
//!
//! A message and its answer are as long as musec's `echo` and its reply are on the wire. No TLS, no
//! record, no decision.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::process::{cpu, open_files, per};
use crate::error::CliError;
use crate::output::print;

/// Bytes of a command on the wire: as `echo` with its TLS record.
const COMMAND_BYTES: usize = 33;

/// Bytes of a reply on the wire, likewise.
const REPLY_BYTES: usize = 58;

/// Events taken at a time.
const EVENTS_MAX: usize = 1024;

/// Bytes read at a time, as much as the coordinator's TLS reads.
const READ_BYTES: usize = 4 << 10;

fn socket_error(source: std::io::Error) -> CliError {
    CliError::Bench { what: "the plain-socket floor", source }
}

/// Serves `busy` of `workers` connections with `commands` messages each, one at a time, and prints
/// its CPU time for each.
pub(super) fn serve(workers: u32, commands: u64, busy: u32) -> Result<ExitCode, CliError> {
    open_files(u64::from(workers) + 64)?;
    serve_sockets(workers, commands, busy).map_err(socket_error).and_then(|text| {
        print(text)?;
        Ok(ExitCode::SUCCESS)
    })
}

fn serve_sockets(workers: u32, commands: u64, busy: u32) -> std::io::Result<String> {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    drop(print(format!("{}\n", listener.local_addr()?)));
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut peers = Vec::new();
    for number in 0..u64::from(workers) {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(&poll, &socket, EventData::new_u64(number), EventFlags::IN)?;
        peers.push((socket, commands, 0));
    }
    let (from, used) = (Instant::now(), cpu());
    for (socket, ..) in peers.iter_mut().take(busy as usize) {
        socket.write_all(&[1; COMMAND_BYTES])?;
    }
    let mut left = u64::from(busy) * commands;
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut buffer = [0; READ_BYTES];
    while left > 0 {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let number = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let Some((socket, to_do, have)) = peers.get_mut(number) else { continue };
            *have += match socket.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            if *have < REPLY_BYTES {
                continue;
            }
            *have -= REPLY_BYTES;
            *to_do -= 1;
            left -= 1;
            if *to_do > 0 {
                socket.write_all(&[1; COMMAND_BYTES])?;
            }
        }
    }
    let count = u64::from(busy) * commands;
    Ok(format!("{} {}\n", per(cpu() - used, count), per(from.elapsed(), count)))
}

/// The load of the floor: answers each message until its connection is closed.
pub(super) fn load(address: SocketAddr, workers: u32) -> Result<ExitCode, CliError> {
    open_files(u64::from(workers) + 64)?;
    load_sockets(address, workers).map_err(socket_error)?;
    Ok(ExitCode::SUCCESS)
}

fn load_sockets(address: SocketAddr, workers: u32) -> std::io::Result<()> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut peers = Vec::new();
    for number in 0..u64::from(workers) {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(&poll, &socket, EventData::new_u64(number), EventFlags::IN)?;
        peers.push((Some(socket), 0));
    }
    let mut left = workers;
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut buffer = [0; READ_BYTES];
    while left > 0 {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let number = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let Some((place, have)) = peers.get_mut(number) else { continue };
            let Some(socket) = place else { continue };
            match socket.read(&mut buffer) {
                Ok(bytes) if bytes > 0 => *have += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Ok(_) | Err(_) => {
                    *place = None;
                    left -= 1;
                    continue;
                }
            }
            if *have >= COMMAND_BYTES {
                *have -= COMMAND_BYTES;
                socket.write_all(&[2; REPLY_BYTES])?;
            }
        }
    }
    Ok(())
}
