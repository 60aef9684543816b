//! `musec map` with the real binary: order, odd names, delivery, failures, pipes.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::{Output, Stdio};
use std::time::Duration;

use support::watchdog::Watched;
use support::{Place, names, text};

/// `musec map` with these items on its standard input.
fn map(place: &Place, items: &[u8], words: &[&str]) -> Output {
    let mut command = place.musec(&[&["map"], words].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut musec = place.watch(&mut command);
    let mut stdin = musec.stdin();
    let items = items.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&items)));
    let output = musec.output();
    writer.join().expect("written");
    output
}

fn place() -> Place {
    Place::new("")
}

fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}

#[test]
fn outputs_come_in_the_order_of_items_whatever_order_they_end_in() {
    let place = place();
    let items = b"0.4\n0\n0.2\n0\n";
    let output = map(&place, items, &["-j4", "-", "--", "sleep {in}; echo {index} {in}"]);
    assert_code(&output, 0);
    assert_eq!(text(&output.stdout), "0 0.4\n1 0\n2 0.2\n3 0\n");
    let report = text(&output.stderr);
    assert!(report.contains("done in"), "the report is on standard error: {report}");
    place.assert_nothing_left(Duration::from_secs(10));
}

#[test]
fn odd_items_arrive_unharmed_as_arguments_and_in_a_shell() {
    let place = place();
    let odd: [&[u8]; 9] = [
        b"two words",
        b"a\nb",
        b"it's",
        b"\"$HOME\" `id` \\",
        b"\xff\xfe",
        b"-n",
        b"100%41",
        b"*;&|",
        b"",
    ];
    let items = odd.join(&0);
    let items = [items.as_slice(), b"\0"].concat();
    let wanted: Vec<u8> = odd.iter().flat_map(|item| [b"[", *item, b"]"].concat()).collect();
    let ways: [&[&str]; 5] = [
        &["-q", "-0", "-", "--", "printf", "[%s]", "{in}"],
        &["-q", "-0", "-", "--", "printf", "[%s]"],
        &["-q", "-0", "-", "--", "printf '[%s]' {in}"],
        &["-q", "-0", "-", "--", "printf '[%s]' \"{in}\""],
        &["-q", "-0", "-", "--", "printf '[%s]' '{in}'"],
    ];
    for words in ways {
        let output = map(&place, &items, words);
        assert_code(&output, 0);
        assert_eq!(output.stdout, wanted, "{words:?}: {}", text(&output.stdout));
    }
}

#[test]
fn files_with_odd_names_are_found_and_delivered() {
    let place = place();
    fs::create_dir(place.path("in")).expect("made");
    let odd: [&[u8]; 4] = [b"a b.txt", b"new\nline.txt", b"\xff.txt", b"plain.txt"];
    for name in odd {
        let path = place.path("in").join(std::ffi::OsStr::from_bytes(name));
        fs::write(path, name).expect("written");
    }
    let put = ["-q", "-i", "in/*.txt", "--put", "out/deep/{stem}.copy.{ext}"];
    let output = map(&place, b"", &[&put[..], &["--", "cp", "{in}", "{out}"]].concat());
    assert_code(&output, 0);
    for name in odd {
        let stem = name.strip_suffix(b".txt").expect("a stem");
        let copy = [stem, b".copy.txt"].concat();
        let path = place.path("out/deep").join(std::ffi::OsStr::from_bytes(&copy));
        assert_eq!(fs::read(&path).expect("delivered"), name, "{path:?}");
    }
    assert_eq!(names(&place.path("out/deep")).len(), odd.len(), "nothing but the files");
}

#[test]
fn a_failed_item_is_told_and_the_others_still_run() {
    let place = place();
    let script = "echo out {in}; test {in} != b || { echo last words >&2; exit 3; }";
    let output = map(&place, b"a\nb\nc\n", &["-q", "-j1", "--", script]);
    assert_code(&output, 1);
    assert_eq!(text(&output.stdout), "out a\nout b\nout c\n");
    let told = text(&output.stderr);
    for words in ["item 1 (b)", "exit code 3", "last words"] {
        assert!(told.contains(words), "{words} in {told}");
    }
}

