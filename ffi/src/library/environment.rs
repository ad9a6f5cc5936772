//! Environment variables, turned into options. Read once, at open.
//!
//! | variable | option |
//! |---|---|
//! | `HSA_OVERRIDE_GFX_VERSION` | the gfx version of every GPU, "M.m.s" |
//! | `HSA_OVERRIDE_GFX_VERSION_<node>` | the same for one node |
//! | `HSA_USE_SVM` | "0": no SVM calls |
//! | `HSA_USERPTR_FOR_PAGED_MEM` | "0": paged host memory is the driver's |
//! | `HSA_DISABLE_CACHE` | anything but "0": GPUs cache nothing |
//! | `HSA_ZFB` | a number other than 0, as atoi(3) reads it: video memory is served from system memory |
//! | `HSA_USE_UDMABUF` | "prefer": memory of APUs is made by udmabuf where that works; "require", or a number other than 0 as atoi(3) reads it: by udmabuf or not at all |
//! | `HSA_SVM_GUARD_PAGES` | how many unused pages follow an allocation; 1 unless it is a number |
//! | `HSA_CHECK_USERPTR` | anything but "0": every page that is registered is read once |
//! | `HSAKMT_DEBUGGER_ACCESS` | "0": debuggers cannot read video memory without host access, which saves system calls |
//! | `HSAKMT_GPUS` | the only GPUs to use, by kernel id (`gpu_id` in sysfs), separated by commas; what is no number names none |
//! | `HSAKMT_DEBUG_LEVEL` | 3, 4, 6, 7: errors, warnings, information, debugging on stderr |

use alloc::vec::Vec;

use hsakmt_core::context::{GpuSelection, Options, UdmabufPolicy};
use hsakmt_core::error::Error;
use hsakmt_core::fallible::{try_extend_from_slice, try_push};
use hsakmt_core::log::Level;

use super::log::level;

const GFX_OVERRIDE: &[u8] = b"HSA_OVERRIDE_GFX_VERSION";

/// What the environment says.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) options: Options,
    /// Up to which level messages go to standard error.
    pub(super) log_level: Option<Level>,
}

impl Default for Environment {
    /// What an empty environment says: debuggers can read video memory, as with the
    /// reference.
    fn default() -> Environment {
        let options = Options { debugger_access: true, ..Options::default() };
        Environment { options, log_level: None }
    }
}

/// Takes what one `NAME=value` says.
pub(super) fn apply(environment: &mut Environment, variable: &[u8]) -> Result<(), Error> {
    let Environment { options, log_level } = environment;
    let Some(at) = variable.iter().position(|&byte| byte == b'=') else { return Ok(()) };
    let (name, value) = variable.split_at(at);
    let value = value.get(1..).unwrap_or_default();
    match name {
        b"HSAKMT_GPUS" => options.gpus = GpuSelection::Only(numbers(value)?),
        b"HSAKMT_DEBUGGER_ACCESS" => options.debugger_access = value != b"0",
        b"HSA_USE_SVM" => options.svm_api = value != b"0",
        b"HSA_USERPTR_FOR_PAGED_MEM" => options.userptr_for_paged_memory = value != b"0",
        b"HSA_DISABLE_CACHE" => options.disable_cache = value != b"0",
        b"HSA_ZFB" => options.zero_frame_buffer = begins_with_a_number_but_zero(value),
        b"HSA_USE_UDMABUF" => options.udmabuf = udmabuf_policy(value),
        b"HSA_CHECK_USERPTR" => options.check_user_pointers = value != b"0",
        b"HSA_SVM_GUARD_PAGES" => {
            options.guard_pages = number(value).unwrap_or(options.guard_pages);
        }
        b"HSAKMT_DEBUG_LEVEL" => *log_level = number(value).and_then(level),
        GFX_OVERRIDE => options.gfx_override = Some(copy(value)?),
        _ => {
            let node = name.strip_prefix(GFX_OVERRIDE).and_then(|rest| rest.strip_prefix(b"_"));
            if let Some(node) = node.and_then(number) {
                try_push(&mut options.node_gfx_overrides, (node, copy(value)?))?;
            }
        }
    }
    Ok(())
}

fn copy(value: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(value.len())?;
    try_extend_from_slice(&mut copy, value)?;
    Ok(copy)
}

/// Decimal numbers between commas; what is none is left out.
fn numbers(list: &[u8]) -> Result<Vec<u32>, Error> {
    let mut numbers = Vec::new();
    for number in list.split(|&byte| byte == b',').filter_map(|text| number(text.trim_ascii())) {
        try_push(&mut numbers, number)?;
    }
    Ok(numbers)
}

/// A decimal number without sign or blanks.
fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u32, |number, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number.checked_mul(10)?.checked_add(u32::from(digit))
    })
}

/// A number means what it does for the reference of 2026, which has no way back once it
/// took udmabuf.
fn udmabuf_policy(value: &[u8]) -> UdmabufPolicy {
    match value {
        b"prefer" => UdmabufPolicy::Prefer,
        b"require" => UdmabufPolicy::Require,
        _ if begins_with_a_number_but_zero(value) => UdmabufPolicy::Require,
        _ => UdmabufPolicy::Off,
    }
}

