//! Lines to servers that are slow, that leave, and that are left: answers, or words that say what was wrong.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::line::{Line, NoAnswer, Reach, StatusCode, Target};

fn line(listener: &TcpListener) -> Line {
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = Target { url: &url, path: "/v1/shard", setting: "shards", key_name: "CENTO_SHARD_KEY" };
    Line::open(&target, None, Duration::from_secs(60), Reach::Any).unwrap()
}

/// Reads a request whose body is `question`; false if the client leaves.
fn request(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"question") {
        let mut some = [0; 512];
        match stream.read(&mut some) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&some[..n]),
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

fn answer(stream: &mut TcpStream) {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nanswer").unwrap();
}

fn read(line: &Line) -> Result<(StatusCode, Vec<u8>), NoAnswer> {
    line.read(b"question", 64, &|| false)
}

#[test]
fn a_connection_that_was_kept_and_is_closed_is_asked_again_over_a_new_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (line, n_broken) = (line(&listener), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let n_broken = &n_broken;
                scope.spawn(move || {
                    if request(&mut stream) {
                        answer(&mut stream);
                        // The connection is kept; its server goes when it is used again.
                        n_broken.fetch_add(usize::from(request(&mut stream)), Ordering::SeqCst);
                    }
                });
            }
        });
        while n_broken.load(Ordering::SeqCst) < 3 {
            assert_eq!(read(&line).unwrap(), (StatusCode::OK, b"answer".to_vec()));
        }
        is_over.store(true, Ordering::SeqCst);
        drop(line);
        TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    });
}

#[test]
fn a_server_that_never_answers_is_asked_twice_and_one_that_breaks_off_once() {
    for (said, n_asked, words) in [
        ("", 2, "the connection broke"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\nhalf", 1, "the connection broke"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n", 1, ""),
        ("what is this\r\n\r\n", 2, "the connection broke"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = line(&listener);
        let n = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..n_asked {
                    let (mut stream, _) = listener.accept().unwrap();
                    n.fetch_add(1, Ordering::Relaxed);
                    assert!(request(&mut stream));
                    stream.write_all(said.as_bytes()).unwrap();
                }
            });
            match read(&line) {
                Err(NoAnswer::Lost(reason)) => assert!(reason.contains(words), "{said:?}: {reason}"),
                other => panic!("{said:?}: {other:?}"),
            }
        });
        assert_eq!(n.load(Ordering::Relaxed), n_asked, "{said:?}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = line(&listener);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(request(&mut stream));
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
            while stream.write_all(b"10\r\n0123456789abcdef\r\n").is_ok() {}
        });
        let error = read(&line).unwrap_err();
        assert!(matches!(&error, NoAnswer::Refused(reason) if reason.contains("more than 64 bytes")), "{error:?}");
    });
}

#[test]
fn a_server_learns_at_once_that_it_was_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = line(&listener);
    let ((ask, asked), (leave, left)) = (mpsc::channel(), mpsc::channel());
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(request(&mut stream));
            ask.send(()).unwrap();
            let n = stream.read(&mut [0; 16]);
            leave.send(matches!(n, Ok(0) | Err(_))).unwrap();
        });
        let asked = std::sync::Mutex::new(asked);
        let stop = || asked.lock().unwrap().try_recv().is_ok();
        assert!(matches!(line.read(b"question", 64, &stop), Err(NoAnswer::Stopped)));
        assert!(left.recv().unwrap());
    });
    drop(line); // it was there all the time
}
