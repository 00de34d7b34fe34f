use super::*;

#[test]
fn ten_digits_beyond_any_epoch_are_no_time() {
    for line in ["9999999999", "9223372037", "-999999999", "0000000000"] {
        assert!(PrintedTime::whole(line).is_none(), "{line}");
    }
}

#[test]
fn a_line_with_only_a_time_is_read() {
    let at = |line: &str| {
        let wall = PrintedTime::whole(line)?.wall()?;
        Some(wall.unix_nanos() / SECOND)
    };
    for line in [
        "Sat Nov 21 23:58:47 UTC 2026",
        "Sat Nov 21 23:58:47 2026",
        "Sat Nov 21 11:58:47 PM UTC 2026",
        "Sat 21 Nov 2026 11:58:47 PM UTC",
        "Sat 21 Nov 23:58:47 GMT 2026",
        "zzz ***Sat Nov 21 23:58:47 UTC 2026",
        "2026-11-21T23:58:47Z",
        "2026-11-22T08:58:47+09:00",
        "2026-11-21 23:58:47",
        "2026-11-22 08:58:47 +0900",
        "2026/11/21 23:58:47.000",
        "11/21/2026 23:58:47",
        "21/11/2026 23:58:47",
        "=== 2026-11-21 23:58:47 ===",
        "[2026-11-21 23:58:47]",
        "Time: 2026-11-21 23:58:47 UTC",
        "1795305527",
    ] {
        assert_eq!(at(line), Some(1_795_305_527), "{line}");
    }
    for line in
        ["free -m", "Mem: 7", "12345678", "", "23:58:47", "2026-13-41 23:58:47", "Nov 21 23:58:47"]
    {
        assert_eq!(at(line), None, "{line}");
    }
}

#[test]
fn a_stamp_is_taken_from_the_start_of_a_line() {
    for (line, rest) in [
        ("2026-11-21 23:58:47 Mem: 1 2 3", Some("Mem: 1 2 3")),
        ("[2026-11-21 23:58:47]  1  0  0", Some("1  0  0")),
        ("Nov 21 23:58:47 procs ---", Some("procs ---")),
        ("23:58:47 |  1  0", Some("1  0")),
        ("1795305527.25 Mem: 1", Some("Mem: 1")),
        ("2026-11-21T23:58:47.123456Z 1 0", Some("1 0")),
        ("1 0 0 2448924", None),
        ("Mem: 1 2 3", None),
        ("Nov 21 is a day", None),
    ] {
        assert_eq!(PrintedTime::leading(line).map(|(_, rest)| rest), rest, "{line}");
    }
}

#[test]
fn a_series_continues_while_its_times_increase() {
    let mut dated = SampleTimes::new(None);
    let mut next = |line: &str| dated.next(PrintedTime::whole(line)).map(|(_, after)| after);
    assert_eq!(next("2026-11-21 23:58:47"), Some(Span::ZERO));
    assert_eq!(next("2026-11-21 23:58:52"), Some(Span::from_secs(5)));
    assert_eq!(next("2026-11-21 23:58:52"), None);
    let mut plain = SampleTimes::new(Some(Span::from_secs(3)));
    assert_eq!(plain.next(None), Some((SnapshotTime::Unknown, Span::ZERO)));
    let three = Span::from_secs(3);
    assert_eq!(plain.next(None), Some((SnapshotTime::After(three), three)));
    let mut unknown = SampleTimes::new(None);
    unknown.next(None);
    assert_eq!(unknown.next(None), None);
}

#[test]
fn times_without_a_date_have_intervals() {
    let read = |line: &str| PrintedTime::whole(line).unwrap();
    let between = |a: &str, b: &str| read(b).since(read(a));
    assert_eq!(between("23:59:50", "00:00:20"), Some(Span::from_secs(30)));
    assert_eq!(between("Nov 21 23:59:50", "Nov 22 00:00:20"), Some(Span::from_secs(30)));
    assert_eq!(between("23:59:50", "23:59:50"), None);
    assert_eq!(between("Nov 21 23:59:50", "23:59:55"), None);
}
