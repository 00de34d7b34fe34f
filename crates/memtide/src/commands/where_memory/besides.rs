//! What `where` shows of this host besides its samples.

use answers::this_host::Besides;
use diagnose::accounting::GroupBy;

use crate::cli::WhereArgs;

/// A table needs less than the tree.
pub(super) fn besides(by: Option<GroupBy>, args: &WhereArgs) -> Besides<'_> {
    Besides {
        owners: matches!(by, None | Some(GroupBy::Mount | GroupBy::User | GroupBy::Process)),
        users: by == Some(GroupBy::User),
        cached_files: args.cached_files().filter(|_| by.is_none()),
        history: false,
    }
}
