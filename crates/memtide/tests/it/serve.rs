//! `memtide serve` as its clients meet it: a real server, asked over sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::export::{families, has_python_client};
use crate::prometheus::{Prometheus, Scraped};
use crate::record::{Running, until};
use crate::support::{checked, file, has, json, memtide, promtool_minds, root, stderr};

const THRASH: &str = "corpus/captures/swap-thrash--512m-swapdisk/capture.jsonl.gz";

/// A server that is ended with its test.
pub(crate) struct Serving {
    pub(crate) child: Child,
    port: u16,
    said: Arc<Mutex<String>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn of(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head: head.to_lowercase(), body: bytes[end + 4..].to_vec() })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }

    /// JSON that follows its published schema.
    fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        checked(serde_json::from_slice(&self.body).unwrap())
    }
}

impl Serving {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::in_environment(arguments, &[])
    }

    fn in_environment(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(root())
            .env("TZ", "UTC")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (lines, all) =
            (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                all.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let mut serving = Self { child, port: 0, said };
        until("the server", || {
            let said = serving.said();
            let address = said.split_once("http://127.0.0.1:").map(|(_, rest)| rest.to_owned());
            let port = address.and_then(|rest| rest.split('/').next()?.parse().ok());
            assert!(serving.child.try_wait().unwrap().is_none(), "{said}");
            serving.port = port.unwrap_or_default();
            serving.port > 0
        });
        serving
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes, and returns what comes until the server closes. A client that is `brief` sends no more, and says so after
    /// a moment: the server may wait for the rest.
    fn sent(&self, request: &[u8], is_brief: bool) -> Option<Reply> {
        let mut stream = self.connect();
        // The server may have closed already.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        if is_brief {
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let _ = stream.read_to_end(&mut answer);
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let _ = stream.shutdown(Shutdown::Write);
        }
        let _ = stream.read_to_end(&mut answer);
        Reply::of(&answer)
    }

    fn raw(&self, request: &[u8]) -> Option<Reply> {
        self.sent(request, false)
    }

    pub(crate) fn asked(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let reply = self.raw(format!("{request}\r\n{body}").as_bytes());
        reply.unwrap_or_else(|| panic!("no answer to {method} {path}: {}", self.said()))
    }

    fn get(&self, path: &str) -> Reply {
        self.asked("GET", path, &[], "")
    }

    fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Ends it by a signal.
    fn end(mut self) -> (ExitStatus, String) {
        let kill = ["-c", "kill -TERM \"$0\"", &self.child.id().to_string()];
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        let status = self.child.wait().unwrap();
        (status, self.said())
    }
}

