//! How long it takes from a body to its request hash, compared with the usual way and with the hash function alone.
//!
//! `cargo bench --bench request_hash`. For each body three things run in turns, so that whatever else the machine does falls
//! on all of them:
//!
//! - **ours**: the thread's scanner, the envelope, the key, the hash of the canonical `params`;
//! - **serde**: `serde_json::Value`, the message id removed, serde_jcs, sha2;
//! - **sha2**: SHA-256 of the raw body, without a look at what is in it.
//!
//! Figures are medians over the rounds, ratios medians of each round's ratio. The nesting attacks are refused, not hashed;
//! they are held against SHA-256 of ten megabytes like the base64 body.

#![allow(clippy::print_stdout, missing_docs)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use idempotent_core::json::{Numbers, Scanner};
use idempotent_core::request_hash::{MESSAGE_ID_POINTER, RequestHash};
use sha2::{Digest, Sha256};

const ROUNDS: usize = 25;
/// Each measurement of a round repeats until it has run this long.
const SLICE: Duration = Duration::from_millis(10);

/// What the design promises for a body.
enum Goal {
    /// So many times as fast as serde.
    Faster(f64),
    /// At most so many times as long as sha2.
    Within(f64),
    /// Nothing; shown for comparison.
    None,
}

struct Case {
    name: &'static str,
    body: String,
    goal: Goal,
    /// The body is I-JSON; the attacks are not.
    hashes: bool,
}

fn main() {
    println!("{:<26} {:>10} {:>10} {:>10} {:>9} {:>9}   goal", "body", "ours", "serde", "sha2", "vs serde", "vs sha2");
    let mut worst: Option<(f64, &'static str)> = None;
    for case in cases() {
        let (goal, met) = measure(&case);
        println!("{goal}");
        if worst.is_none_or(|(least, _)| met < least) {
            worst = Some((met, case.name));
        }
    }
    if let Some((met, name)) = worst {
        println!("worst ratio {met:.2} of its goal, at {name} (1.00 or more meets it)");
    }
}

/// Measures a case; returns its line of the table, and how many times better than its goal it is.
fn measure(case: &Case) -> (String, f64) {
    let body = case.body.as_bytes();
    assert_eq!(ours(body).is_some(), case.hashes, "{}", case.name);
    if case.hashes {
        assert_eq!(ours(body).map(|hash| *hash.as_bytes()), Some(serde(body)), "{}", case.name);
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let ours = time(|| black_box(ours(black_box(body))));
        let serde = if case.hashes { time(|| black_box(serde(black_box(body)))) } else { f64::NAN };
        let sha2 = time(|| black_box(sha2(black_box(body))));
        rounds.push([ours, serde, sha2]);
    }
    let median = |figure: &dyn Fn(&[f64; 3]) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures[ROUNDS / 2]
    };
    let faster = median(&|[ours, serde, _]| serde / ours);
    let longer = median(&|[ours, _, sha2]| ours / sha2);
    let (goal, met) = match case.goal {
        Goal::Faster(goal) => (format!("≥ {goal} × as fast as serde"), faster / goal),
        Goal::Within(goal) => (format!("≤ {goal} × sha2"), goal / longer),
        Goal::None => ("–".to_owned(), f64::INFINITY),
    };
    let mut line = format!("{:<26}", case.name);
    for figure in 0..3 {
        let _ = write!(line, " {:>10}", seconds(median(&|round| round[figure])));
    }
    let _ = write!(line, " {:>9} {longer:>7.2} ×   {goal}", times(faster));
    (line, met)
}

/// The time of one run: the fastest of a slice, because whatever else the machine does can only add to it.
fn time<R>(mut run: impl FnMut() -> R) -> f64 {
    let mut fastest = f64::INFINITY;
    let mut batch = 1;
    let start = Instant::now();
    while start.elapsed() < SLICE {
        let from = Instant::now();
        for _ in 0..batch {
            run();
        }
        let elapsed = from.elapsed().as_secs_f64();
        fastest = fastest.min(elapsed / f64::from(batch));
        // Short bodies are not measured with a clock between every two of them.
        if elapsed < SLICE.as_secs_f64() / 20.0 {
            batch *= 2;
        }
    }
    fastest
}

fn seconds(figure: f64) -> String {
    match figure {
        _ if figure.is_nan() => "–".to_owned(),
        _ if figure < 1e-3 => format!("{:.2} µs", figure * 1e6),
        _ => format!("{:.2} ms", figure * 1e3),
    }
}

fn times(figure: f64) -> String {
    if figure.is_nan() { "–".to_owned() } else { format!("{figure:.2} ×") }
}

fn ours(body: &[u8]) -> Option<RequestHash> {
    Scanner::with(|scanner| {
        let document = scanner.scan(body, Numbers::Strict).ok()?;
        let envelope = document.envelope();
        black_box((envelope.id()?.span(), envelope.method()?, envelope.jsonrpc()?));
        let params = envelope.params()?;
        document.request_hash(params, params.pointer(MESSAGE_ID_POINTER)).ok()
    })
}

