//! The blocks, records and names of Rust are those of the system's C headers, as a C compiler sees
//! them.
//!
//! The headers may be older or newer than the blocks. What they do not have is not compared, what
//! they have in another size is listed in [`hsakmt_uapi_tests::exceptions`]; both are printed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use hsakmt_uapi_tests::exceptions::{
    FIELDS_NEWER_THAN_HEADERS, FIELDS_WITHOUT_NAME, NAMES_NEWER_THAN_HEADERS, SIZES_IN_HEADERS,
    TYPES_NEWER_THAN_HEADERS,
};
use hsakmt_uapi_tests::facts;
use hsakmt_uapi_tests::kernel::{self, Layout, Place};
use hsakmt_uapi_tests::named_values::named_values;

/// A header, and the Debian package that has it.
struct Header {
    include: &'static str,
    package: &'static str,
}

const KFD: Header = Header { include: "linux/kfd_ioctl.h", package: "linux-libc-dev" };
const UDMABUF: Header = Header { include: "linux/udmabuf.h", package: "linux-libc-dev" };
const DRM: Header = Header { include: "libdrm/drm.h", package: "libdrm-dev" };
const AMDGPU: Header = Header { include: "libdrm/amdgpu_drm.h", package: "libdrm-dev" };

/// How the names of `kfd_ioctl.h` start.
const KFD_NAMES: &[&str] = &["KFD_", "EC_", "DEBUG_", "NUM_"];

/// The C compiler with the folders of headers.
struct Compiler {
    folder: PathBuf,
}

