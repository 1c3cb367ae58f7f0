//! The analysis on made-up crates: what is a cycle, and what is none.

use crate::cycles;
use crate::imports;
use crate::modules::Modules;
use crate::sources::Sources;
use crate::type_names;

#[test]
fn two_files_that_name_each_other_are_a_cycle() {
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;\nmod b;"),
            ("src/a.rs", "use crate::b::B;\npub struct A(B);"),
            (
                "src/b.rs",
                "pub struct B(Option<Box<crate::a::A>>);\n\nuse crate::a::A;"
            ),
        ]),
        "  cycle of 2:
    src/a.rs:1 needs crate::b::B of src/b.rs
    src/b.rs:1 needs crate::a::A of src/a.rs
"
    );
}

#[test]
fn files_that_need_each_other_one_way_are_none() {
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "use crate::{b::B, c::C};\npub struct A(B, C);"),
            ("src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("src/c.rs", "pub struct C;"),
        ]),
        ""
    );
}

#[test]
fn a_cycle_of_three_is_found_once() {
    assert_eq!(
        report(&[
            ("src/main.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "use crate::c::C as D;\npub struct B(D);"),
            ("src/c.rs", "pub struct C;\nimpl crate::a::A for C {}"),
        ])
        .lines()
        .next(),
        Some("  cycle of 3:")
    );
}

#[test]
fn a_child_needs_its_parent_through_super() {
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;"),
            (
                "src/a.rs",
                "mod b;\npub struct A;\nfn f() -> b::B { b::B(A) }"
            ),
            ("src/a/b.rs", "pub struct B(pub super::A);"),
        ]),
        "  cycle of 2:
    src/a.rs:3 needs b::B of src/a/b.rs
    src/a/b.rs:1 needs super::A of src/a.rs
"
    );
}

#[test]
fn a_parent_that_only_hands_on_what_a_child_declares_does_not_need_it() {
    let parent = "mod b;\npub(crate) use b::B;\npub(crate) use self::b::C as D;\npub struct A;";
    let child = "use super::A;\npub struct B(A);\npub struct C;";
    let files = [("src/a.rs", parent), ("src/a/b.rs", child)];
    assert_eq!(report(&[("src/lib.rs", "mod a;"), files[0], files[1]]), "");

    // A parent that also uses it does.
    let parent = format!("{parent}\nfn f(b: &B) {{}}");
    let found = report(&[("src/lib.rs", "mod a;"), ("src/a.rs", &parent), files[1]]);
    assert!(
        found.contains("src/a.rs:5 needs B of src/a/b.rs"),
        "{found}"
    );
}

#[test]
fn what_is_taken_from_a_reexport_is_needed_of_the_file_that_declares_it() {
    assert_eq!(
        report(&[
            (
                "src/lib.rs",
                "mod a;\nmod b;\npub use a::B2;\npub use a::c::C;"
            ),
            ("src/a.rs", "pub mod c;\npub use crate::b::B as B2;"),
            ("src/a/c.rs", "pub struct C(crate::B2);"),
            ("src/b.rs", "pub struct B;\nfn f() { crate::C::new() }"),
        ]),
        "  cycle of 2:
    src/a/c.rs:1 needs crate::B2 of src/b.rs
    src/b.rs:2 needs crate::C::new of src/a/c.rs
"
    );
}

#[test]
fn what_the_root_declares_is_needed_of_the_root() {
    assert_eq!(
        report(&[
            ("src/bin/b.rs", "mod a;\nfn f() {}\nfn main() { a::g(); }"),
            ("src/bin/a.rs", "use crate::f;\npub fn g() { f() }"),
        ]),
        "  cycle of 2:
    src/bin/a.rs:1 needs crate::f of src/bin/b.rs
    src/bin/b.rs:3 needs a::g of src/bin/a.rs
"
    );
}

#[test]
fn an_impl_needs_the_file_of_its_type() {
    let found = report(&[
        ("src/lib.rs", "mod a;\nmod b;"),
        (
            "src/a.rs",
            "pub struct A;\nuse crate::b;\nfn f() { b::help() }",
        ),
        (
            "src/b.rs",
            "use crate::*;\nimpl a::A { fn m(&self) {} }\npub fn help() {}",
        ),
    ]);
    assert!(
        found.contains("src/b.rs:2 needs a::A of src/a.rs"),
        "{found}"
    );
    assert!(
        found.contains("src/a.rs:3 needs b::help of src/b.rs"),
        "{found}"
    );
}

