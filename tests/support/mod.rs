//! The example agent as a real process, and a client that talks to it over TCP.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod database;
pub mod launch;
pub mod raw;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, OnceLock, mpsc},
    time::{Duration, Instant},
};

use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The extension's URI.
pub const URI: &str = idempotent::extension::URI;

/// A `messageId` that has not been used before.
pub fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The agent's program, built once for each run of a test file.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the test has a path");
        let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "idempotent-examples", "--example", "agent"]);
        build.arg("--target-dir").arg(profile.parent().expect("target/PROFILE"));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().expect("cargo runs");
        assert!(built.success(), "the agent builds");
        profile.join("examples/agent")
    })
}

/// A running agent. Killed when dropped.
pub struct Agent {
    process: Child,
    pub url: String,
    pub address: String,
    database: PathBuf,
    flags: Vec<String>,
    env: Vec<(String, String)>,
    printed: Mutex<mpsc::Receiver<String>>,
    folder: Option<TempDir>,
    client: reqwest::Client,
}

impl Agent {
    /// Starts an agent on a database of its own.
    pub fn start(flags: &[&str]) -> Self {
        Self::start_with(flags, &[])
    }

    /// Starts an agent on a database that others may use too.
    pub fn start_on(database: &Path, flags: &[&str]) -> Self {
        Self::launch(database, flags, &[])
    }

    /// Starts an agent on a database of its own, with variables in its environment.
    pub fn start_with(flags: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = folder.path().join("agent.db");
        let mut agent = Self::launch(&database, flags, env);
        agent.folder = Some(folder);
        agent
    }

    fn launch(database: &Path, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (process, url, printed) = spawn(database, &flags, &env);
        Self {
            process,
            address: url.trim_start_matches("http://").to_owned(),
            url,
            database: database.to_owned(),
            flags,
            env,
            printed: Mutex::new(printed),
            folder: None,
            client: client(),
        }
    }

    /// The file that holds its tasks and answers.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// The next lines that it prints.
    pub fn printed(&self, lines: usize) -> Vec<String> {
        let printed = self.printed.lock().expect("no panic");
        (0..lines).map(|_| printed.recv_timeout(Duration::from_secs(30)).expect("a line")).collect()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Starts the program again on the same database, after it has ended.
    pub fn restart(&mut self) {
        self.kill();
        let (process, url, printed) = spawn(&self.database, &self.flags, &self.env);
        self.process = process;
        self.printed = Mutex::new(printed);
        self.address = url.trim_start_matches("http://").to_owned();
        self.url = url;
        self.client = client();
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends a signal by its name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(sent.expect("kill runs").success());
    }

    /// SIGTERM, and the exit code that follows within a minute.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.exit_code(Duration::from_secs(60))
    }

    /// The exit code, once the process has ended by itself.
    pub fn exit_code(&mut self, within: Duration) -> Option<i32> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.process.try_wait().expect("the process can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the agent did not end within {within:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Posts a body as it is.
    pub async fn post(&self, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Answer {
        self.try_post(headers, body).await.expect("the agent answers")
    }

    /// Posts a body as it is; the connection may break.
    pub async fn try_post(&self, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> reqwest::Result<Answer> {
        Answer::read(self.request(headers, body).send().await?).await
    }

    /// A request that has not been sent.
    pub fn request(&self, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let mut map = HeaderMap::new();
        map.insert("content-type", HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        }
        self.client.post(format!("{}/", self.url)).headers(map).body(body)
    }

    /// Posts an activated request.
    pub async fn call(&self, request: &Value) -> Answer {
        self.post(&[("a2a-extensions", URI)], request.to_string()).await
    }

    /// Posts an activated request to another path than `/`.
    pub async fn post_to(&self, path: &str, request: &Value) -> Answer {
        let request = self.client.post(format!("{}{path}", self.url)).body(request.to_string());
        let response = request.header("a2a-extensions", URI).send().await.expect("the agent answers");
        Answer::read(response).await.expect("the body is whole")
    }

    /// Posts an activated request; the connection may break.
    pub async fn try_call(&self, request: &Value) -> reqwest::Result<Answer> {
        self.try_post(&[("a2a-extensions", URI)], request.to_string()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.expect("the agent answers");
        Answer::read(response).await.expect("the body is whole")
    }

    /// How many executions have succeeded for callers without a token.
    pub async fn executions(&self) -> u64 {
        self.executions_seen_with(&[]).await
    }

    /// How many executions have succeeded for the callers who send these headers.
    pub async fn executions_seen_with(&self, headers: &[(&str, &str)]) -> u64 {
        let answer = self.post(headers, json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}).to_string()).await;
        answer.json()["result"]["totalSize"].as_u64().expect("a count")
    }

    /// A counter of `/metrics`.
    pub async fn metric(&self, method: &str, outcome: &str) -> u64 {
        let line = format!("idempotent_requests_total{{method=\"{method}\",outcome=\"{outcome}\"}} ");
        let text = self.get("/metrics").await.text();
        text.lines().find_map(|l| l.strip_prefix(&line)).map_or(0, |count| count.parse().expect("a number"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

fn spawn(database: &Path, flags: &[String], env: &[(String, String)]) -> (Child, String, mpsc::Receiver<String>) {
    let mut process = Command::new(program())
        .args(["--listen", "127.0.0.1:0", "--database-url"])
        .arg(database)
        .args(flags)
        .env_remove("AIWG_IDEMPOTENCY_TTL")
        .env_remove("AIWG_IDEMPOTENCY_MAX_ENTRIES")
        .env("RUST_LOG", "off")
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("the agent says where it listens").expect("text");
    let url = first.strip_prefix("listening on ").expect(&first).to_owned();
    let (printed, more) = mpsc::channel();
    // Keeps the pipe open: a program that prints into a closed one would be killed.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| _ = printed.send(line)));
    (process, url, more)
}

/// A whole response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub async fn read(response: reqwest::Response) -> reqwest::Result<Self> {
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await? })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    /// A header's value, if it is there exactly once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "`{name}` is there more than once");
        value.to_str().ok()
    }

    /// `error.data.code`.
    pub fn code(&self) -> String {
        self.json()["error"]["data"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// What two copies of one answer have in common: everything but `Date`, what the connection needs, and the mark of a
    /// replay.
    pub fn without_mark(&self) -> (StatusCode, Vec<(String, Vec<u8>)>, Bytes) {
        let own = ["date", "connection", "content-length", "transfer-encoding", "idempotent-replayed"];
        let headers = self.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        (self.status, headers, self.body.clone())
    }
}

/// A `message/send` whose text is `text`, with knobs in `metadata.demo`.
pub fn send(message_id: &str, text: &str, demo: Value) -> Value {
    request("message/send", message_id, text, demo)
}

/// A `message/stream`.
pub fn stream(message_id: &str, text: &str, demo: Value) -> Value {
    request("message/stream", message_id, text, demo)
}

/// A request of either dialect.
pub fn request(method: &str, message_id: &str, text: &str, demo: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": method,
        "params": {
            "message": {
                "role": "user", "kind": "message", "messageId": message_id,
                "parts": [{"kind": "text", "text": text}],
            },
            "metadata": {"demo": demo},
        },
    })
}