#[test]
fn an_item_without_its_file_fails_and_names_it() {
    let place = place();
    let script = "test {in} = b || echo {in} > {out}";
    let words = ["-q", "--put", "out/{in}.txt", "--", script];
    let output = map(&place, b"a\nb\nc\n", &words);
    assert_code(&output, 1);
    let told = text(&output.stderr);
    assert!(told.contains("item 1 (b)") && told.contains("b.txt"), "{told}");
    assert_eq!(names(&place.path("out")), ["a.txt", "c.txt"]);
}

#[test]
fn what_an_item_leaves_in_its_scratch_folder_is_gone_for_the_next() {
    let place = place();
    let output = map(&place, b"1\n2\n3\n", &["-q", "-j1", "--", "ls; touch left-{in}"]);
    assert_code(&output, 0);
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn long_outputs_are_printed_whole() {
    let place = place();
    let script = "yes {in} | head -c 1048576; echo; echo end {in}";
    let output = map(&place, b"a\nb\nc\n", &["-q", "-j2", "--", script]);
    assert_code(&output, 0);
    let wanted: String = ["a", "b", "c"]
        .map(|item| format!("{}\nend {item}\n", format!("{item}\n").repeat(524_288)))
        .concat();
    assert!(output.stdout == wanted.as_bytes(), "{} bytes", output.stdout.len());
}

#[test]
fn without_a_place_for_scratch_folders_that_is_told_and_nothing_else() {
    let place = place();
    let mut command = place.musec(&["map", "--", "echo {in}"]);
    command.env("TMPDIR", "/nowhere").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut musec = place.watch(command.stderr(Stdio::piped()));
    musec.stdin().write_all(b"1\n").expect("written");
    let output = musec.output();
    assert_code(&output, 3);
    let told = text(&output.stderr);
    assert!(told.contains("cannot start the local launcher in /nowhere/musec-"), "{told}");
    assert!(!told.contains("journal"), "{told}");
    assert!(names(&place.path(".musec/runs")).is_empty(), "nothing was launched");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let place = place();
    let mut command = place.musec(&["map", "-j2", "--", "echo {in}; sleep 0.05"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("musec starts");
    let items: String = (0..5_000).map(|item| format!("{item}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(items.as_bytes()).expect("written");
    drop(stdin);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "0\n");
    drop(stdout);
    let output = Watched::new(&place, child).output();
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    assert!(!told.contains("error") && !told.contains("panicked"), "{told}");
    place.assert_nothing_left(Duration::from_secs(10));
}

#[test]
fn two_thousand_items_are_done_by_one_set_of_workers() {
    let place = place();
    let items: String = (0..2_000).map(|item| format!("{item}\n")).collect();
    let output = map(&place, items.as_bytes(), &["-j2", "--format", "json", "--", "echo"]);
    assert_code(&output, 0);
    assert_eq!(text(&output.stdout), items);
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON alone");
    assert_eq!(report["workers"]["done"], 2);
    let commands = report["commands"].as_array().expect("commands");
    let run = commands.iter().find(|command| command["command"] == "run").expect("runs");
    assert_eq!(run["count"], 2_000);
    let between = commands.iter().any(|command| command["command"] == "clean");
    assert!(!between, "nothing is sent between items");
    support::assert_conserved(&report);
}

#[test]
fn an_item_that_takes_too_long_fails_alone() {
    let place = place();
    let words = ["-q", "-j1", "--timeout", "300ms", "--", "sleep {in}; echo {in}"];
    let output = map(&place, b"0\n30\n0\n", &words);
    assert_code(&output, 1);
    assert_eq!(text(&output.stdout), "0\n0\n");
    assert!(text(&output.stderr).contains("item 1 (30)"), "{}", text(&output.stderr));
}

#[test]
fn wrong_usage_says_what_to_do() {
    let place = place();
    let cases: [(&[u8], &[&str], &str); 7] = [
        (
            b"a\n",
            &["--put", "s3://bucket/{stem}", "--", "cp", "{in}", "{out}"],
            "not yet supported",
        ),
        (b"a\n", &["--", "cp", "{in}", "{out}"], "--put"),
        (b"a\n", &["--put", "o/{stem}", "--", "cat"], "{out}"),
        (b"a\nb\n", &["--put", "one", "--", "cp", "{in}", "{out}"], "items 0 and 1"),
        (b"a\0b\n", &["--", "echo"], "-0"),
        (b"", &["-i", "none/*.png", "--", "echo"], "no file matches"),
        (b"", &["-i", "a.png", "b.png", "--", "echo"], "quote a glob"),
    ];
    for (items, words, wanted) in cases {
        let output = map(&place, items, words);
        assert_code(&output, 2);
        let told = text(&output.stderr);
        assert!(told.contains(wanted), "{words:?}: {told}");
    }
    let nothing = map(&place, b"", &["--", "echo"]);
    assert_code(&nothing, 0);
    assert_eq!(text(&nothing.stderr), "no items: nothing to do\n");
}

/// From nothing to an answer: a folder of images, one line, a folder of results.
#[test]
fn two_hundred_images_become_negatives_with_one_line() {
    let place = place();
    fs::create_dir(place.path("frames")).expect("made");
    let header = b"P6\n4 2\n255\n";
    for number in 0..200_u8 {
        let pixels: Vec<u8> = (0..24).map(|at: u8| number ^ at).collect();
        let path = place.path(&format!("frames/{number:03}.ppm"));
        fs::write(path, [&header[..], &pixels].concat()).expect("written");
    }
    // The negative of each byte, by POSIX tools alone: the header stays, the pixels are mirrored.
    let from: String = (0..=255).map(|byte| format!("\\{byte:03o}")).collect();
    let to: String = (0..=255).rev().map(|byte| format!("\\{byte:03o}")).collect();
    let script = format!(
        "{{ head -c 11 {{in}}; tail -c +12 {{in}} | LC_ALL=C tr '{from}' '{to}'; }} > {{out}}"
    );
    let words = ["-q", "-i", "frames/*.ppm", "--put", "out/{stem}.neg.ppm", "--", &script];
    let output = map(&place, b"", &words);
    assert_code(&output, 0);
    assert_eq!(names(&place.path("out")).len(), 200);
    for number in 0..200_u8 {
        let wanted: Vec<u8> = (0..24).map(|at: u8| 255 - (number ^ at)).collect();
        let file = fs::File::open(place.path(&format!("out/{number:03}.neg.ppm"))).expect("there");
        let mut image = vec![0; 35];
        file.read_exact_at(&mut image, 0).expect("whole");
        assert_eq!(image, [&header[..], &wanted].concat(), "image {number}");
    }
}

#[test]
fn objects_are_fetched_and_runs_removed_but_for_the_newest() {
    let place = Place::new(
        "[job]\nworkers = 2\n[[step]]\nrun = \"echo {{ index }} > o.txt\"\n[[step]]\nput = \"o.txt\"\nas = \"deep/{{ index }}.txt\"\n",
    );
    for _ in 0..3 {
        assert_code(&place.run(&["run", "job.toml", "-q"]), 0);
    }
    let fetched = place.run(&["fetch", "latest", "deep/1*", "-o", "got"]);
    assert_code(&fetched, 0);
    assert!(text(&fetched.stderr).starts_with("1 object, 2 B"), "{}", text(&fetched.stderr));
    assert_eq!(fs::read(place.path("got/deep/1.txt")).expect("there"), b"1\n");
    assert_eq!(names(&place.path("got/deep")), ["1.txt"]);
    assert_code(&place.run(&["fetch", "latest", "none/*", "-o", "got"]), 2);
    let removed = place.run(&["gc", "--keep", "2"]);
    assert!(text(&removed.stderr).starts_with("removed 1 run, freed"), "{}", text(&removed.stderr));
    assert_eq!(names(&place.path(".musec/runs")).len(), 2);
    assert_code(&place.run(&["rm", "latest"]), 0);
    assert_eq!(names(&place.path(".musec/runs")).len(), 1);
}

#[test]
fn a_run_under_way_is_followed_and_not_removed() {
    let place = Place::new(
        "[job]\nworkers = 1\n[[step]]\nrun = \"echo early; sleep 987\"\n[[step]]\nrun = \"true\"\n",
    );
    let mut child = place.start(&["-q"]);
    place.await_processes("sleep 987", 1);
    let refused = place.run(&["rm", "latest"]);
    assert_code(&refused, 2);
    assert!(text(&refused.stderr).contains("under way"), "{}", text(&refused.stderr));
    let kept = place.run(&["gc", "--keep", "0"]);
    assert!(text(&kept.stderr).starts_with("removed 0 runs"), "{}", text(&kept.stderr));
    let mut follow = place.musec(&["logs", "-f"]);
    let follow = place.watch(follow.stdout(Stdio::piped()));
    support::kill("INT", child.id());
    child.wait().expect("it ends");
    let output = follow.output();
    assert!(text(&output.stdout).contains("early"), "{}", text(&output.stdout));
}

#[test]
fn a_graph_has_waves_branches_and_loops() {
    let place = Place::new(
        "[job]\nworkers = 1\n[[step]]\nfor = { k = \"range(3)\" }\ndo = [{ run = \"a\" }]\n\
         [[step]]\nif = \"index == 0\"\nrun = \"b\"\nelse = [{ run = \"c\" }]\n",
    );
    let dot = text(&place.run(&["graph", "job.toml", "--format", "dot"]).stdout);
    for part in ["digraph", "[label=\"each\"]", "[label=\"yes\"]", "[label=\"no\"]", "diamond"] {
        assert!(dot.contains(part), "{part} in {dot}");
    }
    let mermaid = text(&place.run(&["graph", "job.toml"]).stdout);
    assert!(mermaid.starts_with("flowchart TD\n"), "{mermaid}");
    assert_eq!(mermaid.matches("-->").count(), dot.matches("->").count(), "{mermaid}");
}

#[test]
fn a_dry_run_tells_what_would_be_launched_and_makes_nothing() {
    let place = Place::new(
        "[job]\nfiles = [\"tool\"]\n[[wave]]\nname = \"a\"\nitems = \"in:*.txt\"\nworkers = 2\n\
         at_once = 2\n[[wave.step]]\nrun = \"cat {{ name }}\"\n[[wave]]\nname = \"b\"\n\
         after = [\"a\"]\nitems = \"out/*\"\n[[wave.step]]\nrun = \"cat {{ name }}\"\n",
    );
    for name in ["tool", "x.txt", "y.txt", "z.txt"] {
        fs::write(place.path(name), "text").expect("written");
    }
    let output = place.run(&["run", "job.toml", "--dry-run", "--format", "json"]);
    assert_code(&output, 0);
    let dry = support::json(&output);
    assert_eq!(dry["waves"][0]["workers"], 2, "{dry}");
    assert_eq!(dry["waves"][0]["items"], 3, "{dry}");
    assert_eq!(dry["waves"][1]["known_at_run_time"], true, "{dry}");
    assert_eq!(dry["files"][0]["bytes"], 4, "{dry}");
    let human = text(&place.run(&["run", "job.toml", "--dry-run"]).stdout);
    assert!(human.contains("2 workers") && human.contains("known at run time"), "{human}");
    assert!(!place.path(".musec").exists());
}

#[test]
fn only_the_chosen_workers_are_launched() {
    let place = Place::new(
        "[job]\nworkers = 20\nresults = \"got/\"\n[[step]]\nrun = \"echo > o\"\n[[step]]\n\
         put = \"o\"\nas = \"{{ index }}\"\n",
    );
    assert_code(&place.run(&["run", "job.toml", "-q", "--only", "17,3"]), 0);
    assert_eq!(names(&place.path("got")), ["17", "3"]);
}
