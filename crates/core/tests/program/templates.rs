//! Texts: what passes unharmed, what is evaluated.

use proptest::prelude::*;

use crate::{echoed, facts, job, steps};

/// An `echo` of this text, which is written as a TOML literal.
fn echo(text: &str) -> String {
    let program = steps(&format!("[[step]]\necho = '''\n{text}'''\n"));
    echoed(&program, facts())
}

#[test]
fn only_double_braces_are_special() {
    for text in [
        "echo ${#x} ${x%.*} ${x#*/}",
        "{% if x %} {# comment #} {%- raw -%}",
        "awk '{ print $1 }' | sed 's/}}/x/' # not a line statement",
        "a\n\nb\n\n",
        "{ { not } }",
        "100 % of { it }",
    ] {
        assert_eq!(echo(text), text);
    }
    let control = steps("[[step]]\necho = \"\\u0001\\u0002\\u007f\"\n");
    assert_eq!(echoed(&control, facts()), "\u{1}\u{2}\u{7f}");
}

#[test]
fn double_braces_are_evaluated_and_can_be_escaped() {
    assert_eq!(echo("a {{ 1 + 1 }}{{ index }} b\n"), "a 20 b\n");
    assert_eq!(echo("{{ '{{' }} {{ '}}' }}"), "{{ }}");
    assert_eq!(echo("{{ {'a': {'b': 3}}.a.b }}"), "3");
    assert_eq!(echo("{{ '%04d' | format(7) }}-{{ '%s.%s'|format('a', 1.5) }}"), "0007-a.1.5");
    assert_eq!(echo("a  {{- 1 -}}  b"), "a1b");
    assert_eq!(echo("{{ -1 }}{{ 2 -1 }}"), "-11");
}

#[test]
fn html_is_not_escaped() {
    assert_eq!(echo("{{ '<a href=\"x\">&' }}"), "<a href=\"x\">&");
}

#[test]
fn parameters_keep_their_types() {
    let program = job(r#"
        [job]
        workers = 1
        [params]
        n = 3
        x = 0.5
        names = ["a", "b"]
        size = { w = 640, h = 480 }
        [[step]]
        echo = "{{ n * 2 }} {{ n + x }} {{ names[1] }} {{ names|length }} {{ size.w // size.h }}"
        "#);
    assert_eq!(echoed(&program, facts()), "6 3.5 b 2 1");
}

#[test]
fn nothing_of_the_engine_or_the_machine_can_be_reached() {
    for name in ["debug()", "namespace()", "self", "loop", "env", "cores", "now()"] {
        let text = format!("[job]\nworkers = 1\n[[step]]\necho = \"{{{{ {name} }}}}\"\n");
        let errors = crate::wrong(&text);
        assert!(errors.contains("is not bound"), "{name}: {errors}");
    }
}

proptest! {
    #[test]
    fn text_without_double_braces_passes_unharmed(text in "[^\r'\\pC]{0,40}|[{}%#$a \n-]{0,40}") {
        prop_assume!(!text.contains("{{") && !text.contains("'''"));
        prop_assert_eq!(echo(&text), text);
    }

    #[test]
    fn a_text_in_an_expression_comes_out_as_it_is(text in "[a-zA-Z0-9 {}%#.,]{0,30}") {
        prop_assert_eq!(echo(&format!("<{{{{ \"{text}\" }}}}>")), format!("<{text}>"));
    }
}
