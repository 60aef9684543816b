//! What the documents promise: every block of `console` in the guide and in `tests/cmd` is run, and
//! must print what stands there. `TRYCMD=overwrite` writes what is printed.

#[test]
fn commands_print_what_the_documents_say() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .case("tests/cmd/*.md")
        .case("../../README.md")
        .case("../../docs/src/*.md");
}
