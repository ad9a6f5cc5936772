//! Loading a kernel module and what it depends on.
//!
//! `depmod` writes `/lib/modules/<release>/modules.dep`: a line for each
//! module, `path: path path …`, with the files that the module needs behind the
//! colon, all relative to that folder. What has to be loaded first stands last.
//! `modules.builtin` lists by path the modules that are part of the kernel.
//! Parameters stand on the kernel's command line as `module.name=value`, where
//! the loader of modules has to look for them.

use alloc::ffi::CString;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::{Error, System};

/// Loads a module, dependencies first. Modules that are loaded or built in
/// already are fine.
///
/// # Errors
/// The file that could not be read or loaded with its errno, or that there is
/// no such module.
pub fn load(system: &impl System, module: &'static str) -> Result<(), Error> {
    let release = system.release().map_err(Error::of("uname", c""))?;
    let list = path(&release, b"modules.dep");
    let dependencies = system.read(&list).map_err(Error::of("read", &list))?;
    // Kernels without any such module have no such file.
    let built_in = system.read(&path(&release, b"modules.builtin")).unwrap_or_default();
    let command_line = system.read(c"/proc/cmdline").unwrap_or_default();

    let Some(order) = load_order(&dependencies, &built_in, module.as_bytes()) else {
        return Err(Error::UnknownModule { module, list });
    };
    for file in order {
        let path = path(&release, file);
        let parameters = parameters(&command_line, name(file));
        match system.load_module(&path, &parameters, !file.ends_with(b".ko")) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(Error::of("finit_module", &path)(errno)),
        }
    }
    Ok(())
}

fn path(release: &[u8], file: &[u8]) -> CString {
    let mut path = Vec::from(b"/lib/modules/");
    path.extend_from_slice(release);
    path.push(b'/');
    path.extend_from_slice(file);
    // No file of the folder has a zero byte in its name; the path of a broken
    // list would name nothing.
    CString::new(path).unwrap_or_default()
}

/// The name of the module that a path holds: without folders, `.ko` and what
/// follows it. May still contain `-` where the module's own name has `_`.
fn name(path: &[u8]) -> &[u8] {
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let end = file.windows(3).position(|part| part == b".ko").unwrap_or(file.len());
    &file[..end]
}

/// Whether two module names are the same; the kernel takes `-` and `_` for one.
fn same(left: &[u8], right: &[u8]) -> bool {
    let plain = |&byte: &u8| if byte == b'-' { b'_' } else { byte };
    left.iter().map(plain).eq(right.iter().map(plain))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The files to load for a module, in order, by `modules.dep`. Empty if it is
/// built in, `None` if neither list knows it.
fn load_order<'a>(dependencies: &'a [u8], built_in: &[u8], module: &[u8]) -> Option<Vec<&'a [u8]>> {
    let entries: Vec<(&[u8], &[u8])> = lines(dependencies)
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((&line[..colon], &line[colon + 1..]))
        })
        .collect();
    let mut order = Vec::new();
    match entries.iter().find(|(file, _)| same(name(file), module)) {
        Some((file, _)) => append(&entries, file, &mut Vec::new(), &mut order),
        None => {
            lines(built_in).find(|file| same(name(file), module))?;
        }
    }
    Some(order)
}

/// Appends a file's dependencies and then the file. depmod lists them all for
/// each module, other writers of the format the direct ones only, so each is
/// looked up in turn; `seen` ends this also for a list that goes in circles.
fn append<'a>(
    entries: &[(&'a [u8], &'a [u8])],
    file: &'a [u8],
    seen: &mut Vec<&'a [u8]>,
    order: &mut Vec<&'a [u8]>,
) {
    if seen.contains(&file) {
        return;
    }
    seen.push(file);
    let needs = entries.iter().find(|(path, _)| *path == file).map_or(&[][..], |(_, needs)| needs);
    let needs: Vec<&[u8]> = words(needs).collect();
    for needed in needs.into_iter().rev() {
        append(entries, needed, seen, order);
    }
    order.push(file);
}

