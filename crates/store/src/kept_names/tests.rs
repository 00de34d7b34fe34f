use proptest::prelude::*;

use super::*;

fn container(id: &str, name: &str) -> GroupNames {
    let names = ContainerNames { name: name.to_owned(), pod: None };
    GroupNames { containers: BTreeMap::from([(id.to_owned(), names)]), ..GroupNames::default() }
}

fn rich() -> GroupNames {
    let cart = PodNames { namespace: "shop".to_owned(), name: "cart-0".to_owned() };
    let app = ContainerNames { name: "app".to_owned(), pod: Some(cart.clone()) };
    let mut names = container("a1", "web");
    names.containers.insert("b2".to_owned(), app);
    names.pods.insert("c-3".to_owned(), cart);
    names.users.insert(1000, "al".to_owned());
    names
}

fn kept(directory: &Path, names: GroupNames) -> u64 {
    NameBook::at(directory).keep_at(directory, None, names).unwrap();
    let file = std::fs::metadata(directory.join(FILE));
    file.map_or(0, |file| file.len())
}

fn found(directory: &Path) -> (GroupNames, Vec<String>) {
    let mut problems = Vec::new();
    (read(directory, &mut problems), problems)
}

#[test]
fn every_name_survives_and_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    assert_eq!(found(path), (GroupNames::default(), Vec::new()));
    let length = kept(path, rich());
    assert_eq!(found(path), (rich(), Vec::new()));
    assert_eq!(kept(path, rich()), length);
    assert!(kept(path, container("a1", "web-old")) > length);
    let (names, problems) = found(path);
    assert_eq!(problems, [""; 0]);
    assert_eq!(names.containers["a1"].name, "web-old");
    assert_eq!(names.count(), rich().count());
}

#[test]
fn a_directory_that_took_the_place_gets_all_names() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut book = NameBook::at(first.path());
    book.keep_at(first.path(), None, rich()).unwrap();
    book.keep_at(second.path(), None, GroupNames::default()).unwrap();
    assert_eq!(found(second.path()).0, rich());
}

#[test]
fn what_a_disk_refused_is_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let mut book = NameBook::at(directory.path());
    let nowhere = directory.path().join("nowhere");
    assert!(book.keep_at(&nowhere, None, rich()).is_err());
    book.keep_at(directory.path(), None, container("d4", "db")).unwrap();
    assert_eq!(found(directory.path()).0.count(), rich().count() + 1);
}

#[test]
fn a_torn_line_is_left_out_and_swallows_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    kept(path, rich());
    let file = path.join(FILE);
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 10]).unwrap();
    let (names, problems) = found(path);
    assert_eq!(names.count(), rich().count() - 1);
    assert!(problems[0].contains("names.jsonl: its last line is incomplete"));
    kept(path, container("d4", "db"));
    let (names, problems) = found(path);
    assert_eq!(names.containers["d4"].name, "db");
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn a_symbolic_link_in_the_place_of_the_names_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let (recording, target) = (directory.path().join("r"), directory.path().join("theirs"));
    std::fs::create_dir(&recording).unwrap();
    kept(&recording, rich());
    std::fs::rename(recording.join(FILE), &target).unwrap();
    std::os::unix::fs::symlink(&target, recording.join(FILE)).unwrap();
    let (names, problems) = found(&recording);
    assert_eq!(names, GroupNames::default());
    assert_eq!(
        problems,
        ["names.jsonl: it is a symbolic link; containers are called by their ids"]
    );
}

#[test]
fn no_flipped_bit_makes_another_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    kept(path, rich());
    let file = path.join(FILE);
    let sound = std::fs::read(&file).unwrap();
    for at in 0..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 1;
        std::fs::write(&file, &flipped).unwrap();
        let (names, _) = found(path);
        let kept = KeptName::all(&names);
        let all = KeptName::all(&rich());
        assert!(kept.iter().all(|name| all.contains(name)), "byte {at}: {names:?}");
        assert!(kept.len() + 2 >= all.len(), "byte {at}: {names:?}");
    }
}

#[test]
fn names_without_end_take_bounded_room_and_the_newest_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut book = NameBook::at(path);
    let id = |number: usize| format!("{number:064x}");
    let long = "x".repeat(300);
    let rounds = 2 * NAMES_MAX / 100 + 5;
    for round in 0..rounds {
        let mut names = GroupNames::default();
        for number in 0..100 {
            names.fill_from(container(&id(round * 100 + number), &long));
        }
        book.keep_at(path, None, names).unwrap();
        assert!(std::fs::metadata(path.join(FILE)).unwrap().len() <= COMPACTED_FROM);
        assert!(book.written.count() <= 2 * NAMES_MAX);
    }
    let (names, problems) = found(path);
    assert_eq!(problems, [""; 0]);
    let newest = &names.containers[&id(rounds * 100 - 1)];
    assert_eq!(newest.name.len(), NAME_LEN_MAX);
    assert!((1_000..=NAMES_MAX).contains(&names.count()), "{}", names.count());
}

#[test]
fn a_user_who_makes_containers_without_end_displaces_no_name_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut book = NameBook::at(path);
    book.keep_at(path, None, rich()).unwrap();
    let of = |user: usize, number: usize| {
        let long = "x".repeat(NAME_LEN_MAX);
        let group = format!("/user.slice/user-{user}.slice/docker-{number:064x}.scope");
        container(&group, &long)
    };
    for round in 0..70 {
        let mut names = of(8, round);
        for number in 0..100 {
            names.fill_from(of(7, round * 100 + number));
        }
        book.keep_at(path, None, names).unwrap();
    }
    let (names, problems) = found(path);
    assert_eq!(problems, [""; 0]);
    assert!(rich().is_known_to(&names), "{}", names.count());
    let is_of = |user: usize| move |id: &&String| id.contains(&format!("user-{user}.slice"));
    let count = |user: usize| names.containers.keys().filter(is_of(user)).count();
    assert!((100..=OF_USER_MAX).contains(&count(7)), "{}", count(7));
    assert!(count(8) > 0);
    let newest = of(7, 6_999);
    assert!(newest.is_known_to(&names));
}

impl ChecksummedLine for serde_json::Value {
    fn crc32(&self) -> Option<u32> {
        None
    }
}

#[test]
fn a_kind_of_a_later_memtide_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    let lines = [
        serde_json::json!({"wall": null, "kind": "image", "id": "a", "name": "b", "tag": "c"}),
        serde_json::json!({"wall": 5, "kind": "user", "id": "x", "name": "b"}),
    ];
    json_lines::append(&path, &lines).unwrap();
    assert_eq!(found(directory.path()), (GroupNames::default(), Vec::new()));
    // A line without its checksum may be anybody's.
    std::fs::write(&path, "{\"wall\":5,\"kind\":\"user\",\"id\":\"7\",\"name\":\"b\"}\n").unwrap();
    assert_eq!(found(directory.path()).0, GroupNames::default());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\PC|[{}\":,\n]){0,200}") {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), text).unwrap();
        found(directory.path());
    }
}
