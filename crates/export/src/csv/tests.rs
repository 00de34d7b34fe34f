use super::*;
use crate::tests::{hostile_source, numbers, source};
use timeline::signals::{CGROUP_CURRENT, MEM_FREE};

fn csv(source: &Source, table: Entity, picks: &Picks) -> String {
    let mut text = Vec::new();
    Csv { table }.export(source, picks, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn the_host_is_a_row_for_each_sample_and_what_was_not_read_is_empty() {
    assert_eq!(
        csv(&source(), Entity::Host, &Picks::default()),
        "time,elapsed_s,mem.free,vm.pswpin,psi.memory.some\n\
         2026-11-22T03:30:00.25Z,0,1000,,5\n\
         2026-11-22T03:30:01.25Z,1,1000,7,5\n\
         2026-11-22T03:30:02.25Z,2,3000,9,5\n"
    );
}

#[test]
fn entities_are_a_row_for_each_time_that_they_were_read() {
    assert_eq!(
        csv(&source(), Entity::Cgroup, &Picks::default()),
        "time,elapsed_s,key,label,group,cgroup.current,cgroup.max\n\
         2026-11-22T03:30:00.25Z,0,/db,/db,,4096,inf\n\
         2026-11-22T03:30:02.25Z,2,/db,/db,,4096,\n\
         2026-11-22T03:30:02.25Z,2,/web,/web,,8192,\n"
    );
}

#[test]
fn only_what_is_picked_is_there() {
    let free = Picks::only([MEM_FREE.id(), CGROUP_CURRENT.id()]);
    let text = csv(&source(), Entity::Host, &free);
    assert!(text.starts_with("time,elapsed_s,mem.free\n"), "{text}");
}

#[test]
fn a_hostile_name_stays_in_its_field() {
    let text = csv(&hostile_source(), Entity::Process, &Picks::default());
    let (_, rows) = text.split_once('\n').unwrap();
    let label = r#","'=a""b,c\nd\\x1b[2J\u{202e}","#;
    assert!(rows.contains(label), "{rows}");
}

#[test]
fn every_number_comes_back() {
    let source = source();
    for entity in [Entity::Host, Entity::Cgroup] {
        let text = csv(&source, entity, &Picks::default());
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut read: Vec<(String, u64)> = Vec::new();
        for line in lines {
            for (name, cell) in header.iter().zip(line.split(',')) {
                if timeline::signals::by_name(name).is_some() && !cell.is_empty() {
                    let value = cell.parse().unwrap_or(u64::MAX);
                    read.push(((*name).to_owned(), value));
                }
            }
        }
        read.sort();
        assert_eq!(read, numbers(&source, entity));
    }
}
