//! What the reader has chosen, and what there is to show.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use report::model::top::{Course, TopReport};
use report::text::top::{
    TopFrame, TopMoment, TopPanel, TopRow, TopView, frame, process_page, rows,
};
use report::text::{Style, StyledLine, TextPage, check_lines, finding_lines, piece};
use report::{Report, Screen};

use crate::keys::{self, AfterKey, KeyMeaning};
use crate::worker::{ForView, WorkerRequest};

/// A page in the panel's place.
#[derive(Debug, Clone, PartialEq)]
enum Opened {
    Help,
    /// A finding by its rule and subject.
    Finding(String, String),
    /// A cgroup by its path.
    Unit(String),
    /// A process by its key.
    Process(String),
}

/// The view as it is: what is chosen, and the last frame.
#[derive(Debug)]
pub struct State {
    view: TopView,
    screen: Screen,
    report: Option<Arc<TopReport>>,
    courses: Vec<Course>,
    /// What `check` says of a cgroup; `None` where it is not there.
    group: Option<(String, Option<Arc<Report>>)>,
    opened: Option<Opened>,
    /// The selected row: it stays selected wherever it moves.
    selected: Option<TopRow>,
    /// The last frame: what fits, and how long its page is.
    drawn: TopFrame,
}

impl State {
    /// The view of a source that has not been read yet.
    pub fn new(view: TopView, screen: Screen) -> Self {
        Self {
            view,
            screen,
            report: None,
            courses: Vec::new(),
            group: None,
            opened: None,
            selected: None,
            drawn: TopFrame::default(),
        }
    }

    /// Takes what the worker has.
    pub(crate) fn take(&mut self, shown: ForView) {
        match shown {
            ForView::Frame { report, moment } => {
                self.view.moment = moment;
                self.follow(&report);
                self.report = Some(report);
                self.find_selected();
            }
            ForView::Courses(courses) => self.courses = courses,
            ForView::Group(path, report) => self.group = Some((path, report)),
            ForView::Message(text) => self.view.message = text,
        }
    }

    /// The frame for a terminal of this size.
    pub(crate) fn draw(&mut self, columns: usize, lines: usize) -> TopFrame {
        let Some(report) = self.report.clone() else { return TopFrame::default() };
        let screen = self.screen.clone().with_columns(columns);
        let page = self.opened.clone().map(|opened| self.page(&opened, &report, &screen));
        let courses: Vec<&Course> = self.courses.iter().collect();
        let drawn = frame(&report, &courses, &self.view, page.as_deref(), (&screen, lines));
        self.drawn = TopFrame { lines: Vec::new(), ..drawn.clone() };
        drawn
    }

    fn page(&self, opened: &Opened, report: &TopReport, screen: &Screen) -> Vec<StyledLine> {
        let sentence = |text: String| {
            let mut page = TextPage::new(screen);
            page.line(&[piece(Style::Plain, text)]);
            page.into_lines()
        };
        let gone = |what: &str| sentence(format!("{what} is not there at this moment."));
        let reading = screen.reading();
        match opened {
            Opened::Help => help(&reading),
            Opened::Finding(id, subject) => {
                let mut findings = report.check.findings.iter();
                let index = findings.position(|one| one.id == *id && one.scope.key == *subject);
                index
                    .map_or_else(|| gone(id), |index| finding_lines(&report.check, index, &reading))
            }
            Opened::Unit(path) => {
                let group = self.group.as_ref().filter(|(known, _)| known == path);
                match group {
                    None => sentence(format!("{path} is being read …")),
                    Some((_, None)) => gone(path),
                    Some((_, Some(report))) => check_lines(report, &reading),
                }
            }
            Opened::Process(key) => process_page(report, key, &reading)
                .map_or_else(|| gone("The process"), TextPage::into_lines),
        }
    }

    /// What a key does.
    pub(crate) fn press(&mut self, key: KeyEvent) -> AfterKey {
        self.view.message.clear();
        if self.view.is_filtering && key.kind != KeyEventKind::Release {
            return self.type_filter(key);
        }
        match keys::command(key) {
            Some(command) => self.run(command),
            None => AfterKey::Nothing,
        }
    }

