//! Documents at random, and one of the many ways to write each.

use crate::reference::Tree;

/// xorshift64*: fast, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((self.bits() >> 11) % end as u64) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A value of any kind, nested up to `depth` deep.
pub fn tree(random: &mut Random, depth: usize) -> Tree {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Tree::Null,
        1 => Tree::Bool(random.one_in(2)),
        2 | 3 => Tree::Number(number(random)),
        4 | 5 => Tree::String(string(random)),
        6 => Tree::Array((0..random.below(6)).map(|_| tree(random, depth - 1)).collect()),
        _ => object(random, depth - 1),
    }
}

fn object(random: &mut Random, depth: usize) -> Tree {
    let size = if random.one_in(200) { 60 } else { 6 };
    let mut members: Vec<(String, Tree)> = Vec::new();
    for _ in 0..random.below(size) {
        let name = name(random);
        if members.iter().all(|member| member.0 != name) {
            members.push((name, tree(random, depth)));
        }
    }
    Tree::Object(members)
}

/// A JSON-RPC request; its key is missing, or of another type, now and then.
pub fn request(random: &mut Random) -> Tree {
    let mut message = object(random, 2);
    let mut params = object(random, 2);
    if !random.one_in(10) {
        let id = if random.one_in(10) { tree(random, 1) } else { Tree::String(string(random)) };
        insert(&mut message, "messageId", id);
    }
    if !random.one_in(10) {
        insert(&mut params, "message", message);
    }
    let mut request = object(random, 1);
    insert(&mut request, "params", params);
    insert(&mut request, "method", Tree::String(string(random)));
    request
}

fn insert(object: &mut Tree, name: &str, value: Tree) {
    if let Tree::Object(members) = object {
        members.retain(|member| member.0 != name);
        members.push((name.to_owned(), value));
    }
}

fn name(random: &mut Random) -> String {
    const NAMES: [&str; 16] = [
        "message",
        "messageId",
        "message/Id",
        "params",
        "kind",
        "a",
        "b",
        "ab",
        "",
        "~",
        "role",
        "$serde_json::private::Number",
        "$serde_json::private::RawValue",
        "longerThanEightBytes",
        "longerThanEightByteZ",
        "\u{e000}",
    ];
    if random.one_in(2) { random.pick(&NAMES).to_owned() } else { string(random) }
}

fn string(random: &mut Random) -> String {
    const CHARACTERS: [char; 24] = [
        'a',
        'b',
        'Z',
        '0',
        ' ',
        '/',
        '"',
        '\\',
        '\n',
        '\t',
        '\u{0}',
        '\u{8}',
        '\u{c}',
        '\u{1f}',
        '\u{7f}',
        'é',
        '\u{7ff}',
        '€',
        '\u{d7ff}',
        '\u{e000}',
        '\u{feff}',
        '\u{ffff}',
        '\u{10000}',
        '\u{10ffff}',
    ];
    let length = match random.below(100) {
        0 => random.below(400),
        1..=10 => random.below(40),
        _ => random.below(8),
    };
    let plain = random.one_in(2);
    (0..length).map(|_| if plain { random.pick(&CHARACTERS[..6]) } else { random.pick(&CHARACTERS) }).collect()
}

fn number(random: &mut Random) -> f64 {
    const TWO_53: f64 = 9_007_199_254_740_992.0;
    let magnitude = match random.below(8) {
        0 => random.below(100) as f64,
        1 => random.below(1_000_000) as f64 / 100.0,
        2 => random.bits() as f64,
        3 => TWO_53 + random.below(64) as f64 - 32.0,
        4 => 10f64.powi(random.below(40) as i32 - 12),
        5 => random.below(1 << 20) as f64 * 2f64.powi(random.below(200) as i32 - 60),
        6 => f64::from_bits(random.bits() >> 12),
        _ => f64::from_bits(random.bits() & !(1 << 63)),
    };
    let magnitude = if magnitude.is_finite() { magnitude } else { f64::MAX };
    if random.one_in(4) { -magnitude } else { magnitude }
}

/// Writes a value as somebody might: members in any order, white space anywhere, escapes where none are needed.
pub fn write(random: &mut Random, tree: &Tree) -> String {
    let mut out = String::new();
    let style = Style { spaces: random.one_in(2), escapes: random.pick(&[0, 0, 8, 1]) };
    style.write(random, tree, &mut out);
    out
}

struct Style {
    spaces: bool,
    /// One in so many characters is escaped without need; 0 for none.
    escapes: usize,
}

impl Style {
    fn space(&self, random: &mut Random, out: &mut String) {
        while self.spaces && random.one_in(4) {
            out.push(random.pick(&[' ', '\n', '\r', '\t']));
        }
    }

    fn write(&self, random: &mut Random, tree: &Tree, out: &mut String) {
        self.space(random, out);
        match tree {
            Tree::Null => out.push_str("null"),
            Tree::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Tree::Number(value) => out.push_str(&write_number(random, *value)),
            Tree::String(value) => self.string(random, value, out),
            Tree::Array(elements) => {
                out.push('[');
                self.list(random, elements.iter(), out, |random, element, out| self.write(random, element, out));
                out.push(']');
            }
            Tree::Object(members) => {
                let mut order: Vec<&(String, Tree)> = members.iter().collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, random.below(last + 1));
                }
                out.push('{');
                self.list(random, order.into_iter(), out, |random, (name, value), out| {
                    self.space(random, out);
                    self.string(random, name, out);
                    self.space(random, out);
                    out.push(':');
                    self.write(random, value, out);
                });
                out.push('}');
            }
        }
        self.space(random, out);
    }

    fn list<T>(
        &self,
        random: &mut Random,
        items: impl Iterator<Item = T>,
        out: &mut String,
        mut write: impl FnMut(&mut Random, T, &mut String),
    ) {
        self.space(random, out);
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push(',');
            }
            write(random, item, out);
        }
    }

    fn string(&self, random: &mut Random, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            let short = SHORT_ESCAPES.iter().find(|escape| escape.0 == character).map(|escape| escape.1);
            let needed = character < ' ' || character == '"' || character == '\\';
            let wanted = self.escapes > 0 && random.one_in(self.escapes);
            match short {
                _ if !needed && !wanted => out.push(character),
                Some(letter) if !random.one_in(4) => {
                    out.push('\\');
                    out.push(letter);
                }
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        let digits = if random.one_in(2) { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
                        out.push_str(&digits);
                    }
                }
            }
        }
        out.push('"');
    }
}

const SHORT_ESCAPES: [(char, char); 8] =
    [('"', '"'), ('\\', '\\'), ('/', '/'), ('\u{8}', 'b'), ('\u{c}', 'f'), ('\n', 'n'), ('\r', 'r'), ('\t', 't')];

/// One of the tokens whose nearest double is `value`.
fn write_number(random: &mut Random, value: f64) -> String {
    let token = match random.below(7) {
        0 => format!("{value:e}"),
        1 => format!("{value:E}").replace('E', "E+").replace("E+-", "E-"),
        2 => format!("{value:.3}"),
        3 => format!("{value:.30}"),
        4 => format!("{value:.0}"),
        5 => {
            // An integer that no double equals, if the value is large enough.
            let mut digits = format!("{value:.0}");
            let last = digits.pop().unwrap_or('0');
            digits.push(if last < '9' { char::from(last as u8 + 1) } else { '8' });
            digits
        }
        _ => format!("{value}"),
    };
    if token.parse() == Ok(value) { token } else { format!("{value:e}") }
}
