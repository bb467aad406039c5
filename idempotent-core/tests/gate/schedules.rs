//! The invariants under random schedules: several processes on one store that fails as it likes, clients that come, send
//! other payloads, are turned down and leave, processes that stop and die.
//!
//! A failing schedule is printed in its smallest form and kept under `tests/proptest-regressions`.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use futures_util::future::join_all;
use idempotent_core::{
    store::{Entry, Occupant, Store as _, StoredBody},
    testing::{Fault, StoreCall},
};
use proptest::{collection, option, prelude::*};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{disconnects::impatient, world::*};

/// Everything happens within this time; what takes longer comes on top.
const HORIZON_MS: u64 = 40_000;
const KEYS: u16 = 3;
const COLLISION: &str = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD";

#[derive(Debug, Clone)]
struct Schedule {
    /// What each key's first payload asks for, and by which method.
    operations: Vec<Operation>,
    processes: Vec<ProcessPlan>,
    clients: Vec<Client>,
    sweeps_ms: Vec<u64>,
}

#[derive(Debug, Clone)]
struct Operation {
    method: &'static str,
    act: Act,
}

#[derive(Debug, Clone)]
struct ProcessPlan {
    /// By the number of the call that they strike.
    faults: BTreeMap<u64, Fault>,
    /// (from, for how long): every call fails.
    outage_ms: Option<(u64, u64)>,
    /// (from, for how long): the process is stopped.
    stop_ms: Option<(u64, u64)>,
    killed_ms: Option<u64>,
    drained_ms: Option<u64>,
    recording: Recording,
}

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy)]
enum Recording {
    InMemory,
    InChunks,
    Tombstone,
}

#[derive(Debug, Clone)]
struct Client {
    at_ms: u64,
    process: usize,
    key: u16,
    other_payload: bool,
    turned_down: Option<TurnedDown>,
    leaves_after_polls: Option<usize>,
}

/// By an extractor that runs under the claim.
#[derive(Debug, Clone, Copy)]
enum TurnedDown {
    After(u64),
    ByItsPanic,
}

