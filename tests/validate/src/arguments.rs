//! What the command line asks for.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::output::text::Printable;
use crate::validation::stage::Stage;

/// The text of `--help`.
pub const HELP: &str = "\
kfd-validate: validates and shows the machine that AMD's compute driver (KFD) presents

usage: kfd-validate [OPTION...]          validate: one line a stage, reasons below
       kfd-validate info [OPTION...]     show nodes, memory, caches and links

Which machine:
  --real            this machine's driver, /dev/kfd
  --sim PROFILE     a simulated machine: mi300x, mi210x8, mi210, mi50, rx6800, rx7900,
                    rx9070, apu or cpu-only, with parameters as in
                    mi300x:cpx,gpus=4,vram=64G; fault=NAME among them breaks something
  --tree FOLDER     info: a captured topology tree: FOLDER itself, or topology,
                    sys/devices/virtual/kfd/kfd/topology or
                    sys/class/kfd/kfd/topology in it
  (none)            the real driver where there is one, else the simulated mi300x

Validation:
  --stages LIST     only these: version, memory, registration, sharing, events,
                    queues, copy; open and topology always run
  --gpus LIST       only these GPUs: by node as in info (2,3), or by kernel id (0x1f2a)
  --quick           fewer and smaller blocks
  --timeout SECONDS give up after so long (600)
  --tap             for test harnesses (TAP)

How:
  --discover        info: read the topology only, no device is opened
  --json            everything, as one JSON object
  -h, --help        this text
  -V, --version     the version

The first line of every output names the machine it is about.
Exit status: 0 done or passed, 1 failed, 2 wrong arguments, 3 no such machine here.
";

/// The machine a command is about, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nothing was said: the real driver where there is one, else the simulated machine.
    Unsaid,
    /// `--real`
    Real,
    /// `--sim PROFILE`
    Simulated(String),
    /// `--tree FOLDER`; any bytes but NUL.
    Tree(Vec<u8>),
}

/// What `info` was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Which machine.
    pub source: Source,
    /// Everything as JSON rather than a table.
    pub json: bool,
    /// Read the topology only, open no device.
    pub discover: bool,
}

/// The form of a validation's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// `--tap`
    Tap,
    /// `--json`
    Json,
}

/// A GPU as `--gpus` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuName {
    /// By its node, in decimal.
    Node(u32),
    /// By the kernel's id, in hexadecimal after `0x`.
    Id(u32),
}

impl fmt::Display for GpuName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuName::Node(node) => write!(f, "{node}"),
            GpuName::Id(gpu_id) => write!(f, "{gpu_id:#x}"),
        }
    }
}

/// What a validation was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// Which machine.
    pub source: Source,
    /// How it is told.
    pub form: Form,
    /// Only these stages, and those that they stand on.
    pub stages: Option<Vec<Stage>>,
    /// Only these GPUs.
    pub gpus: Option<Vec<GpuName>>,
    /// Check less.
    pub quick: bool,
    /// Seconds until it gives up.
    pub timeout: u32,
}

impl Validation {
    /// Whether a stage is to run.
    #[must_use]
    pub fn runs(&self, stage: Stage) -> bool {
        stage.is_foundation() || self.stages.as_ref().is_none_or(|stages| stages.contains(&stage))
    }
}

/// Seconds until a validation gives up, if nothing is said.
const TIMEOUT: u32 = 600;
/// The most that can be said: a week.
const LONGEST_TIMEOUT: u32 = 604_800;

/// A command line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Validate a machine.
    Validate(Validation),
    /// Show a machine.
    Info(Info),
    /// Show [`HELP`].
    Help,
    /// Show the version.
    Version,
}

