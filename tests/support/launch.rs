//! The agent's program when it is not expected to serve.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::program;

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program until it ends by itself.
pub fn run_to_its_end(flags: &[&str], env: &[(&str, &str)]) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut process = Command::new(program())
        .args(flags)
        .current_dir(folder.path())
        .env_remove("AIWG_IDEMPOTENCY_TTL")
        .env_remove("AIWG_IDEMPOTENCY_MAX_ENTRIES")
        .env("RUST_LOG", "off")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while process.try_wait().expect("the process can be waited for").is_none() {
        if Instant::now() > deadline {
            process.kill().expect("the process can be killed");
            panic!("the agent serves with {flags:?} {env:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut stdout, mut stderr) = (String::new(), String::new());
    process.stdout.take().expect("piped").read_to_string(&mut stdout).expect("text");
    process.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    Ended { code: process.wait().expect("it has ended").code(), stdout, stderr }
}
