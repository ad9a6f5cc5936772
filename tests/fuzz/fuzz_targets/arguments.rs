//! The command line of kfd-validate; a line end of the input ends a word.
#![no_main]

use kfd_validate::arguments::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let words: Vec<&[u8]> = input.split(|&byte| byte == b'\n' || byte == 0).collect();
    if let Err(misuse) = parse(&words) {
        let text = misuse.to_string();
        assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
    }
});
