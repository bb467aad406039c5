//! How long 100 annotated handlers take to compile, compared with 100 plain axum handlers of the same arguments.
//!
//! `cargo bench --bench compile_time` writes two programs into a folder of their own, builds what they depend on once, and then each
//! of them several times, in turn. Told is the least CPU time of a run (on systems without `/proc`, the least time), for
//! `cargo check` and for `cargo build` without optimisation. The goal is a ratio of at most 1.5.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

const HANDLERS: usize = 100;
const RUNS: usize = 5;

/// The state and the types that both programs use.
const AGENT: &str = r#"
use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::{StatusCode, request::Parts};

#[derive(Clone)]
struct App {
    agent: Agent,
    idempotency: idempotent::Idempotency,
}

#[derive(Clone)]
struct Agent;

impl Agent {
    async fn answer(&self, tenant: String, text: String) -> Task {
        Task { id: tenant + &text }
    }
}

impl FromRef<App> for Agent {
    fn from_ref(app: &App) -> Self {
        app.agent.clone()
    }
}

impl FromRef<App> for idempotent::Idempotency {
    fn from_ref(app: &App) -> Self {
        app.idempotency.clone()
    }
}

struct AuthUser {
    tenant: String,
}

impl<S: Send + Sync> FromRequestParts<S> for AuthUser {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Err(StatusCode::UNAUTHORIZED)
    }
}

#[derive(serde::Serialize)]
struct Task {
    id: String,
}

fn main() {
    let state: Option<App> = None;
    if let Some(state) = state {
        drop(router(state));
    }
}
"#;

fn plain() -> String {
    let mut source = AGENT.to_owned();
    source.push_str("use axum::{Json, Router, routing::post};\n");
    let mut routes = String::new();
    for number in 0..HANDLERS {
        let _ = write!(
            source,
            "#[derive(serde::Deserialize)]\nstruct Message{number} {{ text: String }}\n\n\
             async fn handler{number}(\n    user: AuthUser,\n    State(agent): State<Agent>,\n    \
             Json(message): Json<Message{number}>,\n) -> Result<Json<Task>, StatusCode> {{\n    \
             Ok(Json(agent.answer(user.tenant, message.text).await))\n}}\n\n"
        );
        let _ = write!(routes, ".route(\"/{number}\", post(handler{number}))");
    }
    let _ = write!(source, "fn router(state: App) -> Router {{\n    Router::new(){routes}.with_state(state)\n}}\n");
    source
}

fn annotated() -> String {
    let mut source = AGENT.to_owned();
    source.push_str("use idempotent::{JsonRpcRouter, Params, RpcError, idempotent, rpc_methods};\n");
    let mut names = String::new();
    for number in 0..HANDLERS {
        let _ = write!(
            source,
            "#[derive(serde::Deserialize)]\nstruct Message{number} {{ text: String }}\n\n\
             #[idempotent(method = \"bench/{number}\", extension = \"https://example.com/bench/v1\", scope = user.tenant)]\n\
             async fn handler{number}(\n    user: AuthUser,\n    State(agent): State<Agent>,\n    \
             Params(message): Params<Message{number}>,\n) -> Result<Task, RpcError> {{\n    \
             Ok(agent.answer(user.tenant, message.text).await)\n}}\n\n"
        );
        let _ = write!(names, "handler{number}, ");
    }
    let _ = write!(
        source,
        "fn router(state: App) -> axum::Router {{\n    \
         JsonRpcRouter::new().methods(rpc_methods![{names}]).with_state(state)\n}}\n"
    );
    source
}

/// Two programs in a workspace of their own.
struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    fn write() -> io::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_time");
        for (name, source) in [("plain", plain()), ("annotated", annotated())] {
            let package = folder.join(name);
            fs::create_dir_all(package.join("src"))?;
            fs::write(
                package.join("Cargo.toml"),
                format!(
                    "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                     axum = {{ version = \"0.8\", default-features = false, features = [\"json\"] }}\n\
                     idempotent = {{ path = {:?} }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n",
                    repository.display().to_string()
                ),
            )?;
            fs::write(package.join("src/main.rs"), source)?;
        }
        fs::write(folder.join("Cargo.toml"), "[workspace]\nmembers = [\"plain\", \"annotated\"]\nresolver = \"3\"\n")?;
        fs::copy(repository.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(Self { folder })
    }

    fn cargo(&self, command: &str, package: &str) -> io::Result<()> {
        let status = Command::new(env!("CARGO"))
            .args([command, "--quiet", "--package", package])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .stdin(Stdio::null())
            .status()?;
        successful(status)
    }

    /// Compiles one of the programs, its dependencies being there.
    fn compile(&self, command: &str, package: &str) -> io::Result<Duration> {
        let main = self.folder.join(package).join("src/main.rs");
        fs::write(&main, fs::read(&main)?)?;
        let (wall, cpu) = (Instant::now(), children_cpu());
        self.cargo(command, package)?;
        Ok(match (cpu, children_cpu()) {
            (Some(before), Some(after)) => after - before,
            _ => wall.elapsed(),
        })
    }
}

fn successful(status: ExitStatus) -> io::Result<()> {
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("cargo: {status}"))) }
}

/// CPU time of all children that have ended, theirs included: fields 16 and 17 of proc(5)'s `stat`, in hundredths of a second.
fn children_cpu() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let behind_name = stat.rsplit_once(')')?.1;
    let mut fields = behind_name.split_whitespace().skip(13);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

#[allow(clippy::print_stdout)]
fn main() -> io::Result<()> {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test` runs every target; this one has nothing to test and takes minutes.
        return Ok(());
    }
    let workspace = Workspace::write()?;
    println!("{HANDLERS} handlers, least CPU time of {RUNS} runs\n");
    println!("{:<8} {:>10} {:>10} {:>7}", "", "plain", "annotated", "ratio");
    for command in ["check", "build"] {
        for package in ["plain", "annotated"] {
            workspace.cargo(command, package)?;
        }
        let mut least = [Duration::MAX; 2];
        for _ in 0..RUNS {
            for (package, least) in ["plain", "annotated"].into_iter().zip(&mut least) {
                *least = (*least).min(workspace.compile(command, package)?);
            }
        }
        let [plain, annotated] = least.map(|time| time.as_secs_f64());
        println!("{command:<8} {plain:>8.2} s {annotated:>8.2} s {:>7.2}", annotated / plain);
    }
    Ok(())
}