fn operation() -> impl Strategy<Value = Operation> {
    let after_ms = prop_oneof![Just(0u64), 1..500u64, 500..25_000u64];
    let whole = prop_oneof![
        6 => after_ms.clone().prop_map(|after_ms| Act::Succeed { after_ms }),
        1 => after_ms.clone().prop_map(|after_ms| Act::Fail { after_ms }),
        1 => after_ms.prop_map(|after_ms| Act::Panic { after_ms }),
        1 => Just(Act::FailEffect),
        1 => Just(Act::PanicEffect),
    ];
    let end = prop_oneof![
        4 => Just(StreamEnd::Complete),
        1 => Just(StreamEnd::Error),
        1 => Just(StreamEnd::Panic),
        1 => Just(StreamEnd::FailEffect),
    ];
    let stream = (1..8u32, prop_oneof![Just(10usize), Just(600)], prop_oneof![Just(0u64), 1..3_000u64], end)
        .prop_map(|(events, bytes, gap_ms, end)| Act::Stream { events, bytes, gap_ms, end });
    let method = prop_oneof![3 => Just(SEND), 1 => Just(CAREFUL)];
    prop_oneof![
        3 => (method, whole).prop_map(|(method, act)| Operation { method, act }),
        2 => stream.prop_map(|act| Operation { method: STREAM, act }),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let pause = prop_oneof![1..200u64, 200..14_000u64].prop_map(Duration::from_millis);
    prop_oneof![
        3 => Just(Fault::FailBefore),
        3 => Just(Fault::FailAfter),
        3 => pause.clone().prop_map(Fault::Delay),
        3 => pause.prop_map(Fault::DelayAnswer),
        2 => Just(Fault::Twice),
        1 => Just(Fault::Hang),
        1 => Just(Fault::HangAfter),
        1 => Just(Fault::PanicBefore),
        1 => Just(Fault::PanicAfter),
        1 => Just(Fault::DieBefore),
        1 => Just(Fault::DieAfter),
    ]
}

fn process() -> impl Strategy<Value = ProcessPlan> {
    (
        collection::btree_map(0..40u64, fault(), 0..6),
        option::weighted(0.2, (0..HORIZON_MS, 1..30_000u64)),
        option::weighted(0.3, (0..10_000u64, 5_000..30_000u64)),
        option::weighted(0.15, 0..HORIZON_MS),
        option::weighted(0.1, 0..HORIZON_MS),
        prop_oneof![3 => Just(Recording::InMemory), 3 => Just(Recording::InChunks), 1 => Just(Recording::Tombstone)],
    )
        .prop_map(|(faults, outage_ms, stop_ms, killed_ms, drained_ms, recording)| ProcessPlan {
            faults,
            outage_ms,
            stop_ms,
            killed_ms,
            drained_ms,
            recording,
        })
}

fn client(processes: usize) -> impl Strategy<Value = Client> {
    let turned_down = prop_oneof![3 => (0..1_000u64).prop_map(TurnedDown::After), 1 => Just(TurnedDown::ByItsPanic)];
    (
        prop_oneof![0..200u64, 0..HORIZON_MS],
        0..processes,
        0..KEYS,
        prop::bool::weighted(0.15),
        option::weighted(0.2, turned_down),
        option::weighted(0.2, 0..12usize),
    )
        .prop_map(|(at_ms, process, key, other_payload, turned_down, leaves_after_polls)| Client {
            at_ms,
            process,
            key,
            other_payload,
            turned_down,
            leaves_after_polls,
        })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    (1..4usize).prop_flat_map(|processes| {
        (
            collection::vec(operation(), usize::from(KEYS)),
            collection::vec(process(), processes),
            collection::vec(client(processes), 1..24),
            collection::vec(0..HORIZON_MS, 0..3),
        )
            .prop_map(|(operations, processes, clients, sweeps_ms)| Schedule {
                operations,
                processes,
                clients,
                sweeps_ms,
            })
    })
}

/// What a client saw.
struct Seen {
    process: usize,
    ask: Ask,
    turned_down: bool,
    /// `None`: it left, or its process died.
    answer: Option<Answer>,
    /// Whether the store held this very answer when it came.
    durable: bool,
}

impl Schedule {
    fn ask(&self, key: u16, other_payload: bool) -> Ask {
        let Operation { method, act } = &self.operations[usize::from(key)];
        let ask = Ask::new(method, key, act);
        if other_payload { ask.with_payload("other") } else { ask }
    }

    fn number(&self, ask: &Ask) -> usize {
        (0..KEYS).position(|key| self.ask(key, false).message_id == ask.message_id).expect("one of ours")
    }

    /// Longer than anything here can take that is not stuck.
    fn bound(&self) -> Duration {
        let faults: usize = self.processes.iter().map(|process| process.faults.len()).sum();
        let stopped: u64 = self.processes.iter().filter_map(|process| process.stop_ms).map(|(_, for_ms)| for_ms).sum();
        let patience = seconds(20) * faults as u32;
        patience + Duration::from_millis(stopped) + (WAIT + LEASE) * 2 + seconds(200)
    }

    async fn play(&self) {
        let started = Instant::now();
        let at = |ms: u64| started + Duration::from_millis(ms);
        let world = World::new();
        let processes: Vec<Process> = self.processes.iter().map(|plan| plan.start(&world, started)).collect();
        let clients = self.clients.iter().map(|client| {
            let (world, process) = (&world, &processes[client.process]);
            async move {
                sleep_until(at(client.at_ms)).await;
                self.be(client, process, world).await
            }
        });
        let sweeps = self.sweeps_ms.iter().map(|&ms| {
            let store = world.store.clone();
            async move {
                sleep_until(at(ms)).await;
                store.sweep().await.expect("memory does not fail");
            }
        });
        let (seen, _) = tokio::join!(join_all(clients), join_all(sweeps));
        // Whatever is left to do is done: outages end, stopped processes go on, leases end, answers are stored after all.
        sleep_until(at(HORIZON_MS + 30_000)).await;
        sleep(self.bound()).await;
        self.judge(&world, &processes, &seen).await;
    }

    async fn be(&self, client: &Client, process: &Process, world: &World) -> Seen {
        let mut ask = self.ask(client.key, client.other_payload);
        match client.turned_down {
            Some(TurnedDown::After(ms)) => ask = ask.with_header("x-refuse", &ms.to_string()),
            Some(TurnedDown::ByItsPanic) => ask = ask.with_header("x-break", "1"),
            None => {}
        }
        let asking = impatient(process.ask(&ask), client.leaves_after_polls.unwrap_or(usize::MAX));
        let answer = tokio::select! {
            // The dead answer nobody, whatever they knew.
            biased;
            () = process.faults.dead() => None,
            answer = timeout(self.bound(), asking) => {
                answer.unwrap_or_else(|_| panic!("a client waits for ever: {client:?}"))
            }
        };
        let durable =
            answer.as_ref().is_some_and(|answer| stored_text(world, &ask).is_some_and(|text| text == answer.body));
        Seen { process: client.process, ask, turned_down: client.turned_down.is_some(), answer, durable }
    }

    async fn judge(&self, world: &World, processes: &[Process], seen: &[Seen]) {
        let runs = world.runs();
        let died = processes.iter().any(|process| process.faults.is_dead());
        let stopped = self.processes.iter().any(|plan| plan.stop_ms.is_some());
        let renewals_failed = processes.iter().any(|process| process.faults.injected(StoreCall::Renew) > 0);
        // Nobody lost a lease.
        let calm = !died && !stopped && !renewals_failed;
        // Nobody's lease ended before it knew of its claim, or while it could not give it back.
        let claims_were_quick = [StoreCall::Claim, StoreCall::Release]
            .iter()
            .all(|&call| processes.iter().all(|process| process.faults.injected(call) == 0));

        let tokens: BTreeSet<_> = runs.iter().map(|run| run.token.expect("a claim")).collect();
        assert_eq!(tokens.len(), runs.len(), "a claim was run under twice: {runs:?}");

        let mut final_texts = HashMap::new();
        for key in 0..KEYS {
            let ask = self.ask(key, false);
            let of_key: Vec<_> = runs.iter().filter(|run| run.message_id == ask.message_id).collect();
            let entry = entry(world, &ask);
            if calm {
                assert!(of_key.len() <= 1, "executed twice: {of_key:?}");
                let lost = of_key.iter().any(|run| run.finished) && entry.is_none();
                assert!(!lost, "an execution was not stored: {of_key:?}");
            }
            if of_key.is_empty() {
                assert!(entry.is_none(), "stored, but never run: {ask:?}");
            }
            let in_the_way = matches!(world.stored(&ask), Some(Occupant::InFlight { .. } | Occupant::Abandoned { .. }));
            assert!(!in_the_way || died, "a claim is left over: {ask:?}");
            let text = stored_text(world, &ask);
            self.judge_effects(world, &ask, &of_key, entry.is_some(), text.as_deref());
            final_texts.insert(ask.message_id.clone(), (entry, text));
        }

        for Seen { process, ask, turned_down, answer, durable } in seen {
            let Some(answer) = answer else { continue };
            let faults = &processes[*process].faults;
            let plan = &self.processes[*process];
            if let Some(code) = answer.refusal() {
                self.judge_refusal(&code, ask, plan, faults.total_injected() > 0, calm && claims_were_quick);
                continue;
            }
            let by_its_extractor = answer.status == 429 || answer.status == 500 && !answer.is_replay() && !durable;
            if *turned_down && by_its_extractor {
                continue;
            }
            let (entry, text) = &final_texts[&ask.message_id];
            assert!(
                !answer.whole
                    || *durable
                    // Decision 11: the client of an operation that ran has its answer, whatever becomes of it.
                    || faults.failed(StoreCall::Complete) > 0
                    || text.is_none() && entry.is_some(),
                "answered before it was durable: {answer:?}"
            );
            if let (true, true, Some(text)) = (*durable, answer.whole, text) {
                assert_eq!(&answer.body, text, "a durable answer has changed");
            }
        }

        for key in 0..KEYS {
            for other_payload in [false, true] {
                self.judge_collisions(&self.ask(key, other_payload), seen, &runs);
            }
        }
        self.probe(world, processes).await;
    }

    /// A payload all of whose requests were told that the key is another's never ran.
    fn judge_collisions(&self, ask: &Ask, seen: &[Seen], runs: &[Run]) {
        let collided =
            |seen: &Seen| seen.answer.as_ref().and_then(Answer::refusal).is_some_and(|code| code == COLLISION);
        // A process that loses its claim has run before its own client is told of the payload that took over.
        let keeps_its_claims = |seen: &Seen| {
            let plan = &self.processes[seen.process];
            plan.stop_ms.is_none() && plan.outage_ms.is_none() && plan.faults.is_empty()
        };
        let mut same = seen.iter().filter(|seen| seen.ask.params == ask.params).peekable();
        if same.peek().is_some() && same.all(|seen| collided(seen) && keeps_its_claims(seen)) {
            let payload = ask.params["payload"].as_str();
            let ran = runs.iter().any(|run| run.message_id == ask.message_id && run.payload.as_deref() == payload);
            assert!(!ran, "run after its 422: {ask:?}");
        }
    }

    /// Effects are there if, and only if, the entry that stands is the one of their attempt, and it succeeded.
    fn judge_effects(&self, world: &World, ask: &Ask, runs: &[&Run], stored: bool, text: Option<&str>) {
        let rows = world.store.rows();
        let committed: Vec<_> = runs
            .iter()
            .filter_map(|run| run.token)
            .filter(|token| rows.contains(&format!("{:?}", Some(token))))
            .collect();
        let Operation { act, .. } = &self.operations[self.number(ask)];
        match text {
            // Its answer went out before the store could be asked, which found out later: it is stored as it went out.
            Some(_) if act.fails_by_its_effect() => assert_eq!(committed, [0; 0], "half an operation wrote"),
            Some(text) if text.contains("\"error\"") => assert_eq!(committed, [0; 0], "a failed operation wrote"),
            Some(text) => {
                let [token] = committed[..] else { panic!("effects of {ask:?}: {committed:?}, answer {text}") };
                let named = text.contains(&format!("\"token\":{token}")) || text.contains(&format!("Some({token})"));
                assert!(named, "effects of another attempt: {token}, answer {text}");
            }
            None => assert!(committed.len() <= usize::from(stored), "effects without an entry: {committed:?}"),
        }
    }

    fn judge_refusal(&self, code: &str, ask: &Ask, plan: &ProcessPlan, faulty: bool, calm: bool) {
        let expected = match code {
            "IDEMPOTENCY_STORE_UNAVAILABLE" => {
                faulty || plan.outage_ms.is_some() || plan.stop_ms.is_some() || plan.drained_ms.is_some()
            }
            "IDEMPOTENCY_OUTCOME_UNKNOWN" => !calm && ask.method == CAREFUL,
            "IDEMPOTENCY_RESPONSE_NOT_RETAINED" => ask.method == STREAM,
            "IDEMPOTENCY_REQUEST_IN_PROGRESS" => true,
            "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD" => self
                .clients
                .iter()
                .any(|client| client.other_payload && self.ask(client.key, false).message_id == ask.message_id),
            _ => false,
        };
        assert!(expected, "{code} for {ask:?}");
    }

    /// Now that all is calm, every process that lives says the same of every key, promptly; and nothing is left running.
    async fn probe(&self, world: &World, processes: &[Process]) {
        let newcomer = world.process();
        for key in 0..KEYS {
            // Whatever has not been run yet is run now.
            timeout(self.bound(), newcomer.ask(&self.ask(key, false))).await.expect("a key is stuck");
            let mut expected = None;
            let open = processes.iter().zip(&self.processes).filter(|(_, plan)| plan.drained_ms.is_none());
            let open = open.map(|(process, _)| process).filter(|process| !process.faults.is_dead());
            for process in open.chain([&newcomer]) {
                process.faults.calm();
                let mut answers = Vec::new();
                for other_payload in [false, true] {
                    let ask = self.ask(key, other_payload);
                    let before = entry(world, &ask).is_some();
                    let answer = timeout(self.bound(), process.ask(&ask)).await.expect("a key is stuck");
                    assert!(!before || answer.is_replay() || answer.refusal().is_some(), "run again: {answer:?}");
                    assert!(
                        !matches!(
                            answer.refusal().as_deref(),
                            Some("IDEMPOTENCY_STORE_UNAVAILABLE" | "IDEMPOTENCY_REQUEST_IN_PROGRESS")
                        ),
                        "{answer:?}"
                    );
                    answers.push((answer.status, answer.body));
                }
                assert_eq!(*expected.get_or_insert_with(|| answers.clone()), answers);
            }
        }
        for process in processes.iter().filter(|process| !process.faults.is_dead()) {
            assert_eq!(process.idempotency.drain(seconds(60)).await, 0, "a task is left over");
        }
    }
}

impl ProcessPlan {
    fn start(&self, world: &World, started: Instant) -> Process {
        let small_memory = config().recording_memory_bytes(1_024).expect("enough");
        let process = world.process_with(match self.recording {
            Recording::InMemory => config(),
            Recording::InChunks => small_memory,
            Recording::Tombstone => small_memory.max_response_bytes(1_500),
        });
        for (&call, &fault) in &self.faults {
            process.faults.at(call, fault);
        }
        let at = move |ms: u64| started + Duration::from_millis(ms);
        if let Some((from, for_ms)) = self.outage_ms {
            let faults = process.faults.clone();
            tokio::spawn(async move {
                sleep_until(at(from)).await;
                faults.down();
                sleep_until(at(from + for_ms)).await;
                faults.up();
            });
        }
        if let Some((from, for_ms)) = self.stop_ms {
            let faults = process.faults.clone();
            tokio::spawn(async move {
                sleep_until(at(from)).await;
                faults.freeze();
                sleep_until(at(from + for_ms)).await;
                faults.thaw();
            });
        }
        if let Some(ms) = self.killed_ms {
            let faults = process.faults.clone();
            tokio::spawn(async move {
                sleep_until(at(ms)).await;
                faults.kill();
            });
        }
        if let Some(ms) = self.drained_ms {
            let idempotency = process.idempotency.clone();
            tokio::spawn(async move {
                sleep_until(at(ms)).await;
                idempotency.drain(seconds(10)).await;
            });
        }
        process
    }
}

fn entry(world: &World, ask: &Ask) -> Option<Entry> {
    match world.stored(ask) {
        Some(Occupant::Completed(entry)) => Some(entry),
        _ => None,
    }
}

/// The body that the store holds for a request; `None` for a tombstone.
fn stored_text(world: &World, ask: &Ask) -> Option<String> {
    let bytes = match entry(world, ask)?.response.body {
        StoredBody::Whole(bytes) => bytes.to_vec(),
        StoredBody::Chunked { token, chunks, rest } => {
            let mut bytes = Vec::new();
            for index in 0..chunks {
                bytes.extend_from_slice(&world.chunk(token, index));
            }
            bytes.extend_from_slice(&rest);
            bytes
        }
        StoredBody::NotRetained { .. } => return None,
    };
    Some(String::from_utf8(bytes).expect("text"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_whatever_happens(schedule in schedule()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(schedule.play());
    }
}