/// Why a command line was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// No such command.
    UnknownCommand(Vec<u8>),
    /// No such option.
    UnknownOption(Vec<u8>),
    /// A word too many.
    UnexpectedWord(Vec<u8>),
    /// The option needs a value.
    MissingValue(&'static str),
    /// The option takes no value.
    UnexpectedValue(&'static str),
    /// The option was given twice.
    Repeated(&'static str),
    /// Two options that name a machine.
    TwoMachines(&'static str, &'static str),
    /// The value of the option is not UTF-8, so it cannot name a profile.
    NotText(&'static str, Vec<u8>),
    /// The option says nothing to this command.
    OnlyInfo(&'static str),
    /// The option says nothing to `info`.
    OnlyValidation(&'static str),
    /// `--json` and `--tap`.
    TwoForms,
    /// The option's value is not what it takes.
    BadValue(&'static str, Vec<u8>, &'static str),
    /// No such GPU is here.
    NoSuchGpu(GpuName),
    /// There is no such profile; the reason in words.
    UnknownProfile(String, String),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::UnknownCommand(word) => write!(f, "unknown command '{}'", Printable(word)),
            Misuse::UnknownOption(word) => write!(f, "unknown option '{}'", Printable(word)),
            Misuse::UnexpectedWord(word) => write!(f, "unexpected argument '{}'", Printable(word)),
            Misuse::MissingValue(option) => write!(f, "{option} needs a value"),
            Misuse::UnexpectedValue(option) => write!(f, "{option} takes no value"),
            Misuse::Repeated(option) => write!(f, "{option} is given twice"),
            Misuse::TwoMachines(first, second) => {
                write!(f, "{first} and {second} name two machines: give one")
            }
            Misuse::NotText(option, value) => {
                write!(f, "the value of {option} is not text: '{}'", Printable(value))
            }
            Misuse::OnlyInfo(option) => write!(f, "{option} needs the command info"),
            Misuse::OnlyValidation(option) => write!(f, "{option} says nothing to info"),
            Misuse::TwoForms => f.write_str("--json and --tap name two forms: give one"),
            Misuse::BadValue(option, value, expected) => {
                write!(f, "{option} {}: expected {expected}", Printable(value))
            }
            Misuse::NoSuchGpu(name) => write!(f, "--gpus {name}: there is no such GPU here"),
            Misuse::UnknownProfile(profile, reason) => {
                let profile = Printable(profile.as_bytes());
                write!(f, "no simulated machine '{profile}': {reason}")
            }
        }
    }
}

/// The words of an option: its name as written first, and how its value is given.
struct Written<'a> {
    name: &'a [u8],
    attached: Option<&'a [u8]>,
}

impl<'a> Written<'a> {
    fn new(word: &'a [u8]) -> Written<'a> {
        match word.iter().position(|&byte| byte == b'=') {
            Some(at) if word.starts_with(b"--") => {
                let (name, value) = word.split_at(at);
                Written { name, attached: value.get(1..) }
            }
            _ => Written { name: word, attached: None },
        }
    }

    fn without_value(&self, option: &'static str) -> Result<(), Misuse> {
        match self.attached {
            None => Ok(()),
            Some(_) => Err(Misuse::UnexpectedValue(option)),
        }
    }

    fn value(
        &self,
        option: &'static str,
        rest: &mut dyn Iterator<Item = &'a [u8]>,
    ) -> Result<&'a [u8], Misuse> {
        // A following option is no value: `--sim --json` forgot one.
        let value = match self.attached {
            Some(value) => Some(value),
            None => rest.next().filter(|word| !word.starts_with(b"--")),
        };
        value.filter(|value| !value.is_empty()).ok_or(Misuse::MissingValue(option))
    }
}

/// Notes that a flag was given.
fn set(flag: &mut bool, option: &'static str) -> Result<(), Misuse> {
    if *flag {
        return Err(Misuse::Repeated(option));
    }
    *flag = true;
    Ok(())
}

/// Notes which machine was named, and by which option.
fn name_machine(
    named: &mut Option<(&'static str, Source)>,
    option: &'static str,
    source: Source,
) -> Result<(), Misuse> {
    match named {
        Some((earlier, _)) if *earlier == option => Err(Misuse::Repeated(option)),
        Some((earlier, _)) => Err(Misuse::TwoMachines(earlier, option)),
        None => {
            *named = Some((option, source));
            Ok(())
        }
    }
}

/// A decimal number in a range.
fn number(text: &[u8], range: core::ops::RangeInclusive<u32>) -> Option<u32> {
    let digits = text.iter().all(u8::is_ascii_digit).then_some(text)?;
    let number = core::str::from_utf8(digits).ok()?.parse().ok()?;
    range.contains(&number).then_some(number)
}

fn gpu_name(text: &[u8]) -> Option<GpuName> {
    let Some(digits) = text.strip_prefix(b"0x") else {
        return number(text, 0..=u32::MAX).map(GpuName::Node);
    };
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u32::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok().map(GpuName::Id)
}

/// What the options say, whatever the command.
#[derive(Default)]
struct Options {
    named: Option<(&'static str, Source)>,
    json: bool,
    discover: bool,
    tap: bool,
    quick: bool,
    stages: Option<Vec<Stage>>,
    gpus: Option<Vec<GpuName>>,
    timeout: Option<u32>,
}

/// Notes a value that may be given once.
fn once<T>(place: &mut Option<T>, option: &'static str, value: T) -> Result<(), Misuse> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Misuse::Repeated(option)),
    }
}

impl Options {
    /// Notes an option that concerns validation alone; whether it is one.
    fn of_validation<'a>(
        &mut self,
        written: &Written<'a>,
        rest: &mut dyn Iterator<Item = &'a [u8]>,
    ) -> Result<bool, Misuse> {
        match written.name {
            b"--tap" => {
                written.without_value("--tap")?;
                set(&mut self.tap, "--tap")?;
            }
            b"--quick" => {
                written.without_value("--quick")?;
                set(&mut self.quick, "--quick")?;
            }
            b"--stages" => {
                let list = written.value("--stages", rest)?;
                let stages = Stage::parse_list(list).map_err(|word| {
                    Misuse::BadValue("--stages", word.to_vec(), "names of stages, see --help")
                })?;
                once(&mut self.stages, "--stages", stages)?;
            }
            b"--gpus" => {
                let list = written.value("--gpus", rest)?;
                let names: Option<Vec<GpuName>> =
                    list.split(|&byte| byte == b',').map(gpu_name).collect();
                let expected = "numbers of nodes, or kernel ids such as 0x1f2a";
                let bad = || Misuse::BadValue("--gpus", list.to_vec(), expected);
                once(&mut self.gpus, "--gpus", names.ok_or_else(bad)?)?;
            }
            b"--timeout" => {
                let value = written.value("--timeout", rest)?;
                let seconds = number(value, 1..=LONGEST_TIMEOUT);
                let bad = || Misuse::BadValue("--timeout", value.to_vec(), "seconds, from 1 on");
                once(&mut self.timeout, "--timeout", seconds.ok_or_else(bad)?)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The first option that says nothing to `info`.
    fn only_validation(&self) -> Option<&'static str> {
        [
            (self.tap, "--tap"),
            (self.quick, "--quick"),
            (self.stages.is_some(), "--stages"),
            (self.gpus.is_some(), "--gpus"),
            (self.timeout.is_some(), "--timeout"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }

    fn into_info(self) -> Result<Info, Misuse> {
        if let Some(option) = self.only_validation() {
            return Err(Misuse::OnlyValidation(option));
        }
        let source = self.named.map_or(Source::Unsaid, |(_, source)| source);
        Ok(Info { source, json: self.json, discover: self.discover })
    }

    fn into_validation(self) -> Result<Validation, Misuse> {
        if self.discover {
            return Err(Misuse::OnlyInfo("--discover"));
        }
        let source = self.named.map_or(Source::Unsaid, |(_, source)| source);
        if matches!(source, Source::Tree(_)) {
            return Err(Misuse::OnlyInfo("--tree"));
        }
        let form = match (self.json, self.tap) {
            (true, true) => return Err(Misuse::TwoForms),
            (true, false) => Form::Json,
            (false, true) => Form::Tap,
            (false, false) => Form::Text,
        };
        let Options { stages, gpus, quick, timeout, .. } = self;
        let timeout = timeout.unwrap_or(TIMEOUT);
        Ok(Validation { source, form, stages, gpus, quick, timeout })
    }
}

/// Reads a command line, without the program's own name.
///
/// # Errors
/// The first thing in it that is wrong.
pub fn parse(arguments: &[&[u8]]) -> Result<Command, Misuse> {
    let mut command = None;
    let mut options = Options::default();
    let mut options_ended = false;
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        if !options_ended && word == b"--" {
            options_ended = true;
            continue;
        }
        if options_ended || !word.starts_with(b"-") {
            match (command, word) {
                (None, b"info") => command = Some("info"),
                (None, _) => return Err(Misuse::UnknownCommand(word.to_vec())),
                (Some(_), _) => return Err(Misuse::UnexpectedWord(word.to_vec())),
            }
            continue;
        }
        let written = Written::new(word);
        match written.name {
            b"-h" | b"--help" => {
                written.without_value("--help")?;
                return Ok(Command::Help);
            }
            b"-V" | b"--version" => {
                written.without_value("--version")?;
                return Ok(Command::Version);
            }
            b"--json" => {
                written.without_value("--json")?;
                set(&mut options.json, "--json")?;
            }
            b"--discover" => {
                written.without_value("--discover")?;
                set(&mut options.discover, "--discover")?;
            }
            b"--real" => {
                written.without_value("--real")?;
                name_machine(&mut options.named, "--real", Source::Real)?;
            }
            b"--sim" => {
                let value = written.value("--sim", &mut rest)?;
                let profile = core::str::from_utf8(value)
                    .map_err(|_| Misuse::NotText("--sim", value.to_vec()))?;
                name_machine(&mut options.named, "--sim", Source::Simulated(profile.into()))?;
            }
            b"--tree" => {
                let value = written.value("--tree", &mut rest)?;
                name_machine(&mut options.named, "--tree", Source::Tree(value.to_vec()))?;
            }
            _ => {
                if !options.of_validation(&written, &mut rest)? {
                    return Err(Misuse::UnknownOption(word.to_vec()));
                }
            }
        }
    }
    Ok(match command {
        Some(_) => Command::Info(options.into_info()?),
        None => Command::Validate(options.into_validation()?),
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn parsed(line: &str) -> Result<Command, Misuse> {
        let words: Vec<&[u8]> = line.split_ascii_whitespace().map(str::as_bytes).collect();
        parse(&words)
    }

    fn info(source: Source) -> Info {
        Info { source, json: false, discover: false }
    }

    const NOTHING_SAID: Validation = Validation {
        source: Source::Unsaid,
        form: Form::Text,
        stages: None,
        gpus: None,
        quick: false,
        timeout: TIMEOUT,
    };

    #[test]
    fn nothing_validates_the_machine_that_is_there() {
        assert_eq!(parsed(""), Ok(Command::Validate(NOTHING_SAID)));
        assert_eq!(parsed("info"), Ok(Command::Info(info(Source::Unsaid))));
    }

    #[test]
    fn a_validation_has_options_of_its_own() {
        let wanted = Validation {
            source: Source::Simulated("apu".into()),
            form: Form::Tap,
            stages: Some(vec![Stage::Memory, Stage::Events]),
            gpus: Some(vec![GpuName::Node(2), GpuName::Id(0x1f2a)]),
            quick: true,
            timeout: 30,
        };
        assert!(wanted.runs(Stage::Open) && wanted.runs(Stage::Topology));
        assert!(wanted.runs(Stage::Events) && !wanted.runs(Stage::Sharing));
        let line = "--tap --sim apu --stages memory,events --gpus=2,0x1f2a --quick --timeout 30";
        assert_eq!(parsed(line), Ok(Command::Validate(wanted)));
        let json = Validation { form: Form::Json, ..NOTHING_SAID };
        assert_eq!(parsed("--json"), Ok(Command::Validate(json)));
    }

    #[test]
    fn options_of_the_other_command_are_refused() {
        for (line, misuse) in [
            ("--discover", Misuse::OnlyInfo("--discover")),
            ("--tree /", Misuse::OnlyInfo("--tree")),
            ("info --tap", Misuse::OnlyValidation("--tap")),
            ("--quick info", Misuse::OnlyValidation("--quick")),
            ("info --stages memory", Misuse::OnlyValidation("--stages")),
            ("info --gpus 1", Misuse::OnlyValidation("--gpus")),
            ("info --timeout 1", Misuse::OnlyValidation("--timeout")),
            ("--json --tap", Misuse::TwoForms),
            ("--quick --quick", Misuse::Repeated("--quick")),
            ("--stages open --stages open", Misuse::Repeated("--stages")),
            ("--gpus", Misuse::MissingValue("--gpus")),
            ("--tap=1", Misuse::UnexpectedValue("--tap")),
        ] {
            assert_eq!(parsed(line), Err(misuse), "{line}");
        }
        for line in [
            "--stages memory,",
            "--stages info",
            "--gpus one",
            "--gpus 0x",
            "--gpus 1,,2",
            "--gpus +1",
            "--gpus 4294967296",
            "--timeout 0",
            "--timeout 1s",
            "--timeout 604801",
        ] {
            assert!(matches!(parsed(line), Err(Misuse::BadValue(..))), "{line}");
        }
    }

    #[test]
    fn options_stand_before_and_after_the_command() {
        let wanted = Info { json: true, discover: true, ..info(Source::Real) };
        for line in [
            "info --json --real --discover",
            "--json info --discover --real",
            "--real --discover --json info",
        ] {
            assert_eq!(parsed(line), Ok(Command::Info(wanted.clone())), "{line}");
        }
    }

    #[test]
    fn two_dashes_end_the_options() {
        let wanted = Command::Info(Info { json: true, ..info(Source::Unsaid) });
        for line in ["--json info --", "--json -- info"] {
            assert_eq!(parsed(line), Ok(wanted.clone()), "{line}");
        }
    }

    #[test]
    fn a_value_is_the_next_word_or_attached() {
        let simulated = Command::Info(info(Source::Simulated("mi300x:gpus=4,vram=64G".into())));
        assert_eq!(parsed("info --sim mi300x:gpus=4,vram=64G"), Ok(simulated.clone()));
        assert_eq!(parsed("info --sim=mi300x:gpus=4,vram=64G"), Ok(simulated));
        let tree = Command::Info(info(Source::Tree(b"/a=b/c".to_vec())));
        assert_eq!(parsed("info --tree /a=b/c"), Ok(tree.clone()));
        assert_eq!(parsed("info --tree=/a=b/c"), Ok(tree));
        // A folder may begin with one dash and hold any bytes.
        let words: [&[u8]; 3] = [b"info", b"--tree", b"-\xff\xfe"];
        assert_eq!(parse(&words), Ok(Command::Info(info(Source::Tree(b"-\xff\xfe".to_vec())))));
    }

    #[test]
    fn help_and_version_win_over_what_follows() {
        for line in ["--help", "-h", "info --help", "info --json -h --nonsense"] {
            assert_eq!(parsed(line), Ok(Command::Help), "{line}");
        }
        for line in ["--version", "-V", "info -V"] {
            assert_eq!(parsed(line), Ok(Command::Version), "{line}");
        }
    }

    #[test]
    fn every_wrong_form_is_named() {
        let word = |text: &str| text.as_bytes().to_vec();
        let wrong = [
            ("show", Misuse::UnknownCommand(word("show"))),
            ("infos", Misuse::UnknownCommand(word("infos"))),
            ("info info", Misuse::UnexpectedWord(word("info"))),
            ("info --json mi300x", Misuse::UnexpectedWord(word("mi300x"))),
            ("--jsno", Misuse::UnknownOption(word("--jsno"))),
            ("-- --json", Misuse::UnknownCommand(word("--json"))),
            ("info -- --json", Misuse::UnexpectedWord(word("--json"))),
            ("info -- --", Misuse::UnexpectedWord(word("--"))),
            ("--=1", Misuse::UnknownOption(word("--=1"))),
            ("--sim -- apu", Misuse::MissingValue("--sim")),
            ("-", Misuse::UnknownOption(word("-"))),
            ("-x", Misuse::UnknownOption(word("-x"))),
            ("-j", Misuse::UnknownOption(word("-j"))),
            ("-h=1", Misuse::UnknownOption(word("-h=1"))),
            ("--unknown=1", Misuse::UnknownOption(word("--unknown=1"))),
            ("--sim", Misuse::MissingValue("--sim")),
            ("--sim=", Misuse::MissingValue("--sim")),
            ("--sim --json", Misuse::MissingValue("--sim")),
            ("--tree", Misuse::MissingValue("--tree")),
            ("--tree=", Misuse::MissingValue("--tree")),
            ("--tree --json", Misuse::MissingValue("--tree")),
            ("--json=1", Misuse::UnexpectedValue("--json")),
            ("--json=", Misuse::UnexpectedValue("--json")),
            ("--real=1", Misuse::UnexpectedValue("--real")),
            ("--discover=1", Misuse::UnexpectedValue("--discover")),
            ("--help=1", Misuse::UnexpectedValue("--help")),
            ("--version=1", Misuse::UnexpectedValue("--version")),
            ("--json --json", Misuse::Repeated("--json")),
            ("--discover --discover", Misuse::Repeated("--discover")),
            ("--real --real", Misuse::Repeated("--real")),
            ("--sim a --sim a", Misuse::Repeated("--sim")),
            ("--tree a --tree b", Misuse::Repeated("--tree")),
            ("--real --sim a", Misuse::TwoMachines("--real", "--sim")),
            ("--tree a --real", Misuse::TwoMachines("--tree", "--real")),
            ("--sim a --tree b", Misuse::TwoMachines("--sim", "--tree")),
        ];
        for (line, misuse) in wrong {
            assert_eq!(parsed(line), Err(misuse), "{line}");
        }
        let words: [&[u8]; 2] = [b"--sim", b"mi\xff"];
        assert_eq!(parse(&words), Err(Misuse::NotText("--sim", b"mi\xff".to_vec())));
        let words: [&[u8]; 1] = [b""];
        assert_eq!(parse(&words), Err(Misuse::UnknownCommand(vec![])));
    }

    #[test]
    fn help_names_every_simulated_machine_and_fits_a_terminal() {
        for name in kfd_sim::Profile::names() {
            let words = |c: char| !c.is_ascii_alphanumeric() && c != '-';
            assert!(HELP.split(words).any(|word| word == name), "{name}");
        }
        assert!(kfd_sim::Profile::parse("mi300x:cpx,gpus=4,vram=64G").is_ok());
        assert!(HELP.lines().all(|line| line.len() <= 90));
    }

    #[test]
    fn a_misuse_is_one_line_whatever_was_typed() {
        let typed = b"--a\nb\x1b[31m\xff".to_vec();
        let text = Misuse::UnknownOption(typed).to_string();
        assert_eq!(text, "unknown option '--a\\nb\\x1b[31m\\xff'");
    }
}