/// A module's parameters on the kernel's command line, as finit_module takes
/// them: `name=value` separated by blanks. Quotes group words as they do for
/// the kernel; a lone `--` ends the kernel's part of the line.
fn parameters(command_line: &[u8], module: &[u8]) -> CString {
    let mut quoted = false;
    let mut found = Vec::new();
    let arguments = command_line.split(|&byte| {
        quoted ^= byte == b'"';
        !quoted && byte.is_ascii_whitespace()
    });
    for word in arguments.take_while(|word| *word != b"--") {
        let Some(dot) = word.iter().position(|&byte| byte == b'.') else {
            continue;
        };
        if same(&word[..dot], module) {
            if !found.is_empty() {
                found.push(b' ');
            }
            found.extend_from_slice(&word[dot + 1..]);
        }
    }
    CString::new(found).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::super::script::Script;
    use super::*;

    fn parameters(command_line: &str, module: &str) -> String {
        let text = super::parameters(command_line.as_bytes(), module.as_bytes());
        text.into_string().unwrap()
    }

    /// The order for `module` as names.
    fn order(dependencies: &str, module: &str) -> Option<Vec<String>> {
        let order =
            load_order(dependencies.as_bytes(), b"kernel/lib/crc16.ko\n", module.as_bytes());
        Some(order?.iter().map(|file| String::from_utf8_lossy(name(file)).into_owned()).collect())
    }

    #[test]
    fn a_name_is_the_file_without_its_endings() {
        assert_eq!(name(b"kernel/drivers/gpu/drm/drm.ko"), b"drm");
        assert_eq!(name(b"kernel/gpu-sched.ko.xz"), b"gpu-sched");
        assert_eq!(name(b"video.ko.zst"), b"video");
        assert_eq!(name(b""), b"");
        assert!(same(b"gpu-sched", b"gpu_sched"));
        assert!(!same(b"gpu-sched", b"gpu"));
    }

    #[test]
    fn what_stands_last_is_loaded_first() {
        let text = "k/b.ko: k/a.ko\nk/a.ko:\nk/top.ko: k/c.ko.xz k/b.ko k/a.ko\nk/c.ko.xz: k/b.ko k/a.ko\n";
        assert_eq!(order(text, "top").unwrap(), ["a", "b", "c", "top"]);
    }

    #[test]
    fn a_list_of_direct_dependencies_is_followed() {
        let text = "k/top.ko: k/c.ko\nk/c.ko: k/b.ko\nk/b.ko: k/a.ko\nk/a.ko:\n";
        assert_eq!(order(text, "top").unwrap(), ["a", "b", "c", "top"]);
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(order("a.ko: b.ko\nb.ko: a.ko\n", "a").unwrap(), ["b", "a"]);
    }

    #[test]
    fn broken_lists_do_no_harm() {
        assert_eq!(order("", "top"), None);
        assert_eq!(order("top.ko", "top"), None);
        assert_eq!(order(":\n::\ntop.ko: gone.ko", "top").unwrap(), ["gone", "top"]);
    }

    #[test]
    fn a_built_in_module_needs_no_file() {
        assert_eq!(order("a.ko:\n", "crc16"), Some(Vec::new()));
        assert_eq!(order("a.ko:\n", "crc17"), None);
    }

    #[test]
    fn parameters_stand_on_the_command_line() {
        let line = "console=ttyS0 amdgpu.debug=0x1 drm.debug=4 amdgpu.x=\"a b\" -- amdgpu.y=1\n";
        assert_eq!(parameters(line, "amdgpu"), "debug=0x1 x=\"a b\"");
        assert_eq!(parameters(line, "drm"), "debug=4");
        assert_eq!(parameters("gpu_sched.p=1", "gpu-sched"), "p=1");
        assert_eq!(parameters(line, "ttm"), "");
    }

    #[test]
    fn compressed_files_and_parameters_reach_the_kernel() {
        let machine = Script::with_modules("amdgpu.ko.xz: drm.ko.zst ttm.ko\n");
        machine.file("/proc/cmdline", "amdgpu.debug=1\n");
        assert_eq!(load(&machine, "amdgpu"), Ok(()));
        assert_eq!(
            machine.calls(),
            [
                "load /lib/modules/6.1.0/ttm.ko",
                "load compressed /lib/modules/6.1.0/drm.ko.zst",
                "load compressed /lib/modules/6.1.0/amdgpu.ko.xz debug=1",
            ]
        );
    }

    #[test]
    fn a_loaded_module_is_fine_and_a_refused_one_is_named() {
        let machine = Script::with_modules("amdgpu.ko: drm.ko ttm.ko\n");
        machine.fail("load /lib/modules/6.1.0/ttm.ko", Errno::EEXIST);
        machine.fail("load /lib/modules/6.1.0/drm.ko", Errno::ENOENT);
        let error = load(&machine, "amdgpu").unwrap_err();
        assert_eq!(alloc::format!("{error}"), "finit_module /lib/modules/6.1.0/drm.ko: ENOENT");
        assert_eq!(machine.calls().len(), 2);
    }

    #[test]
    fn missing_lists_are_named() {
        let machine = Script::default();
        let error = load(&machine, "amdgpu").unwrap_err();
        assert_eq!(alloc::format!("{error}"), "read /lib/modules/6.1.0/modules.dep: ENOENT");
        let machine = Script::with_modules("drm.ko:\n");
        let error = load(&machine, "amdgpu").unwrap_err();
        assert_eq!(alloc::format!("{error}"), "/lib/modules/6.1.0/modules.dep: no module amdgpu");
    }
}
