//! `explain` in the terminal, in brief and in full; its page is a snapshot of `heap_picture`.

use report::Screen;
use report::text::{self, Detail};

use crate::heap_picture::fragmented;

#[test]
fn in_brief() {
    insta::assert_snapshot!(text::explain(&fragmented(), &Screen::default()));
}

#[test]
fn in_full() {
    let mut screen = Screen::default();
    screen.detail = Detail::All;
    insta::assert_snapshot!(text::explain(&fragmented(), &screen));
}