impl Compiler {
    /// `linux/kfd_ioctl.h` includes `drm/drm.h`, which systems keep in different places: here it
    /// is a file that includes libdrm's.
    fn new(name: &str) -> Compiler {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("drm")).unwrap();
        fs::write(folder.join("drm/drm.h"), "#include <libdrm/drm.h>\n").unwrap();
        Compiler { folder }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "gcc".into()));
        command.arg("-std=c11").arg("-I").arg(&self.folder).arg("-I/usr/include/libdrm");
        command
    }

    /// The text of a header, without comments.
    fn text(&self, header: &Header) -> String {
        let source = self.folder.join("where.c");
        fs::write(&source, format!("#include <{}>\n", header.include)).unwrap();
        let run = self.command().args(["-M", "-MG"]).arg(&source).output();
        let run = run.unwrap_or_else(|e| panic!("no C compiler ({e}): install gcc or set CC"));
        let dependencies = String::from_utf8(run.stdout).unwrap();
        let path = dependencies
            .split_whitespace()
            .find(|path| path.starts_with('/') && path.ends_with(header.include))
            .unwrap_or_else(|| {
                panic!("<{}> not found: install {}", header.include, header.package)
            });
        without_comments(&fs::read_to_string(path).unwrap())
    }

    /// Compiles assertions. Panics with the compiler's messages if one does not hold.
    fn assert(&self, file: &str, source: &str) {
        let path = self.folder.join(file);
        fs::write(&path, source).unwrap();
        let run = self
            .command()
            .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

fn has_identifier(text: &str, name: &str) -> bool {
    identifiers(text).any(|identifier| identifier == name)
}

/// The number that the header's definition of a request begins with.
fn number_in(text: &str, block: &Layout) -> Option<u32> {
    let mut after = identifiers(text).skip_while(|identifier| *identifier != block.request_macro);
    let digits = after.find_map(|identifier| identifier.strip_prefix("0x"))?;
    u32::from_str_radix(digits, 16).ok()
}

/// What stands between the braces of a structure's or union's definition.
fn body<'a>(text: &'a str, c_type: &str) -> Option<&'a str> {
    let starts = text.match_indices(c_type).map(|(at, _)| &text[at + c_type.len()..]);
    let after = starts.map(str::trim_start).find(|after| after.starts_with('{'))?;
    let mut depth = 0;
    let end = after.char_indices().find(|(_, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    Some(&after[1..end?.0])
}

/// The assertions about some layouts, and what is not compared.
#[derive(Default)]
struct Assertions {
    source: String,
    compared: usize,
    notes: Vec<String>,
}

impl Assertions {
    fn new(headers: &[&Header]) -> Assertions {
        let mut source = String::from("#include <stddef.h>\n#include <stdint.h>\n");
        for header in headers {
            writeln!(source, "#include <{}>", header.include).unwrap();
        }
        Assertions { source, ..Assertions::default() }
    }

    fn assert(&mut self, condition: &str, what: &str) {
        writeln!(self.source, "_Static_assert({condition}, \"{what}\");").unwrap();
        self.compared += 1;
    }

    /// Compares a layout with its C type, as far as the header's text has it.
    fn layout(&mut self, text: &str, layout: &Layout) {
        let c_type = &layout.c_type;
        let Some(body) = body(text, c_type) else {
            let listed = TYPES_NEWER_THAN_HEADERS.iter().find(|(name, _)| name == c_type);
            let Some((_, reason)) = listed else {
                panic!("{c_type} is not in this header, and it is not listed");
            };
            self.notes.push(format!("{c_type} is not in this header: {reason}"));
            return;
        };
        for place in &layout.fields {
            self.field(text, body, layout, place);
        }
        let mut sizes = vec![layout.size];
        let listed = SIZES_IN_HEADERS.iter().filter(|(name, ..)| name == c_type);
        sizes.extend(listed.map(|(_, size, _)| *size));
        let sizes: Vec<String> =
            sizes.iter().map(|size| format!("sizeof({c_type}) == {size}")).collect();
        self.assert(&sizes.join(" || "), &format!("size of {c_type}"));
        if !layout.request_macro.is_empty() {
            self.request(text, layout);
        }
    }

    fn field(&mut self, text: &str, body: &str, layout: &Layout, place: &Place) {
        let (c_type, field) = (&layout.c_type, place.field);
        let Some(designator) = &place.designator else {
            let is_listed = FIELDS_WITHOUT_NAME
                .iter()
                .any(|(name, without, _)| (*name, *without) == (layout.name, field.name));
            assert!(
                is_listed || layout.tag().starts_with("kfd_"),
                "{}.{}",
                layout.name,
                field.name
            );
            return;
        };
        let last = designator.rsplit('.').next().unwrap_or(designator);
        // A dotted name may be of a structure that is defined elsewhere in the header.
        let within = if designator.contains('.') { text } else { body };
        if !has_identifier(within, last) {
            let listed = FIELDS_NEWER_THAN_HEADERS
                .iter()
                .find(|(of, name, _)| of == c_type && name == designator);
            let Some((.., reason)) = listed else {
                panic!("{c_type} of this header has no {designator}, and it is not listed");
            };
            self.notes.push(format!("{c_type}.{designator} is not in this header: {reason}"));
            return;
        }
        self.assert(
            &format!("offsetof({c_type}, {designator}) == {}", field.offset),
            &format!("offset of {c_type}.{designator}"),
        );
        self.assert(
            &format!("sizeof((({c_type} *)0)->{designator}) == {}", field.size),
            &format!("size of {c_type}.{designator}"),
        );
    }

    fn request(&mut self, text: &str, layout: &Layout) {
        let (request_macro, request) = (&layout.request_macro, layout.request);
        assert!(has_identifier(text, request_macro), "{request_macro} is not in this header");
        // The size within the number is that of the C type, which is compared by itself.
        let without_size = |number: &str| format!("((uint32_t)({number}) & 0xc000ffff)");
        self.assert(
            &format!("{} == {:#x}", without_size(request_macro), request & 0xc000_ffff),
            &format!("number of {request_macro}"),
        );
        let size = format!("(((uint32_t)({request_macro}) >> 16) & 0x3fff)");
        self.assert(
            &format!("{size} == sizeof({})", layout.c_type),
            &format!("size within {request_macro}"),
        );
    }

    /// Compares the form without an argument, whose C type only some headers have.
    fn create_process(&mut self, text: &str, block: &Layout) {
        if has_identifier(text, &block.request_macro) {
            let number = format!("({} & 0xffff) == {:#x}", block.request_macro, block.request);
            self.assert(&number, "number of CREATE_PROCESS");
        } else {
            self.notes.push("CREATE_PROCESS is not in this header: 1.19".to_owned());
        }
    }

    /// Compares the values of the names with these prefixes that the header has.
    fn names(&mut self, text: &str, prefixes: &[&str]) {
        let known: Vec<&str> = identifiers(text).collect();
        let names = named_values().into_iter().flat_map(|named| named.values);
        for (name, value) in
            names.filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        {
            if known.contains(&&*name) {
                let bits = if value > u32::MAX.into() { "uint64_t" } else { "uint32_t" };
                self.assert(&format!("({bits})({name}) == {value:#x}u"), &name);
            } else {
                let listed = NAMES_NEWER_THAN_HEADERS.iter().find(|(newer, _)| *newer == name);
                let reason = match listed {
                    Some((_, reason)) => *reason,
                    None if prefixes == KFD_NAMES => "held against the facts",
                    None => panic!("{name} is not in this header, and it is not listed"),
                };
                self.notes.push(format!("{name} is not in this header: {reason}"));
            }
        }
    }

    fn check(self, compiler: &Compiler, file: &str, at_least: usize) {
        for note in &self.notes {
            println!("not compared: {note}");
        }
        println!("{} assertions", self.compared);
        assert!(self.compared >= at_least, "only {} assertions", self.compared);
        compiler.assert(file, &self.source);
    }
}

fn blocks() -> Vec<Layout> {
    let facts = facts();
    kernel::blocks(|request_macro| {
        let ioctl = facts.ioctls.iter().find(|ioctl| ioctl.name == request_macro)?;
        Some(ioctl.record.clone())
    })
}

#[test]
fn kfd() {
    let compiler = Compiler::new("kfd");
    let text = compiler.text(&KFD);
    compiler.text(&DRM);
    let mut assertions = Assertions::new(&[&KFD]);
    for block in blocks().iter().filter(|block| block.tag().starts_with("kfd_")) {
        match &*block.request_macro {
            "AMDKFD_IOC_CREATE_PROCESS" => assertions.create_process(&text, block),
            // The kernel's own and the out-of-tree driver's have the same name.
            "AMDKFD_IOC_PROFILER" if number_in(&text, block) != Some(block.request & 0xff) => {
                assertions
                    .notes
                    .push(format!("{} {:#x} is not in this header", block.name, block.request));
            }
            _ => assertions.layout(&text, block),
        }
    }
    for record in kernel::records().iter().filter(|record| record.tag().starts_with("kfd_")) {
        assertions.layout(&text, record);
    }
    assertions.names(&text, KFD_NAMES);
    assertions.check(&compiler, "kfd.c", 400);
}

#[test]
fn drm() {
    let compiler = Compiler::new("drm");
    let text = compiler.text(&DRM) + &compiler.text(&AMDGPU);
    let mut assertions = Assertions::new(&[&DRM, &AMDGPU]);
    // `O_CLOEXEC` and `O_RDWR`, which the names of drm.h stand for.
    assertions.source.insert_str(0, "#define _GNU_SOURCE\n#include <fcntl.h>\n");
    for block in blocks().iter().filter(|block| block.tag().starts_with("drm_")) {
        assertions.layout(&text, block);
    }
    for record in kernel::records().iter().filter(|record| record.tag().starts_with("drm_")) {
        assertions.layout(&text, record);
    }
    assertions.names(&text, &["DRM_", "AMDGPU_"]);
    assertions.check(&compiler, "drm.c", 250);
}

#[test]
fn udmabuf() {
    let compiler = Compiler::new("udmabuf");
    let text = compiler.text(&UDMABUF);
    let mut assertions = Assertions::new(&[&UDMABUF]);
    for block in blocks().iter().filter(|block| block.tag().starts_with("udmabuf_")) {
        assertions.layout(&text, block);
    }
    assertions.names(&text, &["UDMABUF_"]);
    assertions.check(&compiler, "udmabuf.c", 12);
}

#[test]
fn a_wrong_offset_does_not_compile() {
    let compiler = Compiler::new("wrong");
    let text = compiler.text(&UDMABUF);
    let mut block = blocks().into_iter().find(|block| block.name == "UDMABUF_CREATE").unwrap();
    block.fields[1].field.offset += 4;
    let mut assertions = Assertions::new(&[&UDMABUF]);
    assertions.layout(&text, &block);
    fs::write(compiler.folder.join("wrong.c"), &assertions.source).unwrap();
    let mut command = compiler.command();
    let run = command.arg("-fsyntax-only").arg(compiler.folder.join("wrong.c")).output().unwrap();
    let messages = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success());
    assert!(messages.contains("offset of struct udmabuf_create.flags"), "{messages}");
}