fn serde(body: &[u8]) -> [u8; 32] {
    let mut request: serde_json::Value = serde_json::from_slice(body).expect("the body is JSON");
    let params = request.get_mut("params").expect("it has params");
    params.get_mut("message").and_then(|message| message.as_object_mut()?.remove("messageId"));
    Sha256::digest(serde_jcs::to_vec(&params).expect("params have a canonical form")).into()
}

fn sha2(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

fn cases() -> Vec<Case> {
    let mb = 1_000_000;
    let faster = |name, body, goal| Case { name, body, goal: Goal::Faster(goal), hashes: true };
    let attack = |name, body, goal| Case { name, body, goal, hashes: false };
    let within = || Goal::Within(1.3);
    vec![
        faster("0.5 KB request", request(&parts(mixed, 200)), 5.0),
        faster("10 KB, mixed", request(&parts(mixed, 9_750)), 5.0),
        faster("1 MB, mixed", request(&parts(mixed, mb)), 5.0),
        faster("1 MB, text", request(&parts(text, mb)), 3.5),
        Case { name: "10 MB, base64", body: request(&file(10 * mb)), goal: Goal::Within(1.3), hashes: true },
        attack("10 MB of [ and ]", request(&nested("[", "]", 10 * mb)), within()),
        attack("10 MB of [, unclosed", request(&nested("[", "", 10 * mb)), within()),
        attack("10 MB of {\"a\": and }", request(&nested("{\"a\":", "}", 10 * mb)), within()),
        attack("10 MB of [{\"\": and }]", request(&nested("[{\"\":", "}]", 10 * mb)), Goal::None),
        attack("10 MB of [[],", request(&nested("[[],", "]", 10 * mb)), Goal::None),
    ]
}

fn request(parts: &str) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"kind":"message","role":"user","#,
            r#""messageId":"0192f3a4-5b6c-7d8e-9f01-23456789abcd","contextId":"ctx-7f3a","parts":[{}]}},"#,
            r#""configuration":{{"blocking":true,"acceptedOutputModes":["text/plain","application/json"]}}}}}}"#,
        ),
        parts
    )
}

/// Parts of a message up to a size, each other than the one before.
fn parts(part: fn(&mut Random) -> String, size: usize) -> String {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut parts = part(&mut random);
    while parts.len() < size {
        parts.push(',');
        parts.push_str(&part(&mut random));
    }
    parts
}

/// What agents send each other: a record of strings, numbers and flags, its members in nobody's order.
fn mixed(random: &mut Random) -> String {
    format!(
        concat!(
            r#"{{"kind":"data","data":{{"orderId":"A-{}","quantity":{},"price":{}.{:02},"score":0.{},"currency":"EUR","#,
            r#""tags":["express","{}","gift"],"paid":{},"note":"{}","address":{{"street":"{}","zip":"{:05}","#,
            r#""country":"DE","geo":{{"lat":{}.{:06},"lon":{}.{:06}}}}},"updatedAt":{},"parent":null}}}}"#,
        ),
        random.below(1_000_000),
        random.below(500),
        random.below(1000),
        random.below(90) + 10,
        random.below(1 << 53) | 1,
        random.words(1),
        random.below(2) == 0,
        random.words(9),
        random.words(2),
        random.below(100_000),
        random.below(89) + 1,
        random.below(900_000) | 1,
        random.below(179) + 1,
        random.below(900_000) | 1,
        1_700_000_000_000u64 + random.below(100_000_000_000),
    )
}

/// A few paragraphs, with the line breaks, quotes and letters that texts have.
fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..4 {
        for _ in 0..5 {
            let length = 6 + random.below(14) as usize;
            let _ = match random.below(8) {
                0 => write!(text, "“{}”, ", random.words(length)),
                1 => write!(text, r#"\"{}\" "#, random.words(length)),
                2 => write!(text, "{} – naïve, {}. ", random.words(length), random.words(4)),
                _ => write!(text, "{}. ", random.words(length)),
            };
        }
        text.push_str(r"\n\n");
    }
    format!(r#"{{"kind":"text","text":"{text}"}}"#)
}

/// One file, as base64.
fn file(size: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = Random(7);
    let bytes: String = (0..size).map(|_| char::from(ALPHABET[random.below(64) as usize])).collect();
    format!(r#"{{"kind":"file","file":{{"name":"scan.pdf","mimeType":"application/pdf","bytes":"{bytes}"}}}}"#)
}

fn nested(open: &str, close: &str, size: usize) -> String {
    let levels = size / (open.len() + close.len());
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

/// xorshift64*: the same bodies in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % end
    }

    fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "invoice",
            "was",
            "sent",
            "to",
            "another",
            "department",
            "and",
            "nobody",
            "noticed",
            "until",
            "a",
            "customer",
            "called",
            "about",
            "it",
        ];
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(16) as usize]).collect();
        words.join(" ")
    }
}