#[test]
fn a_capture_is_served_with_the_answers_of_the_command_line() {
    let serving = Serving::start(&[THRASH]);
    let page = serving.get("/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("id=\"memtide-page\" data-url=\"data\""), "{}", page.head);
    assert!(page.text().contains("swap-thrash"));
    let data = serving.get("/data");
    assert!(data.text().starts_with("{\"format\":\"memtide-page/1\""), "{}", data.head);
    let tag = data.header("etag").to_owned();
    let again = serving.asked("GET", "/data", &[("If-None-Match", &tag)], "");
    assert_eq!((again.status, again.body.len()), (304, 0));

    let same = |path: &str, arguments: &[&str]| {
        let served = serving.get(path).json();
        let file = root().join(THRASH);
        let mut typed = vec![arguments[0], file.to_str().unwrap(), "--format", "json"];
        typed.extend(&arguments[1..]);
        let mut printed = json(&memtide(&typed));
        printed["source"]["name"] = served["source"]["name"].clone();
        assert_eq!(served, printed, "{path}");
    };
    same("/api/v1/check", &["check"]);
    same(
        "/api/v1/check?since=%2B10s&until=%2B20s",
        &["check", "--since", "+10s", "--until", "+20s"],
    );
    same("/api/v1/where", &["where"]);
    same("/api/v1/where?by=process", &["where", "--by", "process"]);
    same("/api/v1/headroom", &["headroom"]);
    same("/api/v1/headroom?add=500M&cycle=1h", &["headroom", "--add", "500M", "--cycle", "1h"]);
    same("/api/v1/events", &["events"]);
    let compare = serving
        .get("/api/v1/compare?before_until=%2B12s&after_since=%2B13s&after_until=%2B30s")
        .json();
    assert_eq!(compare["schema"], "memtide-compare/1");
    let page = serving.get("/compare?before_until=%2B12s&after_since=%2B13s");
    assert!(page.status == 200 && page.text().contains("id=\"memtide-data-after\""));

    let series = serving.get("/api/v1/series?signal=mem.available,vm.pswpin&points=10").json();
    assert_eq!(series["series"][0]["signal"], "mem.available");
    assert_eq!(series["every_nth"], 4);
    let values = series["series"][0]["values"].as_array().unwrap();
    assert_eq!(values.len(), series["at_s"].as_array().unwrap().len());
    assert!(values.len() <= 10 && values.iter().all(Value::is_u64), "{values:?}");

    let index = serving.get("/api/v1").json();
    for path in index["schemas"].as_object().unwrap().values() {
        let (path, published) = (path.as_str().unwrap(), root().join("docs"));
        let published = published.join(path.trim_start_matches("/schemas/"));
        let published = std::fs::read_to_string(published).unwrap();
        assert!(serving.get(path).text() == published, "{path}");
    }
    let (status, said) = serving.end();
    assert!(status.success());
    assert!(said.contains("ssh -L"), "{said}");
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let serving = Serving::start(&[THRASH]);
    for path in
        ["/", "/data", "/text", "/api/v1/check", "/metrics", "/healthz", "/nothing", "/?since=soon"]
    {
        let reply = serving.get(path);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "deny"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), value, "{path}");
        }
        assert!(
            reply.header("content-security-policy").contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert!(!reply.head.contains("access-control-allow"), "{path}");
    }
    let page = serving.get("/").text();
    let policy = page.split_once("Content-Security-Policy\" content=\"").unwrap().1;
    let (policy, _) = policy.split_once('"').unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn what_is_not_understood_is_named_and_nothing_else_is_answered() {
    let serving = Serving::start(&[THRASH]);
    for (path, status, says) in [
        ("/?sinse=1h", 400, "there is no parameter `sinse`"),
        ("/?since=soon", 400, "`soon` is no time"),
        ("/api/v1/check?since=1h&at=2h", 400, "`at` is the five minutes around a time"),
        ("/api/v1/check?since=%2B20s&until=%2B10s", 400, "ends before it begins"),
        ("/api/v1/check?since=%2B1000000000s", 404, "no sample in that range"),
        ("/api/v1/check?since=1000000-01-01", 400, "is no time"),
        ("/api/v1/check?unit=nginx&pod=a", 400, "one cgroup at most"),
        ("/api/v1/check?unit=nginx", 404, "no unit can be found"),
        ("/api/v1/where?by=colour", 400, "no table by `colour`"),
        ("/api/v1/headroom?add=much", 400, "add: "),
        ("/api/v1/headroom?cycle=0", 400, "no duration"),
        ("/api/v1/events?kind=party", 400, "no events `party`"),
        ("/api/v1/series", 400, "no signal is named"),
        ("/api/v1/series?signal=nothing", 400, "no signal `nothing`"),
        ("/api/v1/compare", 400, "two ranges are compared"),
        ("/changes", 404, "it does not change"),
        ("/closer?of=x&from=1&to=2", 410, "newer data"),
        ("/closer?of=x&from=2&to=1", 400, "ends before it begins"),
        ("/closer?of=x&from=nan&to=1", 400, "is no second"),
        ("/schemas/..%2f..%2fetc%2fpasswd", 404, "no such schema"),
        ("/../../etc/passwd", 404, "nothing at"),
        ("/api/v2/check", 404, "nothing at"),
    ] {
        let reply = serving.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.text().replace("&#39;", "'").contains(says), "{path}: {}", reply.text());
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
        let reply = serving.asked(method, "/", &[], "");
        assert_eq!((reply.status, reply.header("allow")), (405, "get, head"), "{method}");
    }
    let head = serving.asked("HEAD", "/", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for host in ["evil.example.org", "127.0.0.1.evil.org", "", "localhost@evil.org"] {
        let reply = serving.asked("GET", "/api/v1/check", &[("Host", host)], "");
        assert_eq!(reply.status, 421, "{host}: {}", reply.text());
        assert!(reply.text().contains("--allow-host"), "{host}");
    }
    let reply = serving.asked("GET", "/", &[("Host", "localhost:7424")], "");
    assert_eq!(reply.status, 200);
}

