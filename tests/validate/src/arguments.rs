//! What the command line asks for.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::output::text::Printable;

/// The text of `--help`.
pub const HELP: &str = "\
kfd-validate: shows the machine that AMD's compute driver (KFD) presents

usage: kfd-validate [info] [OPTION...]

  info              show nodes, memory, caches and links (also without a command)

Which machine:
  --real            this machine's driver, /dev/kfd
  --sim PROFILE     a simulated machine: mi300x, mi210x8, mi210, mi50, rx6800, rx7900,
                    rx9070, apu or cpu-only, with parameters as in
                    mi300x:cpx,gpus=4,vram=64G
  --tree FOLDER     a captured topology tree: FOLDER itself, or topology,
                    sys/devices/virtual/kfd/kfd/topology or
                    sys/class/kfd/kfd/topology in it
  (none)            the real driver where there is one, else the simulated mi300x

How:
  --discover        read the topology only: no device is opened, no privilege needed
  --json            everything, as one JSON object
  -h, --help        this text
  -V, --version     the version

The first line of every output names the machine it is about.
Exit status: 0 done, 1 failed, 2 wrong arguments, 3 no such machine here.
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

/// A command line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
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

/// Reads a command line, without the program's own name.
///
/// # Errors
/// The first thing in it that is wrong.
pub fn parse(arguments: &[&[u8]]) -> Result<Command, Misuse> {
    let mut command = None;
    let mut named = None;
    let mut json = false;
    let mut discover = false;
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
                set(&mut json, "--json")?;
            }
            b"--discover" => {
                written.without_value("--discover")?;
                set(&mut discover, "--discover")?;
            }
            b"--real" => {
                written.without_value("--real")?;
                name_machine(&mut named, "--real", Source::Real)?;
            }
            b"--sim" => {
                let value = written.value("--sim", &mut rest)?;
                let profile = core::str::from_utf8(value)
                    .map_err(|_| Misuse::NotText("--sim", value.to_vec()))?;
                name_machine(&mut named, "--sim", Source::Simulated(profile.into()))?;
            }
            b"--tree" => {
                let value = written.value("--tree", &mut rest)?;
                name_machine(&mut named, "--tree", Source::Tree(value.to_vec()))?;
            }
            _ => return Err(Misuse::UnknownOption(word.to_vec())),
        }
    }
    let source = named.map_or(Source::Unsaid, |(_, source)| source);
    Ok(Command::Info(Info { source, json, discover }))
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

    #[test]
    fn nothing_shows_the_machine_that_is_there() {
        assert_eq!(parsed(""), Ok(Command::Info(info(Source::Unsaid))));
        assert_eq!(parsed("info"), Ok(Command::Info(info(Source::Unsaid))));
    }

    #[test]
    fn options_stand_before_and_after_the_command() {
        let wanted = Info { json: true, discover: true, ..info(Source::Real) };
        for line in [
            "info --json --real --discover",
            "--json info --discover --real",
            "--real --discover --json",
        ] {
            assert_eq!(parsed(line), Ok(Command::Info(wanted.clone())), "{line}");
        }
    }

    #[test]
    fn two_dashes_end_the_options() {
        let wanted = Command::Info(Info { json: true, ..info(Source::Unsaid) });
        for line in ["--json info --", "--json -- info", "--json --"] {
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
        let words: [&[u8]; 2] = [b"--tree", b"-\xff\xfe"];
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
