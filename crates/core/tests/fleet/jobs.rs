//! The jobs of these tests.

pub(crate) const ONE: &str = r#"
[job]
workers = 1
timeout = "1h"
[[step]]
run = "true"
"#;

pub(crate) const QUEUE: &str = r#"
[job]
workers = 3
items = { range = "10" }
at_once = 3
timeout = "1h"
[[step]]
state = "work"
run = "true"
[[step]]
state = "upload"
put = "out"
as = "out/{{ item }}"
"#;

pub(crate) const WAVES: &str = r#"
[[wave]]
name = "split"
workers = 5
at_once = 2
connect_timeout = "10s"
timeout = "60s"
[[wave.step]]
for = { k = "range(3)" }
do = [{ run = "true {{ k }}" }]

[[wave]]
name = "merge"
after = ["split"]
workers = 1
[[wave.step]]
sleep = "1s"
"#;

pub(crate) const LISTS: &str = r#"
[job]
workers = 2
items = { range = "3" }
timeout = "1h"
[[step]]
state = "list"
for = { k = "range(30)" }
pipelined = true
do = [{ echo = "{{ k }}" }, { if = "k % 7 == 0", state = "run", run = "true" }]
on_error = [{ state = "mend", run = "true" }]
[[step]]
state = "brief"
timeout = "3s"
pipelined = true
do = [{ put = "a", as = "{{ item }}/a" }, { run = "true" }, { put = "b", as = "{{ item }}/b" }]
"#;

pub(crate) const LANES: &str = r#"
[job]
workers = 3
items = { range = "5" }
timeout = "1h"
[[step]]
state = "both"
timeout = "20s"
on_error = [{ state = "mend", run = "true" }]
[step.parallel]
a = [{ for = { k = "range(3)" }, do = [{ run = "true" }, { state = "put", put = "a", as = "{{ item }}/{{ k }}" }] }]
b = [{ pipelined = true, do = [{ echo = "1" }, { run = "true" }, { echo = "3" }] }, { sleep = "1s" }]
[[step]]
do = [{ name = "zip", state = "zip", run = "zip", background = true }, { name = "daemon", sleep = "9s", background = true }, { run = "true" }, { await = "zip", timeout = "5s" }]
[[step]]
state = "race"
first = true
parallel = { a = [{ run = "true" }, { run = "true" }], b = [{ parallel = { c = [{ run = "true" }], d = [{ echo = "d" }] } }] }
"#;

pub(crate) const INFOS: &str = r#"
[job]
workers = 3
timeout = "1h"
[[step]]
name = "server"
run = "serve"
background = true
[[step]]
parallel = { a = [{ wait_info = "x", timeout = "9s" }], b = [{ run = "true" }] }
[[step]]
echo = "{{ info.x }}"
[[step]]
wait_info = "x"
"#;

pub(crate) const BARRIERS: &str = r#"
[job]
workers = 5
timeout = "1h"
[[step]]
run = "true"
[[step]]
for = { k = "range(3)" }
do = [{ barrier = "round" }, { run = "true", on_error = [{ echo = "mend" }] }]
[[step]]
barrier = "brief"
timeout = "2s"
on_error = [{ echo = "alone" }]
"#;
