// A host in Rust, tested with a recorded extension: rustc --edition 2021 --test host.rs && ./host
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn a_greeting_is_understood() {
    let mut child = Command::new("ext-recorder")
        .args(["replay", "greeting.yaml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let greet = r#"{"jsonrpc":"2.0","id":"rs-1","method":"execute","params":{"operation":"greet","args":{"name":"Ada"},"context":{"workdir":".","phase":"setup"}}}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{greet}").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains(r#""id":"#)).unwrap(); // a log has no id
    assert!(line.contains(r#""id":"rs-1""#) && line.contains("Hello, Ada!"), "found {line}");
    drop(stdin);
    assert!(child.wait().unwrap().success()); // exit status 3: something else was asked than is recorded
}
