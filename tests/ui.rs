//! What compiles, and what the compiler says where something does not.
//!
//! Each file of `tests/ui/fail` makes the one mistake that it is named after; the `.stderr` beside it is what a user reads.
//! `TRYBUILD=overwrite cargo test --test ui` writes them anew: read each before it is committed.

#[test]
fn annotations_that_are_right_compile_and_the_others_say_why() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