#[test]
fn a_glob_is_followed_and_is_an_import() {
    let found = report(&[
        ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
        ("src/a.rs", "use crate::c::*;\npub struct A(B);"),
        ("src/b.rs", "use crate::a::A;\npub struct B;"),
        ("src/c.rs", "pub use crate::b::*;"),
    ]);
    assert!(found.contains("src/a.rs:2 needs B of src/b.rs"), "{found}");
}

#[test]
fn an_inline_module_belongs_to_its_file() {
    assert_eq!(
        report(&[
            (
                "src/lib.rs",
                "mod a;\nmod b { pub mod c; pub mod d { pub struct D; } }"
            ),
            (
                "src/a.rs",
                "pub struct A(crate::b::d::D);\nmod e { use super::A; }"
            ),
            ("src/b/c.rs", "use super::d::D;\nfn f(_: crate::a::A) {}"),
        ]),
        ""
    );
}

#[test]
fn to_name_a_module_is_not_to_need_it() {
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;\nmod b;"),
            (
                "src/a.rs",
                "use crate::b;\nuse crate::b::{self as c};\npub struct A;"
            ),
            ("src/b.rs", "use super::a::{self, A};"),
        ]),
        ""
    );
}

#[test]
fn tests_may_name_anything() {
    let a = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse crate::b::B;\n\
             #[cfg(all(test, unix))]\nfn f() -> crate::b::B {}\npub struct A;\n\
             impl A { #[cfg(test)] fn g() -> crate::b::B {} }\n\
             #[cfg(test)]\nmod inline { use crate::b::B; }";
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;\nmod b;"),
            ("src/a.rs", a),
            ("src/a/tests.rs", "use crate::b::B;"),
            ("src/b.rs", "use crate::a::A;\npub struct B(A);"),
        ]),
        ""
    );
    let a = a.replace("#[cfg(test)]\nuse", "#[cfg(not(test))]\nuse");
    let found = report(&[
        ("src/lib.rs", "mod a;\nmod b;"),
        ("src/a.rs", &a),
        ("src/a/tests.rs", ""),
        ("src/b.rs", "use crate::a::A;\npub struct B(A);"),
    ]);
    assert!(found.contains("src/a.rs:4 needs crate::b::B"), "{found}");
}

#[test]
fn other_crates_are_no_files_of_this_one() {
    assert_eq!(
        report(&[
            ("src/lib.rs", "mod a;\nmod fmt;"),
            (
                "src/a.rs",
                "use ::fmt::X;\nuse std::fmt::Debug;\nuse other::fmt::Y;\npub struct A;"
            ),
            (
                "src/fmt.rs",
                "use crate::a::A;\npub struct X;\npub struct Y;\nuse tokio;"
            ),
        ]),
        ""
    );
}

#[test]
fn a_name_that_is_declared_twice_is_found_with_both_places() {
    let sources = Sources::from_texts(&[
        (
            "a.rs",
            "pub struct A;\n\nstruct Alone;\nimpl I for A { type Alone = A; }",
        ),
        (
            "b.rs",
            "mod inline {\n    enum A {}\n}\ntrait I { type Alone; }\nfn f(A: u8) {}",
        ),
        (
            "c.rs",
            "#[cfg(test)]\nmod tests { fn f() { struct I; type B = u8; } }\nunion B {}",
        ),
    ]);
    let found: Vec<_> = type_names::met_twice(&sources).into_iter().collect();
    let places = |list: &[&str]| list.iter().map(|place| (*place).to_owned()).collect();
    assert_eq!(
        found,
        [
            ("A".to_owned(), places(&["a.rs:1", "b.rs:2"])),
            ("B".to_owned(), places(&["c.rs:2", "c.rs:3"])),
            ("I".to_owned(), places(&["b.rs:4", "c.rs:2"])),
        ] as [(String, Vec<String>); 3]
    );
}

/// The cycles of the crate whose files these are, the first its root.
fn report(files: &[(&str, &str)]) -> String {
    let sources = Sources::from_texts(files);
    let imports = imports::between_files(&Modules::of_crate(&sources, files[0].0));
    let cycles = cycles::all(&imports);
    let describe = |cycle: &Vec<&str>| cycles::describe(cycle, &imports);
    cycles.iter().map(describe).collect()
}
