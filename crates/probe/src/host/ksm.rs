//! Merged equal pages: `/sys/kernel/mm/ksm/{pages_shared,pages_sharing}`.
//!
//! Pages in use by KSM, and pages that it saves. Since 2.6.32 with CONFIG_KSM; 0 if KSM was never switched on. Cost:
//! two `pread`s, 0.5 µs each, no lock.

use crate::columns::NumberColumns;

/// Pages in use.
pub(crate) const PAGES_SHARED: &str = "/sys/kernel/mm/ksm/pages_shared";
/// Pages saved.
pub(crate) const PAGES_SHARING: &str = "/sys/kernel/mm/ksm/pages_sharing";

/// Returns the parser of `pages_shared`.
pub(crate) fn pages_shared() -> NumberColumns {
    NumberColumns::for_file(PAGES_SHARED)
}

/// Returns the parser of `pages_sharing`.
pub(crate) fn pages_sharing() -> NumberColumns {
    NumberColumns::for_file(PAGES_SHARING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::Row;
    use timeline::signals::{KSM_SHARED, KSM_SHARING};
    use units::Pages;

    #[test]
    fn both_files_are_pages() {
        let mut row = Row::default();
        pages_shared().parse(b"152\n", &mut row).unwrap();
        pages_sharing().parse(b"2033\n", &mut row).unwrap();
        assert_eq!(row.get(KSM_SHARED), Some(Pages::new(152)));
        assert_eq!(row.get(KSM_SHARING), Some(Pages::new(2_033)));
        let error = pages_shared().parse(b"many\n", &mut row).unwrap_err();
        assert!(error.to_string().ends_with("expected a number, found `many`"));
    }

    #[test]
    fn any_bytes_are_survived() {
        for columns in [pages_shared(), pages_sharing()] {
            hostile::feed(b"152\n", |text| {
                let _ = columns.parse(text, &mut Row::default());
            });
        }
    }
}
