//! The text of a fault plan.
#![no_main]

use hsakmt_core::seam::{Fault, FaultPlan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    if let Err(wrong) = FaultPlan::parse(input) {
        assert!(input.contains(wrong.text) && !wrong.to_string().is_empty());
    }
    if let Ok(fault) = Fault::parse(input) {
        let text = fault.to_string();
        assert_eq!(Fault::parse(&text), Ok(fault), "{text}");
    }
});