/// Whether atoi(3) finds another number than 0.
fn begins_with_a_number_but_zero(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    digits.iter().take_while(|byte| byte.is_ascii_digit()).any(|&digit| digit != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn environment(variables: &[&[u8]]) -> Environment {
        let mut environment = Environment::default();
        for variable in variables {
            apply(&mut environment, variable).unwrap();
        }
        environment
    }

    #[test]
    fn known_variables_are_taken() {
        let Environment { options, log_level } = environment(&[
            b"PATH=/bin",
            b"HSA_OVERRIDE_GFX_VERSION=10.3.0",
            b"HSA_OVERRIDE_GFX_VERSION_12=9.0.6",
            b"HSA_USE_SVM=0",
            b"HSAKMT_DEBUG_LEVEL=6",
            b"HSAKMT_GPUS=61116, 7,x,,-1,99999999999",
        ]);
        assert_eq!(log_level, Some(Level::Info));
        assert_eq!(options.gpus, GpuSelection::Only(vec![61116, 7]));
        assert_eq!(options.gfx_override.as_deref(), Some(&b"10.3.0"[..]));
        assert_eq!(options.node_gfx_overrides.len(), 1);
        assert_eq!(options.node_gfx_overrides[0], (12, b"9.0.6".to_vec()));
        assert!(!options.svm_api);
    }

    #[test]
    fn what_concerns_memory_is_taken() {
        let Environment { options, .. } = environment(&[]);
        assert!(options.debugger_access && options.userptr_for_paged_memory);
        assert!(!options.disable_cache && !options.zero_frame_buffer);
        assert!(!options.check_user_pointers);
        assert_eq!(options.guard_pages, 1);

        let Environment { options, .. } = environment(&[
            b"HSAKMT_DEBUGGER_ACCESS=0",
            b"HSA_USERPTR_FOR_PAGED_MEM=0",
            b"HSA_DISABLE_CACHE=1",
            b"HSA_ZFB=1",
            b"HSA_CHECK_USERPTR=yes",
            b"HSA_SVM_GUARD_PAGES=16",
        ]);
        assert!(!options.debugger_access && !options.userptr_for_paged_memory);
        assert!(options.disable_cache && options.zero_frame_buffer);
        assert!(options.check_user_pointers);
        assert_eq!(options.guard_pages, 16);
    }

    #[test]
    fn zero_and_nonsense_leave_memory_as_it_is() {
        let Environment { options, .. } = environment(&[
            b"HSAKMT_DEBUGGER_ACCESS=1",
            b"HSA_USERPTR_FOR_PAGED_MEM=00",
            b"HSA_DISABLE_CACHE=0",
            b"HSA_CHECK_USERPTR=0",
            b"HSA_SVM_GUARD_PAGES=-1",
        ]);
        assert!(options.debugger_access && options.userptr_for_paged_memory);
        assert!(!options.disable_cache && !options.check_user_pointers);
        assert_eq!(options.guard_pages, 1);
        assert_eq!(environment(&[b"HSA_SVM_GUARD_PAGES=0"]).options.guard_pages, 0);
    }

    #[test]
    fn the_zero_frame_buffer_is_asked_for_as_with_atoi() {
        for (value, expected) in [
            (&b"1"[..], true),
            (b" \t-02x", true),
            (b"+10", true),
            (b"99999999999999999999", true),
            (b"", false),
            (b"0", false),
            (b"000", false),
            (b"yes", false),
            (b"0x10", false),
            (b"--1", false),
        ] {
            let variable = [b"HSA_ZFB=", value].concat();
            let Environment { options, .. } = environment(&[&variable]);
            assert_eq!(options.zero_frame_buffer, expected, "{value:?}");
        }
    }

    #[test]
    fn udmabuf_is_off_preferred_or_required() {
        for (value, expected) in [
            (&b""[..], UdmabufPolicy::Off),
            (b"0", UdmabufPolicy::Off),
            (b"off", UdmabufPolicy::Off),
            (b"Prefer", UdmabufPolicy::Off),
            (b"prefer", UdmabufPolicy::Prefer),
            (b"require", UdmabufPolicy::Require),
            (b"1", UdmabufPolicy::Require),
            (b" 2x", UdmabufPolicy::Require),
        ] {
            let variable = [b"HSA_USE_UDMABUF=", value].concat();
            let Environment { options, .. } = environment(&[&variable]);
            assert_eq!(options.udmabuf, expected, "{value:?}");
        }
        assert_eq!(environment(&[]).options.udmabuf, UdmabufPolicy::Off);
    }

    #[test]
    fn what_is_not_a_variable_of_ours_is_left_alone() {
        let Environment { options, log_level } = environment(&[
            b"",
            b"=",
            b"HSA_USE_SVM",
            b"HSA_OVERRIDE_GFX_VERSION_=1",
            b"HSA_OVERRIDE_GFX_VERSION_x=1",
            b"HSA_OVERRIDE_GFX_VERSION_4294967296=1",
            b"XHSA_USE_SVM=0",
            b"HSAKMT_DEBUG_LEVEL=5",
            b"HSAKMT_DEBUG_LEVEL=info",
        ]);
        assert_eq!(log_level, None);
        assert_eq!(options.gpus, GpuSelection::All);
        assert!(options.svm_api && options.node_gfx_overrides.is_empty());
        assert_eq!(options.gfx_override, None);
    }
}
