//! Environment variables, turned into options. Read once, at open.
//!
//! | variable | option |
//! |---|---|
//! | `HSA_OVERRIDE_GFX_VERSION` | the gfx version of every GPU, "M.m.s" |
//! | `HSA_OVERRIDE_GFX_VERSION_<node>` | the same for one node |
//! | `HSA_USE_SVM` | "0": no SVM calls |
//! | `HSAKMT_GPUS` | the only GPUs to use, by kernel id (`gpu_id` in sysfs), separated by commas; what is no number names none |
//! | `HSAKMT_DEBUG_LEVEL` | 3, 4, 6, 7: errors, warnings, information, debugging on stderr |

use alloc::vec::Vec;

use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::error::Error;
use hsakmt_core::fallible::{try_extend_from_slice, try_push};
use hsakmt_core::log::Level;

use super::log::level;

const GFX_OVERRIDE: &[u8] = b"HSA_OVERRIDE_GFX_VERSION";

/// What the environment says.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) options: Options,
    /// Up to which level messages go to standard error.
    pub(super) log_level: Option<Level>,
}

/// Takes what one `NAME=value` says.
pub(super) fn apply(environment: &mut Environment, variable: &[u8]) -> Result<(), Error> {
    let Environment { options, log_level } = environment;
    let Some(at) = variable.iter().position(|&byte| byte == b'=') else { return Ok(()) };
    let (name, value) = variable.split_at(at);
    let value = value.get(1..).unwrap_or_default();
    match name {
        b"HSAKMT_GPUS" => options.gpus = GpuSelection::Only(numbers(value)?),
        b"HSA_USE_SVM" => options.svm_api = value != b"0",
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