#[test]
fn strangers_get_clear_errors_and_nothing_else() {
    let serving = Serving::start(&[THRASH]);
    serving.get("/");
    let before = serving.resident_mib();
    let long = "x".repeat(100_000);
    let headers: String = (0..300).map(|at| format!("X-{at}: y\r\n")).collect();
    let requests: Vec<String> = vec![
        "\0\0\0\0\r\n\r\n".into(),
        "\u{1b}[31m\r\n\r\n".into(),
        "GET\r\n\r\n".into(),
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "\u{16}\u{3}\u{1}\u{2}".into(),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /?since={long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"),
        "GET / HTTP/1.1\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into(),
        "GET http://evil.example.org/ HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "CONNECT evil.example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".into(),
        "GET /api/v1/check?since=-999999999h HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(),
        "GET /api/v1/check?since=%ff%fe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(),
        "GET /..%2f..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(),
        "GET /api/v1/series?signal=mem.free&points=99999999999999999999 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(),
        "GET /closer?of=&from=1e308&to=1e309 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".into(),
    ];
    let mut answers = std::collections::BTreeMap::new();
    for round in 0..2_000 {
        let request = &requests[round % requests.len()];
        // A connection that is closed without a word is an answer to what is not HTTP.
        let status = serving.sent(request.as_bytes(), true).map_or(0, |reply| reply.status);
        *answers.entry(status).or_insert(0) += 1;
        // A body that is not read harms nobody.
        let is_harmless = request.contains("chunked");
        assert!(status != 500 && (status != 200 || is_harmless), "{round}: {request:.80}");
    }
    println!("{answers:?}, {} MiB before, {} after", before, serving.resident_mib());
    assert!(
        serving.resident_mib() < before + 16,
        "{before} MiB before, {} after",
        serving.resident_mib()
    );
    assert_eq!(serving.get("/").status, 200);
    let (status, said) = serving.end();
    assert!(status.success() && !said.contains("panic"), "{said}");
}

#[test]
fn slow_clients_are_cut_off_and_others_do_not_wait_for_them() {
    let serving = Serving::start(&[THRASH]);
    // More than there is room for: of those that say nothing, and of those that never read.
    let mut idle: Vec<TcpStream> = (0..60).map(|_| serving.connect()).collect();
    for stream in &mut idle[..30] {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    }
    let deaf: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = serving.connect();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(serving.get("/healthz").status, 200);
    assert_eq!(serving.get("/").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let many: Vec<TcpStream> = (0..60).map(|_| serving.connect()).collect();
    let turned_away = serving.sent(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", true);
    assert_eq!(turned_away.map(|reply| reply.status), Some(503));
    let mut word = [0; 256];
    let begun = Instant::now();
    // Its head was due long ago.
    let read = idle[0].read(&mut word);
    assert!(begun.elapsed() < Duration::from_secs(30), "{read:?}");
    drop((many, deaf));
    until("room", || {
        let reply =
            serving.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        reply.is_some_and(|reply| reply.status == 200)
    });
}

#[test]
fn a_token_opens_and_nothing_else_does() {
    let place = tempfile::tempdir().unwrap();
    let secret = file(&place, "token", "a-secret-of-some-length\n");
    let mode =
        |mode| std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    let refused = memtide(&["serve", THRASH, "--token-file", &secret]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("can be read by others"), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains(&format!("help: chmod 600 {secret}")),
        "{}",
        stderr(&refused)
    );
    mode(0o600);
    let open = memtide(&["serve", root().join(THRASH).to_str().unwrap(), "--listen", "0.0.0.0:0"]);
    assert_eq!(open.status.code(), Some(3));
    assert!(stderr(&open).contains("--token-file"), "{}", stderr(&open));

    let serving = Serving::start(&[THRASH, "--token-file", &secret]);
    for path in ["/", "/data", "/api/v1/check", "/metrics", "/schemas/report.schema.json"] {
        assert_eq!(serving.get(path).status, 401, "{path}");
        for (name, value) in [
            ("Authorization", "Bearer a-secret-of-some-lengtH"),
            ("Authorization", "Basic YTpi"),
            ("Authorization", "Bearer"),
            ("Cookie", "memtide=a-secret-of-some-length"),
            ("Cookie", "memtide="),
        ] {
            assert_eq!(
                serving.asked("GET", path, &[(name, value)], "").status,
                401,
                "{path} {value}"
            );
        }
        let bearer = [("Authorization", "Bearer a-secret-of-some-length")];
        assert_eq!(serving.asked("GET", path, &bearer, "").status, 200, "{path}");
    }
    assert_eq!(serving.get("/healthz").status, 200);
    let browser = serving.asked("GET", "/", &[("Accept", "text/html")], "");
    assert_eq!((browser.status, browser.header("location")), (303, "/login"));
    let form = serving.get("/login").text();
    assert!(form.contains("type=\"password\"") && form.contains("form-action 'self'"), "{form}");
    assert_eq!(serving.asked("POST", "/login", &[], "token=wrong").status, 401);
    assert_eq!(serving.asked("POST", "/login", &[], &"x".repeat(10_000)).status, 413);
    let login = serving.asked("POST", "/login", &[], "token=a-secret-of-some-length");
    assert_eq!(login.status, 303);
    let cookie = login.header("set-cookie").to_owned();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(serving.asked("GET", "/", &[("Cookie", cookie)], "").status, 200);
}

#[test]
fn a_port_in_use_and_other_places_where_nothing_can_listen_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let place = tempfile::tempdir().unwrap();
    let plain = file(&place, "plain", "");
    let capture = root().join(THRASH);
    for (option, value, says) in [
        ("--listen", format!("127.0.0.1:{port}"), format!("127.0.0.1:{port} is in use")),
        ("--listen", "192.0.2.1:80".to_owned(), "--token-file".to_owned()),
        ("--unix", plain, "exists and is no socket".to_owned()),
        ("--unix", "/nowhere/socket".to_owned(), "cannot listen on /nowhere/socket".to_owned()),
    ] {
        let output = memtide(&["serve", capture.to_str().unwrap(), option, &value]);
        assert_eq!(output.status.code(), Some(3), "{value}");
        assert!(stderr(&output).contains(&says), "{value}: {}", stderr(&output));
    }
}

#[test]
fn a_socket_is_of_its_user_and_goes_with_the_server() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    let serving = Serving::start(&[THRASH, "--unix", socket.to_str().unwrap()]);
    let mode = std::fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream
        .write_all(b"GET /api/v1/check HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(Reply::of(&answer).unwrap().json()["schema"], "memtide-report/1");
    let second = memtide(&[
        "serve",
        root().join(THRASH).to_str().unwrap(),
        "--unix",
        socket.to_str().unwrap(),
    ]);
    assert!(stderr(&second).contains("is in use"), "{}", stderr(&second));
    assert!(serving.end().0.success());
    assert!(!socket.exists());
    // The socket of a server that was killed is in nobody's way.
    let mut killed = Serving::start(&[THRASH, "--unix", socket.to_str().unwrap()]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(socket.exists());
    Serving::start(&[THRASH, "--unix", socket.to_str().unwrap()]);
}

/// The number of samples of what a server has.
fn samples(serving: &Serving) -> u64 {
    serving.get("/api/v1/check").json()["source"]["samples"].as_u64().unwrap()
}

#[test]
fn a_recording_goes_on_while_it_is_served_and_its_end_is_named() {
    let place = tempfile::tempdir().unwrap();
    let recording = place.path().join("recording");
    let recorder = Running::started(&recording, &[]);
    let serving = Serving::start(&[recording.to_str().unwrap()]);
    until("samples", || serving.get("/data").status == 200);
    let mut stream = EventStream::open(&serving, None);
    let has = stream.next().unwrap();
    let tag = serving.get("/data").header("etag").to_owned();
    let before = samples(&serving);
    until("more samples", || samples(&serving) > before + 20);
    let page = serving.get("/").text();
    assert!(page.contains("data-every=\"2\""), "a page that follows");
    // What costs a second to judge is judged once in twenty.
    until("newer data", || {
        serving.asked("GET", "/data", &[("If-None-Match", &tag)], "").status == 200
    });
    let health: Value = serde_json::from_slice(&serving.get("/healthz").body).unwrap();
    assert!(health["last_sample_age_s"].as_f64().unwrap() < 30.0, "{health}");
    assert_ne!(stream.next().unwrap(), has);
    drop(recorder);
    std::fs::remove_dir_all(&recording).unwrap();
    until("the end", || serving.get("/healthz").status == 503);
    while stream.next().unwrap() != "refused" {}
    for path in ["/", "/data", "/api/v1/check", "/metrics"] {
        let reply = serving.get(path);
        assert_eq!(reply.status, 503, "{path}");
        assert!(
            reply.text().contains("is gone: it was deleted or moved while it was served"),
            "{}",
            reply.text()
        );
    }
    // Another one in its place is served.
    let _recorder = Running::started(&recording, &[]);
    until("the next recording", || serving.get("/data").status == 200);
    assert_ne!(stream.next().unwrap(), "refused");
    assert!(serving.end().0.success());
}

#[test]
fn this_host_is_watched_where_nothing_records_it() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--live", "--every", "200ms"];
    let variables = [("HOME", home.path().to_str().unwrap()), ("XDG_STATE_HOME", "")];
    let serving = Serving::in_environment(&arguments, &variables);
    until("samples", || samples(&serving) > 5);
    let check = serving.get("/api/v1/check").json();
    assert_eq!(check["source"]["kind"], "live");
    let page = serving.get("/").text();
    assert!(page.contains("data-every") && page.contains("Watched and served by this server"));
    let wheres = serving.get("/api/v1/where?by=process").json();
    assert!(wheres["rows"].as_array().unwrap().len() > 1);
}

#[test]
fn metrics_are_taken_by_promtool_and_scraped_by_prometheus() {
    if !has("promtool") || !has("prometheus") {
        return;
    }
    let serving = Serving::start(&[THRASH, "--units-max", "3"]);
    let plain = serving.get("/metrics");
    assert!(plain.header("content-type").starts_with("text/plain; version=0.0.4"));
    assert_eq!(promtool_minds(&plain.text()), Vec::<String>::new());
    let text = plain.text();
    assert!(text.contains("node_memory_MemAvailable_bytes "), "{text}");
    assert!(text.contains("memtide_verdict "), "{text}");
    let open = serving.asked("GET", "/metrics", &[("Accept", "application/openmetrics-text")], "");
    assert!(open.header("content-type").starts_with("application/openmetrics-text"));
    assert!(open.text().ends_with("# EOF\n"));
    if has_python_client() {
        let declared = open.text().lines().filter(|line| line.starts_with("# TYPE ")).count();
        assert_eq!(families("openmetrics", &open.text()), declared);
    }
    let live = Serving::start(&["--live", "--every", "1s"]);
    assert_eq!(promtool_minds(&live.get("/metrics").text()), Vec::<String>::new());

    let place = tempfile::tempdir().unwrap();
    let scrape = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: memtide\n    static_configs:\n      - targets: ['127.0.0.1:{}']\n",
        serving.port
    );
    let prometheus = Prometheus::scraping(&scrape, place.path());
    let value = |query: &str| prometheus.now(query);
    until("a scrape", || value("up{job=\"memtide\"}") == vec![Scraped::of(&[], 1.0)]);
    let available = value("node_memory_MemAvailable_bytes");
    assert_eq!(available.len(), 1);
    let found = value("count(memtide_finding)");
    assert_eq!(found.len(), 1, "the capture ends sick");
}

#[test]
fn many_clients_of_a_page_cost_what_one_costs() {
    let serving = Arc::new(Serving::start(&["--live", "--every", "1s"]));
    until("samples", || samples(&serving) > 3);
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let serving = Arc::clone(&serving);
            std::thread::spawn(move || {
                let mut tag = String::new();
                for _ in 0..5 {
                    let reply = serving.asked("GET", "/data", &[("If-None-Match", &tag)], "");
                    assert!(matches!(reply.status, 200 | 304), "{}", reply.text());
                    if reply.status == 200 {
                        tag = reply.header("etag").to_owned();
                    }
                    std::thread::sleep(Duration::from_millis(500));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    println!("{} MiB", serving.resident_mib());
    assert!(serving.resident_mib() < 100, "{} MiB", serving.resident_mib());
}

/// A stream of events, from its first byte on.
struct EventStream(BufReader<TcpStream>);

impl EventStream {
    fn open(serving: &Serving, has: Option<&str>) -> Self {
        let mut stream = serving.connect();
        let has = has.map(|name| format!("Last-Event-ID: {name}\r\n")).unwrap_or_default();
        let request = format!("GET /changes HTTP/1.1\r\nHost: localhost\r\n{has}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The status of its answer.
    fn status(&mut self) -> u16 {
        let line = self.line().unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The name of the next event's data; `None` at the end of the stream.
    fn next(&mut self) -> Option<String> {
        loop {
            if let Some(name) = self.line()?.strip_prefix("id: ") {
                return Some(name.to_owned());
            }
        }
    }
}

#[test]
fn events_name_the_data_that_are_new_and_a_stream_goes_on_where_it_broke() {
    let serving = Serving::start(&["--live", "--every", "200ms"]);
    let mut stream = EventStream::open(&serving, None);
    assert_eq!(stream.status(), 200);
    let first = stream.next().unwrap();
    let begun = Instant::now();
    let second = stream.next().unwrap();
    assert_ne!(first, second);
    assert!(begun.elapsed() >= Duration::from_millis(1_500), "{:?}", begun.elapsed());
    // What an event names is what is answered then.
    let data = serving.get("/data");
    assert_eq!(data.header("etag"), second);
    // Who has the newest hears of the next, who has an older one of the newest at once.
    let behind = EventStream::open(&serving, Some(&first)).next().unwrap();
    let mut ahead = EventStream::open(&serving, Some(&behind));
    assert_ne!(ahead.next().unwrap(), behind);

    // Streams that were left leave room for others, and nobody who asks waits for them.
    drop((stream, ahead));
    let mut all: Vec<EventStream> = Vec::new();
    until("64 streams", || {
        all.clear();
        all = (0..64).map(|_| EventStream::open(&serving, None)).collect();
        all.iter_mut().all(|stream| stream.status() == 200)
    });
    let refused = serving.get("/changes");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().starts_with("64 pages follow already"), "{}", refused.text());
    assert_eq!(serving.get("/data").status, 200);
    drop(all.split_off(1));
    until("room", || EventStream::open(&serving, None).status() == 200);

    // The end of the server ends a stream, and waits for nobody.
    let begun = Instant::now();
    let (status, said) = serving.end();
    assert!(status.success(), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    while all[0].next().is_some() {}
}

/// A recording of a day with a sample each ten seconds.
fn day(place: &tempfile::TempDir) -> String {
    let mut text = String::from("{\"interval_s\": 10.0, \"page_size\": 4096}\n");
    for sample in 0..8_640_u64 {
        let (t, free) = (sample * 10, 4_000_000 + sample % 100 * 1_000);
        let meminfo = format!(
            "MemTotal: 8000000 kB\nMemFree: {free} kB\nMemAvailable: {free} kB\nBuffers: 0 kB\nCached: 100000 kB\n"
        );
        let line = serde_json::json!({
            "t": t,
            "wall_ns": (1_767_225_600 + t) * 1_000_000_000,
            "files": {"/proc/meminfo": meminfo, "/proc/vmstat": format!("pswpin {}\n", t / 7)},
        });
        text.push_str(&format!("{line}\n"));
    }
    let capture = file(place, "day.jsonl", text);
    let recording = place.path().join("day").to_str().unwrap().to_owned();
    let made = memtide(&["record", "--from", &capture, "--to", &recording]);
    assert!(made.status.success(), "{}", stderr(&made));
    recording
}

#[test]
fn a_part_of_a_long_recording_is_fetched_sample_by_sample() {
    let place = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&day(&place)]);
    // What ended long ago is of the past, whatever range is shown.
    let page = serving.get("/").text();
    assert!(!page.contains("data-every") && page.contains(">7 days</a>"));
    let page = serving.get("/?since=%2B0s").text();
    assert!(page.contains("data-closer=\"closer\""));
    let data = serving.get("/data?since=%2B0s");
    let tag = data.header("etag").replace('"', "%22");
    let closer = serving.get(&format!("/closer?of={tag}&from=40000&to=43600"));
    assert_eq!(closer.status, 200, "{}", closer.text());
    let end = closer.body.iter().position(|byte| *byte == b'\n').unwrap();
    let head: Value = serde_json::from_slice(&closer.body[..end]).unwrap();
    assert_eq!(head["format"], "memtide-closer/1");
    let level = &head["level"];
    assert!((360..=362).contains(&level["rows"].as_u64().unwrap()), "{level}");
    assert!((level["from_s"].as_f64().unwrap() - 40_000.0).abs() <= 10.0, "{level}");
    let too_long = serving.get(&format!("/closer?of={tag}&from=0&to=80000"));
    assert_eq!(too_long.status, 400);
    assert!(too_long.text().contains("4 h are the most"), "{}", too_long.text());
    let health = serving.get("/healthz");
    assert_eq!((health.status, health.text().contains("late")), (503, true));
}