    fn type_filter(&mut self, key: KeyEvent) -> AfterKey {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(letter) if is_plain => self.view.filter.push(letter),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return AfterKey::End;
            }
            KeyCode::Backspace => {
                self.view.filter.pop();
            }
            KeyCode::Enter => self.view.is_filtering = false,
            KeyCode::Esc => {
                self.view.is_filtering = false;
                self.view.filter.clear();
            }
            _ => {}
        }
        self.find_selected();
        AfterKey::Nothing
    }

    fn run(&mut self, command: KeyMeaning) -> AfterKey {
        match command {
            KeyMeaning::Panel(index) => self.choose_panel(index),
            KeyMeaning::NextPanel(by) => {
                let count = TopPanel::ALL.len();
                let now = TopPanel::ALL.iter().position(|one| *one == self.view.panel);
                let next = now.unwrap_or(0).saturating_add(count).saturating_add_signed(by);
                self.choose_panel(next % count)
            }
            KeyMeaning::Down(by) => self.down(by),
            KeyMeaning::Page(by) => {
                self.down(by.saturating_mul(isize::try_from(self.drawn.room).unwrap_or(1).max(1)))
            }
            KeyMeaning::First => self.down(isize::MIN),
            KeyMeaning::Last => self.down(isize::MAX),
            KeyMeaning::Open => self.open(),
            KeyMeaning::Back => self.back(),
            KeyMeaning::Help => {
                self.view.scroll = 0;
                self.opened = Some(Opened::Help);
                AfterKey::Ask(WorkerRequest::Open(None))
            }
            KeyMeaning::Sort(by) => self.sort(by),
            KeyMeaning::SortBySize => {
                self.view.sort = 0;
                self.select(0)
            }
            KeyMeaning::Filter => {
                self.view.is_filtering = self.view.panel.is_table() && self.opened.is_none();
                AfterKey::Nothing
            }
            KeyMeaning::Fold => {
                self.view.is_folded = !self.view.is_folded;
                self.find_selected();
                AfterKey::Nothing
            }
            KeyMeaning::Freeze => self.freeze(),
            KeyMeaning::Go(way) => AfterKey::Ask(WorkerRequest::Go(way)),
            KeyMeaning::Save => AfterKey::Ask(WorkerRequest::Save),
            KeyMeaning::Suspend => AfterKey::Suspend,
            KeyMeaning::Quit if self.opened.is_some() => self.back(),
            KeyMeaning::Quit => AfterKey::End,
        }
    }

    /// Sorts by the next column that is shown.
    fn sort(&mut self, by: isize) -> AfterKey {
        let shown = &self.drawn.columns;
        if !shown.is_empty() {
            let now = shown.iter().position(|column| *column == self.view.sort).unwrap_or(0);
            self.view.sort = shown[(now + shown.len()).saturating_add_signed(by) % shown.len()];
        }
        self.select(0)
    }

    fn choose_panel(&mut self, index: usize) -> AfterKey {
        let Some(panel) = TopPanel::ALL.get(index) else { return AfterKey::Nothing };
        let TopView { moment, is_folded, .. } = self.view;
        self.view = TopView { panel: *panel, moment, is_folded, ..TopView::default() };
        self.opened = None;
        self.selected = None;
        self.select(0);
        AfterKey::Ask(WorkerRequest::Open(None))
    }

    fn rows(&self) -> Vec<TopRow> {
        self.report.as_ref().map_or_else(Vec::new, |report| rows(report, &self.view))
    }

    /// Scrolls a page, or selects another row.
    fn down(&mut self, by: isize) -> AfterKey {
        if self.drawn.page > 0 {
            let last = self.drawn.page.saturating_sub(self.drawn.room);
            self.view.scroll = self.view.scroll.saturating_add_signed(by).min(last);
            return AfterKey::Nothing;
        }
        let last = self.rows().len().saturating_sub(1);
        self.select(self.view.selected.saturating_add_signed(by).min(last))
    }

    fn select(&mut self, index: usize) -> AfterKey {
        self.view.selected = index;
        self.selected = self.rows().into_iter().nth(index);
        AfterKey::Nothing
    }

    /// Finds the selected row where it is now; where it is gone, the row in its place is selected.
    fn find_selected(&mut self) {
        let all = self.rows();
        let found = self.selected.as_ref().and_then(|row| all.iter().position(|one| one == row));
        let index = found.unwrap_or(self.view.selected).min(all.len().saturating_sub(1));
        self.select(index);
    }

    /// Goes on with the successor of a process that was started anew: one of the same name in the same service that was not there
    /// before. A step back in time follows nothing.
    fn follow(&mut self, report: &TopReport) {
        let successor = |key: &str| {
            let before = self
                .report
                .as_ref()
                .filter(|before| (before.at, before.at_s) < (report.at, report.at_s))?;
            let is_in =
                |report: &TopReport, key: &str| report.processes.iter().any(|one| one.key == key);
            let ended = before.processes.iter().find(|process| process.key == key)?;
            let alike = report.processes.iter().filter(|process| {
                !ended.service.is_empty()
                    && process.name == ended.name
                    && process.service == ended.service
                    && !is_in(before, &process.key)
            });
            // The first to start is the one that was started in its place.
            let first = alike.min_by_key(|process| started(&process.key));
            first.filter(|_| !is_in(report, key)).map(|it| it.key.clone())
        };
        let selected = match &self.selected {
            Some(TopRow::Process(key)) => successor(key),
            _ => None,
        };
        let opened = match &self.opened {
            Some(Opened::Process(key)) => successor(key),
            _ => None,
        };
        if let Some(key) = selected {
            self.selected = Some(TopRow::Process(key));
        }
        if let Some(key) = opened {
            self.view.message = "the process was started anew: this is its successor".to_owned();
            self.opened = Some(Opened::Process(key));
        }
    }

    fn open(&mut self) -> AfterKey {
        if self.opened.is_some() {
            return AfterKey::Nothing;
        }
        let Some(row) = self.rows().into_iter().nth(self.view.selected) else {
            return AfterKey::Nothing;
        };
        self.view.scroll = 0;
        match row {
            TopRow::Finding(id, subject) => {
                self.opened = Some(Opened::Finding(id, subject));
                AfterKey::Nothing
            }
            TopRow::Unit(path) => {
                self.opened = Some(Opened::Unit(path.clone()));
                AfterKey::Ask(WorkerRequest::Open(Some(path)))
            }
            TopRow::Process(key) => {
                self.opened = Some(Opened::Process(key));
                AfterKey::Nothing
            }
        }
    }

    fn back(&mut self) -> AfterKey {
        self.view.scroll = 0;
        if self.opened.take().is_some() {
            self.group = None;
            return AfterKey::Ask(WorkerRequest::Open(None));
        }
        self.view.filter.clear();
        self.find_selected();
        AfterKey::Nothing
    }

    fn freeze(&mut self) -> AfterKey {
        match self.view.moment {
            TopMoment::Replay => AfterKey::Nothing,
            _ => AfterKey::Ask(WorkerRequest::Freeze),
        }
    }
}

/// When a process was started, in ticks since the boot, of its key `PID@START`.
fn started(key: &str) -> u64 {
    key.rsplit('@').next().and_then(|start| start.parse().ok()).unwrap_or_default()
}

fn help(screen: &Screen) -> Vec<StyledLine> {
    /// Column of the meanings.
    const INDENT: usize = 27;
    let mut page = TextPage::new(screen);
    for (key, meaning) in keys::HELP {
        page.hanging(&[piece(Style::Command, key)], INDENT, Style::Plain, meaning);
    }
    page.gap();
    for text in [
        "RE-READ: file pages read again soon after they were dropped: the page cache is too small. WAITS: the share of the \
         time in which a task of the unit waited for memory. HITS/S: how often it met its limit. PSS OF: how old the \
         proportional share (PSS) is; ≈ where it was read earlier and the change of RSS since is added, or where only RSS \
         is known.",
        "▲ below the curve: a warning or worse began there.",
    ] {
        page.hanging(&[], 0, Style::Faint, text);
    }
    page.into_lines()
}
